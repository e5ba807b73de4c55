-- The facts that an answer's basis stood on: its point or period, and per namespace nothing after its head.
create or replace function supersede.facts_on(basis jsonb)
returns table (
    namespace text, fact_id uuid, ref text, claim text, subject text, predicate text, object text,
    kind text, data jsonb, trust supersede.trust, valid_from timestamptz, valid_to timestamptz,
    asserted_at timestamptz, recorded_at timestamptz, sources text[])
language sql stable
begin atomic
    select f.*
    from jsonb_each_text(facts_on.basis -> 'heads') as h(namespace, head)
    cross join lateral supersede.facts_as_of(
        supersede.instant(facts_on.basis ->> 'valid_at', 'valid_at'),
        least(supersede.instant(facts_on.basis ->> 'known_at', 'known_at'),
              supersede.instant(h.head, 'head')),
        array[h.namespace]) as f
    where supersede.has_seen(h.namespace, supersede.instant(h.head, 'head'))
      and facts_on.basis ->> 'valid_during' is null
    union all
    select f.namespace, f.fact_id, f.ref, f.claim, f.subject, f.predicate, f.object, f.kind, f.data, f.trust,
           f.valid_from, f.valid_to, f.asserted_at, f.recorded_at, f.sources
    from jsonb_each_text(facts_on.basis -> 'heads') as h(namespace, head)
    cross join lateral supersede.facts_during(
        tstzrange(supersede.instant(facts_on.basis -> 'valid_during' ->> 0, 'valid_during'),
                  supersede.instant(facts_on.basis -> 'valid_during' ->> 1, 'valid_during')),
        least(supersede.instant(facts_on.basis ->> 'known_at', 'known_at'),
              supersede.instant(h.head, 'head')),
        array[h.namespace]) as f
    where supersede.has_seen(h.namespace, supersede.instant(h.head, 'head'))
      and facts_on.basis ->> 'valid_during' is not null;
end;

comment on function supersede.facts_on(jsonb) is
    'The facts current at the point (or in the period) of an answer''s basis (its JSON), as that answer saw '
    'them.';
