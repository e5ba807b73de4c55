-- Runs as the owner, and is granted to importers alone: it brings its own transaction time.
create or replace function supersede.replay(
    event jsonb, namespace text default 'default', actor text default null,
    embedding halfvec default null, space_id smallint default null, truncated boolean default false,
    out_of_order text default 'refuse')
returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    perform supersede.check_choice(
        jsonb_build_object('out_of_order', out_of_order), 'out_of_order', array['refuse', 'next_stamp']);
    return supersede.record_event(
        namespace, event, embedding, space_id, truncated, actor, true, out_of_order);
end
$$;

comment on function supersede.replay(jsonb, text, text, halfvec, smallint, boolean, text) is
    'Records one event of a history with its own recording time, recorded_at; "op" names the verb.';
