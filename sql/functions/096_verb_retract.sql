create or replace function supersede.verb_retract(
    p_namespace text, p_event jsonb, p_stamp timestamptz)
returns jsonb
language plpgsql
as $$
declare
    v_fact_id uuid := supersede.resolve(p_namespace, p_event ->> 'ref');
    v_taken tstzmultirange := supersede.held(p_namespace, v_fact_id);
begin
    perform supersede.require_unmoved(p_namespace, array[v_fact_id], null, null, p_event);
    perform supersede.require_current(
        p_namespace, array[v_fact_id], tstzmultirange(tstzrange(null, null)),
        'there is nothing to retract; look at its history');
    perform supersede.cut(p_namespace, v_fact_id, v_taken, p_stamp);
    return supersede.written(p_namespace, v_fact_id, false, '{}', '[]')
        || jsonb_build_object('taken', supersede.iso_periods(v_taken))
        || case when coalesce((p_event ->> 'give_back')::boolean, false) then jsonb_build_object(
               'given_back', supersede.give_back(p_namespace, v_fact_id, v_taken, p_stamp))
           else '{}' end;
end
$$;
