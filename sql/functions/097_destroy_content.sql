-- Everything that says what a fact said, outside the ledger. Evidence that other facts inherited from it is
-- theirs and stays.
create or replace function supersede.destroy_content(p_namespace text, p_fact_id uuid) returns jsonb
language plpgsql
as $$
declare
    v_refs integer;
    v_evidence integer;
    v_vectors integer;
    v_slot_keys integer;
    v_contested integer;
begin
    update supersede.fact f
    set claim = null, subject = null, predicate = null, object = null, data = null,
        subject_key = null, predicate_key = null, object_key = null, value_key = null, search = null
    where f.namespace = p_namespace and f.fact_id = p_fact_id;

    delete from supersede.fact_ref r where r.namespace = p_namespace and r.fact_id = p_fact_id;
    get diagnostics v_refs = row_count;
    delete from supersede.evidence e where e.namespace = p_namespace and e.fact_id = p_fact_id;
    get diagnostics v_evidence = row_count;
    delete from supersede.embedding e where e.namespace = p_namespace and e.fact_id = p_fact_id;
    get diagnostics v_vectors = row_count;
    -- A slot's key is a hash of subject and predicate without the key.
    update supersede.fact_version v set slot_key = null, embedding = null
    where not v.is_open and v.namespace = p_namespace and v.fact_id = p_fact_id
      and (v.slot_key is not null or v.embedding is not null);
    get diagnostics v_slot_keys = row_count;
    update supersede.contested c set note = null
    where c.namespace = p_namespace and p_fact_id in (c.fact_id, c.candidate_id) and c.note is not null;
    get diagnostics v_contested = row_count;
    return jsonb_build_object('claims', 1, 'refs', v_refs, 'evidence', v_evidence, 'vectors', v_vectors,
        'slot_keys', v_slot_keys, 'contested_notes', v_contested);
end
$$;
