-- What a fact gained at a stamp and has kept ever since, up to another stamp (NULL: now). What another
-- operation took is no longer that one's, whoever believed it again, unless that taking was undone.
create or replace function supersede.kept(
    p_namespace text, p_fact_id uuid, p_stamp timestamptz, p_until timestamptz)
returns tstzmultirange
language plpgsql stable
as $$
declare
    v_kept tstzmultirange := (supersede.moved_at(p_namespace, p_fact_id, p_stamp)).gained;
    v_taken tstzmultirange;
    v_takers timestamptz[] := '{}';
    v_takings tstzmultirange[] := '{}';
    v_at record;
    v_place integer;
begin
    if isempty(v_kept) then
        return v_kept;
    end if;
    for v_at in
        select s.stamp, m.gained, m.lost,
               (select supersede.instant(o.event ->> 'stamp', 'stamp') from supersede.operation o
                where o.namespace = p_namespace and o.stamp = s.stamp and o.verb = 'undo') as undoes
        from (
            select lower(v.tx_time) as stamp from supersede.fact_version v
            where v.namespace = p_namespace and v.fact_id = p_fact_id
            union
            select upper(v.tx_time) from supersede.fact_version v
            where v.namespace = p_namespace and v.fact_id = p_fact_id and not v.is_open) as s
        cross join lateral supersede.moved_at(p_namespace, p_fact_id, s.stamp) as m
        where s.stamp > p_stamp and (p_until is null or s.stamp < p_until)
        order by s.stamp
    loop
        v_taken := v_kept * v_at.lost;
        if not isempty(v_taken) then
            v_takers := v_takers || v_at.stamp;
            v_takings := v_takings || v_taken;
            v_kept := v_kept - v_taken;
        end if;
        v_place := array_position(v_takers, v_at.undoes);
        if v_place is not null then
            v_kept := v_kept + v_takings[v_place] * v_at.gained;
        end if;
    end loop;
    return v_kept;
end
$$;
