-- The facts an event names as old, in its order, each once.
create or replace function supersede.olds_of(p_namespace text, p_event jsonb) returns uuid[]
language plpgsql stable
as $$
declare
    v_olds uuid[];
begin
    select array_agg(r.fact_id order by r.place) into v_olds
    from (
        select supersede.resolve(p_namespace, o.name) as fact_id, min(o.place) as place
        from jsonb_array_elements_text(p_event -> 'old') with ordinality as o(name, place)
        group by 1) as r;
    if v_olds is null then
        perform supersede.fail('SU001', format(
            '%s needs at least one fact to act on', p_event ->> 'op'));
    end if;
    return v_olds;
end
$$;
