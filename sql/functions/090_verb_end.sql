create or replace function supersede.verb_end(
    p_namespace text, p_event jsonb, p_stamp timestamptz, p_now timestamptz)
returns jsonb
language plpgsql
as $$
declare
    v_fact_id uuid := supersede.resolve(p_namespace, p_event ->> 'ref');
    v_period tstzmultirange := supersede.period(
        coalesce(supersede.instant(p_event ->> 'when', 'when'), p_now),
        supersede.instant(p_event ->> 'until', 'until'));
    v_taken tstzmultirange := supersede.held(p_namespace, v_fact_id) * v_period;
begin
    perform supersede.require_unmoved(p_namespace, array[v_fact_id], null, null, p_event);
    perform supersede.require_current(
        p_namespace, array[v_fact_id], v_period, 'there is nothing to end; look at its history');
    perform supersede.cut(p_namespace, v_fact_id, v_period, p_stamp);
    return supersede.written(p_namespace, v_fact_id, false, '{}', '[]')
        || jsonb_build_object(
            'taken', supersede.iso_periods(v_taken), 'period', supersede.iso_periods(v_period));
end
$$;
