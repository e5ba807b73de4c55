-- What was believed of any part of a period: one row per fact, whatever number of its versions overlap it.
create or replace function supersede.facts_during(
    valid_during tstzrange, known_at timestamptz default null, namespaces text[] default null)
returns table (
    namespace text, fact_id uuid, ref text, claim text, subject text, predicate text, object text,
    kind text, data jsonb, trust supersede.trust, valid_from timestamptz, valid_to timestamptz,
    asserted_at timestamptz, recorded_at timestamptz, sources text[], periods tstzrange[])
language sql stable
begin atomic
    select f.namespace, f.fact_id,
           (select r.ref from supersede.fact_ref r
            where r.namespace = f.namespace and r.fact_id = f.fact_id and r.stamp <= held.known_at
            order by r.stamp, r.ref limit 1),
           f.claim, f.subject, f.predicate, f.object, f.kind, f.data, f.trust,
           lower(held.periods[1]), upper(held.periods[1]), f.asserted_at, f.stamp,
           array(select e.source_uri from supersede.evidence e
                 where e.namespace = f.namespace and e.fact_id = f.fact_id and e.stamp <= held.known_at
                 group by e.source_uri
                 order by bool_and(e.inherited_from is not null), max(e.asserted_at) desc nulls last,
                          max(e.stamp) desc, e.source_uri),
           held.periods
    from (
        select k.namespace, k.known_at, v.fact_id, array_agg(v.valid_time order by v.valid_time) as periods
        from (
            select n.namespace, least(coalesce(facts_during.known_at, n.head), n.head) as known_at
            from supersede.namespace n
            where facts_during.namespaces is null or n.namespace = any (facts_during.namespaces)) as k
        join supersede.fact_version v
          on v.namespace = k.namespace
             and supersede.is_current_within(v.valid_time, v.tx_time, facts_during.valid_during, k.known_at)
        group by k.namespace, k.known_at, v.fact_id) as held
    join supersede.fact f
      on f.namespace = held.namespace and f.fact_id = held.fact_id and f.claim is not null;
end;

comment on function supersede.facts_during(tstzrange, timestamptz, text[]) is
    'The facts believed of any part of valid_during as known at known_at (else now), each once: periods '
    'are all of its that overlap, earliest first and whole; valid_from and valid_to are those of the first.';
