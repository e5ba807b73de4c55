-- Believe an existing fact again. It only fills: what another value holds in its slot is not taken.
create or replace function supersede.verb_reinstate(
    p_namespace text, p_event jsonb, p_stamp timestamptz)
returns jsonb
language plpgsql
as $$
declare
    v_fact_id uuid := supersede.resolve(p_namespace, p_event ->> 'ref');
    v_fact supersede.fact;
    v_slot uuid;
    v_period tstzmultirange;
    v_rival record;
    v_gaps tstzmultirange;
    v_gap tstzrange;
begin
    select * into v_fact from supersede.fact f
    where f.namespace = p_namespace and f.fact_id = v_fact_id;
    v_slot := supersede.slot_of(p_namespace, v_fact.subject_key, v_fact.predicate_key);
    perform supersede.require_unmoved(p_namespace, array[v_fact_id], v_fact, v_slot, p_event);
    v_period := supersede.period_covered(supersede.last_taken(p_namespace, v_fact_id), p_event);
    if isempty(v_period) then
        perform supersede.fail('SU001', format(
            'nothing to give back: no validity was taken from %s in that period; say both valid_from and '
            'valid_to to believe it over another', supersede.name_of(p_namespace, v_fact_id)));
    end if;
    v_gaps := v_period - supersede.held(p_namespace, v_fact_id);
    for v_rival in
        select v.fact_id, f.value_key, range_agg(v.valid_time) * v_gaps as region
        from supersede.fact_version v
        join supersede.fact f on f.namespace = v.namespace and f.fact_id = v.fact_id
        where v.is_open and v.namespace = p_namespace and v.slot_key = v_slot
          and v.fact_id <> v_fact_id and v.valid_time && v_gaps
        group by v.fact_id, f.value_key
    loop
        if v_rival.value_key is distinct from v_fact.value_key then
            perform supersede.fail('SU017', format(
                '%s holds the slot over %s; retract it first, or remember the value again',
                supersede.name_of(p_namespace, v_rival.fact_id), supersede.periods_in_words(v_rival.region)),
                jsonb_build_object('holder', supersede.name_of(p_namespace, v_rival.fact_id)));
        end if;
        v_gaps := v_gaps - v_rival.region;
    end loop;
    foreach v_gap in array (select coalesce(array_agg(r), '{}') from unnest(v_gaps) as r) loop
        perform supersede.insert_version(p_namespace, v_fact_id, v_gap, v_slot, p_stamp);
    end loop;
    return supersede.written(p_namespace, v_fact_id, false, v_gaps, '[]');
end
$$;
