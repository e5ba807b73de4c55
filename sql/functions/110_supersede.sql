-- Runs as the owner: writers have no other way to the tables.
create or replace function supersede.supersede(
    event jsonb, namespace text default 'default', actor text default null,
    embedding halfvec default null, space_id smallint default null, truncated boolean default false)
returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    return supersede.record_event(
        namespace, supersede.event_of('supersede', event), embedding, space_id, truncated, actor, false, 'refuse');
end
$$;

comment on function supersede.supersede(jsonb, text, text, halfvec, smallint, boolean) is
    'Takes validity from the facts in "old" for a new claim, or for the existing fact named by "by". Further keys as in remember, with reason and if_not_current.';
