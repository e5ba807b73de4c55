-- One fact of an operation that is undone: what it lost by it and does not hold now is believed again, but for
-- what later operations, as far as they stand, decided about it. p_standing: where the facts that took it are
-- believed all the same, by others' grace.
create or replace function supersede.undo_lost(
    p_namespace text, p_fact_id uuid, p_undone timestamptz, p_standing tstzmultirange, p_stamp timestamptz,
    out given_back tstzmultirange, out left_alone jsonb)
language plpgsql
as $$
declare
    v_fact supersede.fact;
    v_slot uuid;
    v_guard record;
    v_part tstzrange;
begin
    given_back := (supersede.moved_at(p_namespace, p_fact_id, p_undone)).lost;
    left_alone := '[]';
    if isempty(given_back) then
        return;
    end if;
    select * into v_fact from supersede.fact f where f.namespace = p_namespace and f.fact_id = p_fact_id;
    v_slot := supersede.slot_of(p_namespace, v_fact.subject_key, v_fact.predicate_key);
    for v_guard in
        select g.reason, g.region
        from (values
            (1, 'erased', case when exists (
                select from supersede.erasure e
                where e.namespace = p_namespace and e.fact_id = p_fact_id) then given_back end),
            (2, 'believed_since', supersede.held(p_namespace, p_fact_id)),
            (3, 'retracted_since', case when supersede.retracted_since(p_namespace, p_fact_id, p_undone)
                then given_back end),
            (4, 'undone_since', supersede.withdrawn_before(p_namespace, p_fact_id, p_undone, p_undone)),
            (5, 'ended_since', supersede.ended_since(p_namespace, p_fact_id, p_undone)),
            (6, 'superseded_since', case when exists (
                select from supersede.supersedes s
                where s.namespace = p_namespace and s.old_fact_id = p_fact_id and s.stamp = p_undone)
                then p_standing else '{}' end
                + supersede.superseded_since(p_namespace, p_fact_id, p_undone)
                + supersede.passed_on(p_namespace, p_fact_id, p_undone)),
            (7, 'slot_held', (supersede.slot_held(p_namespace, v_slot, array[p_fact_id])).region)
        ) as g(place, reason, region)
        where not isempty(g.region)
        order by g.place
    loop
        left_alone := left_alone || supersede.left_alone(
            p_namespace, p_fact_id, given_back * v_guard.region, v_guard.reason, null);
        given_back := given_back - v_guard.region;
    end loop;
    foreach v_part in array (select coalesce(array_agg(r), '{}') from unnest(given_back) as r) loop
        perform supersede.insert_version(p_namespace, p_fact_id, v_part, v_slot, p_stamp);
    end loop;
end
$$;
