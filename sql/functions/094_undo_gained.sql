-- One fact of an operation that is undone: what it gained by it and has kept is cut. What others took of that,
-- or gave it again, is theirs. standing: where it is believed by others' grace.
create or replace function supersede.undo_gained(
    p_namespace text, p_fact_id uuid, p_undone timestamptz, p_stamp timestamptz,
    out withdrawn tstzmultirange, out standing tstzmultirange, out left_alone jsonb)
language plpgsql
as $$
declare
    v_gained tstzmultirange := (supersede.moved_at(p_namespace, p_fact_id, p_undone)).gained;
    v_held tstzmultirange := supersede.held(p_namespace, p_fact_id);
    v_taken tstzmultirange;
    v_standing timestamptz[];
    v_other record;
begin
    withdrawn := supersede.kept(p_namespace, p_fact_id, array[p_undone], null);
    standing := (v_gained - withdrawn) * v_held;
    v_taken := v_gained - withdrawn - v_held;
    left_alone := supersede.left_alone(p_namespace, p_fact_id, standing, 'believed_since', null);
    v_standing := supersede.standing(p_namespace, array(
        select distinct s.stamp
        from supersede.supersedes s
        where s.namespace = p_namespace and s.old_fact_id = p_fact_id and s.stamp > p_undone
          and s.taken && v_taken));
    for v_other in
        select s.new_fact_id, s.taken * v_taken as region
        from supersede.supersedes s
        where s.namespace = p_namespace and s.old_fact_id = p_fact_id and s.stamp > p_undone
          and s.taken && v_taken and s.stamp = any (v_standing)
        order by s.stamp desc
    loop
        left_alone := left_alone || supersede.left_alone(
            p_namespace, p_fact_id, v_taken * v_other.region, 'taken_since', v_other.new_fact_id);
        v_taken := v_taken - v_other.region;
    end loop;
    left_alone := left_alone
        || supersede.left_alone(p_namespace, p_fact_id, v_taken, 'taken_since', null);
    if not isempty(withdrawn) then
        perform supersede.cut(p_namespace, p_fact_id, withdrawn, p_stamp);
        left_alone := left_alone || supersede.built_on(p_namespace, p_fact_id, withdrawn, p_undone);
    end if;
end
$$;
