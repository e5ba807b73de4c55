-- Every old must be believed somewhere in the period; what is not is named, and nothing changes.
create or replace function supersede.require_current(
    p_namespace text, p_olds uuid[], p_period tstzmultirange, p_advice text)
returns void
language plpgsql stable
as $$
declare
    v_missing text[];
    v_when text := 'at any time';
begin
    select array_agg(supersede.name_of(p_namespace, o.fact_id) order by o.place) into v_missing
    from unnest(p_olds) with ordinality as o(fact_id, place)
    where isempty(supersede.held(p_namespace, o.fact_id) * p_period);
    if v_missing is not null then
        if p_period <> tstzmultirange(tstzrange(null, null)) then
            v_when := 'in the period ' || supersede.periods_in_words(p_period);
        end if;
        perform supersede.fail('SU005', format(
            'not believed %s: %s; %s', v_when, array_to_string(v_missing, ', '), p_advice),
            jsonb_build_object('facts', v_missing, 'period', supersede.iso_periods(p_period)));
    end if;
end
$$;
