-- Runs as the owner: writers have no other way to the tables.
create or replace function supersede.undo(
    event jsonb, namespace text default 'default', actor text default null)
returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    return supersede.undo_selected(namespace, supersede.event_of('undo', event), actor);
end
$$;

comment on function supersede.undo(jsonb, text, text) is
    'Undoes what operations did to validity, as far as it still stands, from the newest to the oldest: those by "actor", of "run", on "source" alone, or at "stamp", from "since" until "until". "dry_run": false does it; else it only says what would be done.';
