-- The result of a write about one fact, as recorded in the ledger and handed to the caller. A vector of a
-- space that is not the active one does not count: most questions will not find it.
create or replace function supersede.written(
    p_namespace text, p_fact_id uuid, p_created boolean, p_believed tstzmultirange, p_cuts jsonb)
returns jsonb
language sql stable
return (
    select jsonb_build_object(
        'id', f.fact_id, 'ref', supersede.first_ref(p_namespace, f.fact_id),
        'created', p_created,
        'valid', supersede.iso_periods(p_believed),
        'supersedes', p_cuts,
        'embedded', exists (
            select from supersede.embedding e
            join supersede.embedding_space s on s.id = e.space_id and s.active
            where e.namespace = p_namespace and e.fact_id = f.fact_id))
    from supersede.fact f
    where f.namespace = p_namespace and f.fact_id = p_fact_id);
