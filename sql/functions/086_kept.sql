-- What a fact gained at some stamps and has kept ever since, up to another stamp (NULL: now). What another
-- operation took is no longer theirs, whoever believed it again, unless that taking was undone.
create or replace function supersede.kept(
    p_namespace text, p_fact_id uuid, p_stamps timestamptz[], p_until timestamptz)
returns tstzmultirange
language plpgsql stable
as $$
declare
    v_kept tstzmultirange := '{}';
    v_taken tstzmultirange;
    v_takers timestamptz[] := '{}';
    v_takings tstzmultirange[] := '{}';
    v_at record;
    v_place integer;
begin
    if cardinality(p_stamps) = 0 then
        return v_kept;
    end if;
    for v_at in
        -- No condition on the verb, or an index without the stamp might be taken to look up one.
        select m.stamp, m.gained, m.lost,
               (select case o.verb when 'undo' then (o.event ->> 'stamp')::timestamptz end
                from supersede.operation o
                where o.namespace = p_namespace and o.stamp = m.stamp) as undoes
        from supersede.moves(p_namespace, p_fact_id) as m
        where p_until is null or m.stamp < p_until
        order by m.stamp
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
        if v_at.stamp = any (p_stamps) then
            v_kept := v_kept + v_at.gained;
        end if;
    end loop;
    return v_kept;
end
$$;
