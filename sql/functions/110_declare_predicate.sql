-- Runs as the owner: writers have no other way to the tables.
create or replace function supersede.declare_predicate(
    event jsonb, namespace text default 'default', actor text default null)
returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    return supersede.record_event(
        namespace, supersede.event_of('declare_predicate', event), null, null, false, actor, false, 'refuse');
end
$$;

comment on function supersede.declare_predicate(jsonb, text, text) is
    'Declares the predicate "name" one-valued or many-valued ("cardinality").';
