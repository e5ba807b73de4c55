-- Facts of a ledger with their names, vectors and declarations. What is derived from their content (folded
-- keys, lexemes) is derived here, as it will be for the questions that are asked here.
create or replace function supersede.import_facts(p_namespace text, p_lines jsonb[]) returns void
language plpgsql
as $$
declare
    v_wrong record;
begin
    insert into supersede.fact
        (namespace, fact_id, stamp, claim, subject, predicate, object, kind, data, trust, asserted_at,
         subject_key, predicate_key, object_key, value_key, search)
    select p_namespace, (w.r ->> 'id')::uuid, w.stamp, w.r ->> 'claim', w.r ->> 'subject',
           w.r ->> 'predicate', w.r ->> 'object', w.r ->> 'kind', w.r -> 'data',
           (w.r ->> 'trust')::supersede.trust, (w.r ->> 'asserted')::timestamptz,
           supersede.fold(w.r ->> 'subject'), supersede.fold(w.r ->> 'predicate'),
           supersede.fold(w.r ->> 'object'),
           supersede.hash_key(supersede.fold(coalesce(w.r ->> 'object', w.r ->> 'claim'))),
           to_tsvector(c.text_search, w.r ->> 'claim')
    from supersede.wrote(p_lines, 'facts') as w, supersede.configuration as c;

    insert into supersede.fact_ref (namespace, ref, fact_id, stamp)
    select p_namespace, w.r ->> 'ref', (w.r ->> 'fact')::uuid, w.stamp
    from supersede.wrote(p_lines, 'refs') as w;

    insert into supersede.predicate (namespace, predicate_key, stamp, name, cardinality)
    select p_namespace, supersede.fold(w.r ->> 'name'), w.stamp, w.r ->> 'name', w.r ->> 'cardinality'
    from supersede.wrote(p_lines, 'predicates') as w;

    -- Through the row type: the extension's own types need not be on the search path.
    insert into supersede.embedding (namespace, fact_id, space_id, vector, truncated, stamp)
    select p_namespace, (w.r ->> 'fact')::uuid, s.id,
           (jsonb_populate_record(null::supersede.embedding, w.r)).vector,
           (w.r ->> 'truncated')::boolean, w.stamp
    from supersede.wrote(p_lines, 'vectors') as w
    left join supersede.embedding_space s on s.model = w.r ->> 'space';
    select s.model, s.dimensions, supersede.dimensions(e.vector) as found into v_wrong
    from supersede.wrote(p_lines, 'vectors') as w
    join supersede.embedding_space s on s.model = w.r ->> 'space'
    join supersede.embedding e on e.namespace = p_namespace and e.fact_id = (w.r ->> 'fact')::uuid
                              and e.space_id = s.id
    where supersede.dimensions(e.vector) <> s.dimensions limit 1;
    if found then
        perform supersede.fail('SU011', format('a vector of %s has %s dimensions; the space has %s',
            v_wrong.model, v_wrong.found, v_wrong.dimensions));
    end if;
end
$$;
