-- Runs as the owner, and is granted to importers alone: destruction is not for an agent.
create or replace function supersede.erase(
    event jsonb, namespace text default 'default', actor text default null)
returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    return supersede.record_event(
        namespace, supersede.event_of('erase', event), null, null, false, actor, false, 'refuse');
end
$$;

comment on function supersede.erase(jsonb, text, text) is
    'Destroys the content of the fact named by "ref"; "note" says why and is kept. Returns a certificate.';
