-- Runs as the owner: writers have no other way to the tables.
create or replace function supersede."end"(
    event jsonb, namespace text default 'default', actor text default null)
returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    return supersede.record_event(
        namespace, supersede.event_of('end', event), null, null, false, actor, false, 'refuse');
end
$$;

comment on function supersede."end"(jsonb, text, text) is
    'Ends the validity of the fact named by "ref" at "when" (default now), until "until" (default for good), without a successor.';
