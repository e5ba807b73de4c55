-- What the operations of ledger lines wrote about facts: edges, evidence, and the rest that names them.
create or replace function supersede.import_links(p_namespace text, p_lines jsonb[]) returns void
language plpgsql
as $$
begin
    insert into supersede.supersedes (namespace, new_fact_id, old_fact_id, reason, taken, stamp)
    select p_namespace, (w.r ->> 'new')::uuid, (w.r ->> 'old')::uuid, (w.r ->> 'reason')::supersede.reason,
           (select coalesce(range_agg(tstzrange((p ->> 0)::timestamptz, (p ->> 1)::timestamptz)), '{}')
            from jsonb_array_elements(w.r -> 'taken') as p), w.stamp
    from supersede.wrote(p_lines, 'edges') as w;

    insert into supersede.evidence (namespace, fact_id, source_uri, asserted_at, stamp, inherited_from)
    select p_namespace, (w.r ->> 'fact')::uuid, w.r ->> 'source', (w.r ->> 'asserted')::timestamptz,
           w.stamp, (w.r ->> 'inherited_from')::uuid
    from supersede.wrote(p_lines, 'evidence') as w;

    insert into supersede.derivation (namespace, summary_id, premise_id, stamp)
    select p_namespace, (w.r ->> 'summary')::uuid, (w.r ->> 'premise')::uuid, w.stamp
    from supersede.wrote(p_lines, 'derivations') as w;

    insert into supersede.contested (namespace, fact_id, candidate_id, stamp, note)
    select p_namespace, (w.r ->> 'fact')::uuid, (w.r ->> 'candidate')::uuid, w.stamp, w.r ->> 'note'
    from supersede.wrote(p_lines, 'contested') as w;

    insert into supersede.erasure (namespace, fact_id, stamp, digest, lifted_at, value_digest)
    select p_namespace, (w.r ->> 'fact')::uuid, w.stamp, w.r ->> 'digest',
           (w.r ->> 'lifted')::timestamptz, w.r ->> 'value_digest'
    from supersede.wrote(p_lines, 'erasures') as w;
end
$$;
