-- A refinement or a duplicate stands on what its olds stood on.
create or replace function supersede.inherit_evidence(
    p_namespace text, p_fact_id uuid, p_from uuid[], p_stamp timestamptz)
returns void
language sql
begin atomic
    insert into supersede.evidence
        (namespace, fact_id, source_uri, asserted_at, stamp, inherited_from)
    select distinct on (e.source_uri)
           p_namespace, p_fact_id, e.source_uri, e.asserted_at, p_stamp, e.fact_id
    from supersede.evidence e
    where e.namespace = p_namespace and e.fact_id = any (p_from) and e.fact_id <> p_fact_id
      and not exists (
          select from supersede.evidence mine
          where mine.namespace = p_namespace and mine.fact_id = p_fact_id
            and mine.source_uri = e.source_uri)
    order by e.source_uri, e.asserted_at desc nulls last, e.fact_id;
end;
