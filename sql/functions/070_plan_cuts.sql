-- The slot rule, decided before anything is written: what believing p_fact over p_period takes from
-- which fact and why (action "cut"), and which facts hold the same value there already ("hold").
-- p_olds are cut by the caller's reason, whatever their slot.
create or replace function supersede.plan_cuts(
    p_fact supersede.fact, p_slot uuid, p_period tstzmultirange, p_olds uuid[],
    p_reason supersede.reason)
returns table (fact_id uuid, action text, reason supersede.reason, region tstzmultirange)
language sql stable
begin atomic
    select o.fact_id, 'cut', p_reason, supersede.held(p_fact.namespace, o.fact_id) * p_period
    from unnest(p_olds) with ordinality as o(fact_id, place)
    union all
    select s.fact_id,
           case when s.same and s.trust >= p_fact.trust then 'hold' else 'cut' end,
           case when s.same then 'refinement'
                when exists (
                    select from supersede.fact_version v
                    where v.is_open and v.namespace = p_fact.namespace and v.fact_id = s.fact_id
                      and not lower_inf(s.region)
                      and (lower_inf(v.valid_time) or lower(v.valid_time) < lower(s.region)))
                then 'change' else 'correction' end::supersede.reason,
           s.region
    from (
        select v.fact_id, f.trust, f.value_key = p_fact.value_key as same,
               range_agg(v.valid_time) * p_period as region
        from supersede.fact_version v
        join supersede.fact f on f.namespace = v.namespace and f.fact_id = v.fact_id
        where v.is_open and v.namespace = p_fact.namespace and v.slot_key = p_slot
          and v.valid_time && p_period
          and v.fact_id <> p_fact.fact_id and v.fact_id <> all (p_olds)
        group by v.fact_id, f.trust, f.value_key) as s;
end;
