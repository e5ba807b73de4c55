-- What was believed at a point of the two times. Plain SQL with every name qualified, without SET or
-- SECURITY DEFINER, so that it is inlined and a caller's WHERE reaches the indexes.
create or replace function supersede.facts_as_of(
    valid_at timestamptz default null, known_at timestamptz default null, namespaces text[] default null)
returns table (
    namespace text, fact_id uuid, ref text, claim text, subject text, predicate text, object text,
    kind text, data jsonb, trust supersede.trust, valid_from timestamptz, valid_to timestamptz,
    asserted_at timestamptz, recorded_at timestamptz, sources text[])
language sql stable
begin atomic
    select f.namespace, f.fact_id,
           (select r.ref from supersede.fact_ref r
            where r.namespace = f.namespace and r.fact_id = f.fact_id and r.stamp <= k.known_at
            order by r.stamp, r.ref limit 1),
           f.claim, f.subject, f.predicate, f.object, f.kind, f.data, f.trust,
           lower(v.valid_time), upper(v.valid_time), f.asserted_at, f.stamp,
           array(select e.source_uri from supersede.evidence e
                 where e.namespace = f.namespace and e.fact_id = f.fact_id and e.stamp <= k.known_at
                 group by e.source_uri
                 order by bool_and(e.inherited_from is not null), max(e.asserted_at) desc nulls last,
                          max(e.stamp) desc, e.source_uri)
    from (
        select n.namespace, least(coalesce(facts_as_of.known_at, n.head), n.head) as known_at,
               coalesce(facts_as_of.valid_at, greatest(supersede.clock(), n.head)) as valid_at
        from supersede.namespace n
        where facts_as_of.namespaces is null or n.namespace = any (facts_as_of.namespaces)) as k
    join supersede.fact_version v
      on v.namespace = k.namespace
         and supersede.is_current(v.valid_time, v.tx_time, k.valid_at, k.known_at)
    join supersede.fact f
      on f.namespace = v.namespace and f.fact_id = v.fact_id and f.claim is not null;
end;

comment on function supersede.facts_as_of(timestamptz, timestamptz, text[]) is
    'The facts believed at valid_at as known at known_at (each: else now), in namespaces (else all). '
    'A known_at past a namespace''s head is clamped to it, however far it lies ahead.';
