-- Runs as the owner: writers have no other way to the tables.
create or replace function supersede.remember(
    event jsonb, namespace text default 'default', actor text default null,
    embedding halfvec default null, space_id smallint default null, truncated boolean default false)
returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    return supersede.record_event(
        namespace, supersede.event_of('remember', event), embedding, space_id, truncated, actor, false, 'refuse');
end
$$;

comment on function supersede.remember(jsonb, text, text, halfvec, smallint, boolean) is
    'Records a claim. Event keys: claim, and optionally ref, subject, predicate, object, kind, data, trust, valid_from, valid_to, sources, asserted, over_trust, handle, note.';
