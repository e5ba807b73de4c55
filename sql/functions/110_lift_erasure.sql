-- Runs as the owner, and is granted to importers alone: destruction is not for an agent.
create or replace function supersede.lift_erasure(
    event jsonb, namespace text default 'default', actor text default null)
returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    return supersede.record_event(
        namespace, supersede.event_of('lift_erasure', event), null, null, false, actor, false, 'refuse');
end
$$;

comment on function supersede.lift_erasure(jsonb, text, text) is
    'Lets what the erased fact named by "ref" (its id) said be recorded anew; "note" says why.';
