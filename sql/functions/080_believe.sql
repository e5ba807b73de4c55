-- Believe a fact over a period, by the slot rule: the one way in which validity is given.
-- p_is_new: the row is a candidate, inserted only where something is left to believe; otherwise the
-- fact exists and what it lacks is inserted. Whatever is cut gets an edge from the fact, or from the
-- holder of the same value where no new fact came of it.
create or replace function supersede.believe(
    p_fact supersede.fact, p_is_new boolean, p_period tstzmultirange, p_olds uuid[],
    p_reason supersede.reason, p_event jsonb, p_stamp timestamptz,
    p_embedding halfvec, p_space smallint, p_truncated boolean)
returns jsonb
language plpgsql
as $$
declare
    v_namespace text := p_fact.namespace;
    v_slot uuid := case when p_fact.predicate_key is not null
        then supersede.slot_of(v_namespace, p_fact.subject_key, p_fact.predicate_key) end;
    v_plan record;
    v_cut record;
    v_cuts jsonb := '[]';
    v_gaps tstzmultirange := p_period;
    v_gap tstzrange;
    v_fact_id uuid := p_fact.fact_id;
    v_created boolean;
    v_asserted_at timestamptz := coalesce(
        supersede.instant(p_event ->> 'asserted', 'asserted'),
        case when p_is_new then p_fact.asserted_at end,
        lower(p_period));
begin
    perform supersede.require_unmoved(
        v_namespace, case when p_is_new then p_olds else p_olds || v_fact_id end,
        p_fact, v_slot, p_event);
    if v_slot is not null or cardinality(p_olds) > 0 then
        select array_agg(p.fact_id) filter (where p.action = 'cut') as cut_ids,
               array_agg(p.reason) filter (where p.action = 'cut') as reasons,
               array_agg(p.region) filter (where p.action = 'cut') as regions,
               array_agg(p.fact_id order by p.region) filter (where p.action = 'hold') as holders,
               coalesce(range_agg(p.region) filter (where p.action = 'hold'), '{}') as held,
               array_agg(p.fact_id) filter (
                   where p.action = 'cut' and p.reason in ('refinement', 'duplicate')) as inherit
        into v_plan
        from supersede.plan_cuts(p_fact, v_slot, p_period, p_olds, p_reason) as p;
        v_gaps := v_gaps - v_plan.held;
    else
        select null::uuid[] as cut_ids, null::uuid[] as holders, null::uuid[] as inherit into v_plan;
    end if;
    if not p_is_new then
        v_gaps := v_gaps - supersede.held(v_namespace, v_fact_id);
    end if;
    v_created := p_is_new and not isempty(v_gaps);
    if p_is_new and not v_created then
        -- Regions are sorted, so the first holder is the one that holds the period's start.
        v_fact_id := v_plan.holders[1];
    end if;
    if v_plan.cut_ids is not null and not v_created then
        -- A new fact has superseded nothing yet, so no edge of its own can close a ring.
        perform supersede.refuse_cycle(v_namespace, v_fact_id, v_plan.cut_ids);
    end if;
    if v_created then
        -- A source's own date says more about the claim than the day from which it holds.
        p_fact.asserted_at := coalesce(
            supersede.instant(p_event ->> 'asserted', 'asserted'),
            (select min(supersede.instant(s ->> 1, 'asserted'))
             from jsonb_array_elements(p_event -> 'sources') as s where jsonb_typeof(s) = 'array'),
            v_asserted_at);
        perform supersede.insert_fact(p_fact, p_embedding, p_space, p_truncated);
    end if;

    if v_plan.cut_ids is not null then
        for v_cut in
            select * from unnest(v_plan.cut_ids, v_plan.reasons, v_plan.regions)
                          as c(fact_id, reason, region)
        loop
            if not isempty(v_cut.region) and not coalesce((p_event ->> 'over_trust')::boolean, false) then
                perform supersede.check_trust(v_namespace, p_fact.trust, v_cut.fact_id, v_cut.reason);
            end if;
            perform supersede.cut(v_namespace, v_cut.fact_id, v_cut.region, p_stamp);
            insert into supersede.supersedes (namespace, new_fact_id, old_fact_id, reason, taken, stamp)
            values (v_namespace, v_fact_id, v_cut.fact_id, v_cut.reason, v_cut.region, p_stamp);
            v_cuts := v_cuts || jsonb_build_object(
                'id', v_cut.fact_id, 'ref', supersede.first_ref(v_namespace, v_cut.fact_id),
                'reason', v_cut.reason, 'taken', supersede.iso_periods(v_cut.region));
        end loop;
    end if;

    if not isempty(v_gaps) then
        for v_gap in select * from unnest(v_gaps) loop
            perform supersede.insert_version(v_namespace, v_fact_id, v_gap, v_slot, p_stamp);
        end loop;
    end if;
    if p_is_new and p_event ? 'ref' then
        perform supersede.name_fact(v_namespace, v_fact_id, p_event ->> 'ref', p_stamp);
    end if;
    perform supersede.cite_holders(
        v_namespace, v_fact_id, v_plan.holders, p_event -> 'sources', v_asserted_at,
        v_plan.inherit, p_stamp);
    return supersede.written(v_namespace, v_fact_id, v_created, v_gaps, v_cuts);
end
$$;
