-- Closes what is open, then destroys the content; ids, periods, edges and stamps stay.
create or replace function supersede.verb_erase(p_namespace text, p_event jsonb, p_stamp timestamptz)
returns jsonb
language plpgsql
as $$
declare
    v_fact_id uuid := supersede.resolve(p_namespace, p_event ->> 'ref');
    v_fact supersede.fact;
    v_taken tstzmultirange := supersede.held(p_namespace, v_fact_id);
    v_digests record;
    v_destroyed jsonb;
begin
    perform supersede.require_reason(p_event);
    perform supersede.require_unmoved(p_namespace, array[v_fact_id], null, null, p_event);
    perform supersede.cut(p_namespace, v_fact_id, v_taken, p_stamp);
    select * into v_fact from supersede.fact f
    where f.namespace = p_namespace and f.fact_id = v_fact_id;
    v_digests := supersede.erasure_digests(v_fact);
    insert into supersede.erasure (namespace, fact_id, stamp, digest, value_digest)
    values (p_namespace, v_fact_id, p_stamp, v_digests.digest, v_digests.value_digest);
    v_destroyed := supersede.destroy_in_ledger(p_namespace, v_fact_id)
        || supersede.destroy_content(p_namespace, v_fact_id);
    return supersede.written(p_namespace, v_fact_id, false, '{}', '[]') || jsonb_build_object(
        'taken', supersede.iso_periods(v_taken),
        'certificate', jsonb_build_object(
            'namespace', p_namespace, 'fact_id', v_fact_id, 'erased_at', supersede.iso(p_stamp),
            'digest', v_digests.digest, 'destroyed', v_destroyed,
            'remains', jsonb_build_array(
                'Dead rows stay in the files of this database until `supersede db scrub` has rewritten its '
                'tables.',
                'The write-ahead log and its archives hold the content until they are recycled or deleted.',
                'A replica holds it until it has replayed this operation and the scrub.',
                'Backups and dumps made before hold it; after restoring one, erase again.',
                'Answers, prompts, exports and logs that left the database before are beyond its reach.',
                'Facts that say the same in other words, and those that took over its subject or its '
                'sources, are facts of their own.')));
end
$$;
