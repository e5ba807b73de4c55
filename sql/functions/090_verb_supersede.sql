create or replace function supersede.verb_supersede(
    p_namespace text, p_event jsonb, p_stamp timestamptz, p_now timestamptz, p_asserted_at timestamptz,
    p_embedding halfvec, p_space smallint, p_truncated boolean)
returns jsonb
language plpgsql
as $$
declare
    v_olds uuid[] := supersede.olds_of(p_namespace, p_event);
    v_reason supersede.reason := coalesce(p_event ->> 'reason', 'change')::supersede.reason;
    v_is_new boolean := not p_event ? 'by';
    v_fact supersede.fact;
    v_covered tstzmultirange;
    v_period tstzmultirange;
begin
    if v_is_new then
        v_fact := supersede.candidate(
            p_namespace, supersede.take_over(p_namespace, p_event, v_olds, v_reason),
            p_stamp, p_asserted_at);
    else
        v_fact := supersede.existing(p_namespace, p_event, v_olds);
    end if;
    if v_reason <> 'change' then
        select coalesce(range_agg(h.held), '{}') into v_covered
        from unnest(v_olds) as o(fact_id),
             unnest(supersede.held(p_namespace, o.fact_id)) as h(held);
        v_period := supersede.period_covered(v_covered, p_event);
    elsif v_is_new then
        v_period := supersede.period_ahead(v_fact, p_event, p_now, v_olds);
    else
        v_period := supersede.period_by(v_fact, p_event, p_now, v_olds);
    end if;
    if isempty(v_period) then
        perform supersede.fail('SU005', format(
            'no validity is left to take: %s', (
                select string_agg(supersede.name_of(p_namespace, o), ', ') from unnest(v_olds) as o)),
            jsonb_build_object('facts', (
                select jsonb_agg(supersede.name_of(p_namespace, o)) from unnest(v_olds) as o)));
    end if;
    if p_event ->> 'if_not_current' is distinct from 'link' then
        perform supersede.require_current(p_namespace, v_olds, v_period,
            'look at its history, or record the link alone with if_not_current="link"');
    end if;
    return supersede.believe(
        v_fact, v_is_new, v_period, v_olds, v_reason,
        p_event, p_stamp, p_embedding, p_space, p_truncated);
end
$$;
