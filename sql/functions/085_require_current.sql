-- Every old must be believed somewhere in the period; what is not is named, and nothing changes.
create or replace function supersede.require_current(
    p_namespace text, p_olds uuid[], p_period tstzmultirange)
returns void
language plpgsql stable
as $$
declare
    v_missing text[];
    v_periods jsonb := supersede.iso_periods(p_period);
begin
    select array_agg(supersede.name_of(p_namespace, o.fact_id) order by o.place) into v_missing
    from unnest(p_olds) with ordinality as o(fact_id, place)
    where isempty(supersede.held(p_namespace, o.fact_id) * p_period);
    if v_missing is not null then
        perform supersede.fail('SU005', format(
            'not believed anywhere in the period %s: %s; look at its history, or record the link alone '
            'with if_not_current="link"', v_periods, array_to_string(v_missing, ', ')),
            jsonb_build_object('facts', v_missing, 'period', v_periods));
    end if;
end
$$;
