-- Runs as the owner: writers have no other way to the tables.
create or replace function supersede.retract(
    event jsonb, namespace text default 'default', actor text default null)
returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    return supersede.record_event(
        namespace, supersede.event_of('retract', event), null, null, false, actor, false, 'refuse');
end
$$;

comment on function supersede.retract(jsonb, text, text) is
    'Withdraws belief in the fact named by "ref": it was never true. "give_back" gives what it took back to its olds.';
