-- Runs as the owner: writers have no other way to the tables.
create or replace function supersede.reinstate(
    event jsonb, namespace text default 'default', actor text default null)
returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    return supersede.record_event(
        namespace, supersede.event_of('reinstate', event), null, null, false, actor, false, 'refuse');
end
$$;

comment on function supersede.reinstate(jsonb, text, text) is
    'Believes the fact named by "ref" again, over valid_from to valid_to (default: what was last taken from it).';
