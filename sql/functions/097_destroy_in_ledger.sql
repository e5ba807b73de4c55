-- What the ledger says of a fact that is being erased. Of the operations about it alone, and of their undos,
-- only structure stays; in those of others its names give way to its id. Their digests are hashes of what they
-- said, and get the key, so that a retry is still found and a guess cannot be tested.
create or replace function supersede.destroy_in_ledger(p_namespace text, p_fact_id uuid) returns jsonb
language plpgsql
as $$
declare
    v_names text[] := array(
        select r.ref from supersede.fact_ref r
        where r.namespace = p_namespace and r.fact_id = p_fact_id);
    v_own_stamps timestamptz[] := supersede.own_operations(p_namespace, p_fact_id);
    v_operation record;
    v_is_own boolean;
    v_own integer := 0;
    v_others integer := 0;
    v_notes integer := 0;
begin
    for v_operation in
        select o.stamp, o.note, o.event, o.result
        from supersede.operation o
        where o.namespace = p_namespace
          and (o.stamp = any (v_own_stamps)
               or position(p_fact_id::text in o.result::text) > 0
               or o.event ->> 'ref' = any (v_names) or o.event ->> 'by' = any (v_names)
               or o.event -> 'old' ?| (v_names || p_fact_id::text)
               or o.stamp in (
                   select e.stamp from supersede.evidence e
                   where e.namespace = p_namespace and e.fact_id = p_fact_id))
    loop
        v_is_own := v_operation.stamp = any (v_own_stamps);
        v_own := v_own + v_is_own::integer;
        v_others := v_others + (not v_is_own)::integer;
        v_notes := v_notes + (v_operation.note is not null)::integer;
        update supersede.operation o
        set note = null,
            event = case when v_is_own
                then supersede.reduced_event(p_namespace, o.event, p_fact_id)
                else supersede.without_names(o.event, v_names, p_fact_id, false)
                     || supersede.keyed_selection(o.event) end,
            result = supersede.without_names(o.result, v_names, p_fact_id, true),
            digest = case when o.digest like 'k:%' then o.digest
                          else supersede.keyed_digest('event', o.digest) end,
            -- A handle that nobody said and that is no ref is a hash of the event.
            handle = case when v_is_own then null
                          when o.event ? 'handle' or o.handle = o.event ->> 'ref' or o.handle like 'k:%'
                          then o.handle
                          else supersede.keyed_digest('handle', o.handle) end
        where o.namespace = p_namespace and o.stamp = v_operation.stamp;
    end loop;
    return jsonb_build_object('events', v_own, 'names_in_other_events', v_others, 'notes', v_notes);
end
$$;
