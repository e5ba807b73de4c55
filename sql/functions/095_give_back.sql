-- What a fact took and still holds, given back to its olds when it is retracted. Not where another fact
-- that supersedes the old one stands, where the slot is held, where the old one was ended since, or where it
-- held it by an operation that was undone; nothing to one that was retracted since. p_held is what the
-- retracted fact held until now.
create or replace function supersede.give_back(
    p_namespace text, p_fact_id uuid, p_held tstzmultirange, p_stamp timestamptz)
returns jsonb
language plpgsql
as $$
declare
    v_edge record;
    v_old supersede.fact;
    v_slot uuid;
    v_region tstzmultirange;
    v_part tstzrange;
    v_given jsonb := '[]';
begin
    for v_edge in
        -- Each taking by its own stamp; what a newer one of the pair took is that one's to give back.
        select s.old_fact_id, s.stamp,
               (s.taken - coalesce((
                    select range_agg(t) from supersede.supersedes newer, unnest(newer.taken) as t
                    where newer.namespace = s.namespace and newer.new_fact_id = s.new_fact_id
                      and newer.old_fact_id = s.old_fact_id and newer.stamp > s.stamp), '{}'))
               * p_held as taken
        from supersede.supersedes s
        join supersede.fact f on f.namespace = s.namespace and f.fact_id = s.old_fact_id
        where s.namespace = p_namespace and s.new_fact_id = p_fact_id and s.reason <> 'amendment'
        -- First an old that supersedes others of them, or these would be given what it will stand in the
        -- way of; then what was taken last. Never by id, which is random within a millisecond.
        order by (
            with recursive above(fact_id) as (
                select e.new_fact_id from supersede.supersedes e
                where e.namespace = p_namespace and e.old_fact_id = s.old_fact_id
                  and e.reason <> 'amendment'
                union
                select e.new_fact_id from above a join supersede.supersedes e
                  on e.namespace = p_namespace and e.old_fact_id = a.fact_id and e.reason <> 'amendment')
            select count(*) from above a
            where exists (
                select from supersede.supersedes mine
                where mine.namespace = p_namespace and mine.new_fact_id = p_fact_id
                  and mine.old_fact_id = a.fact_id and mine.reason <> 'amendment')),
            s.stamp desc, f.stamp desc
    loop
        select * into v_old from supersede.fact f
        where f.namespace = p_namespace and f.fact_id = v_edge.old_fact_id;
        v_slot := supersede.slot_of(p_namespace, v_old.subject_key, v_old.predicate_key);
        v_region := v_edge.taken
            - supersede.held(p_namespace, v_old.fact_id)
            - supersede.held_by_successors(p_namespace, v_old.fact_id, p_fact_id)
            - supersede.ended_since(p_namespace, v_old.fact_id, v_edge.stamp)
            - supersede.withdrawn_before(p_namespace, v_old.fact_id, v_edge.stamp, null)
            - coalesce((supersede.slot_held(p_namespace, v_slot, array[p_fact_id])).region, '{}');
        continue when isempty(v_region) or v_old.claim is null
            or supersede.retracted_since(p_namespace, v_old.fact_id, v_edge.stamp);
        foreach v_part in array (select array_agg(r) from unnest(v_region) as r) loop
            perform supersede.insert_version(p_namespace, v_old.fact_id, v_part, v_slot, p_stamp);
        end loop;
        v_given := v_given || jsonb_build_object(
            'id', v_old.fact_id, 'ref', supersede.first_ref(p_namespace, v_old.fact_id),
            'valid', supersede.iso_periods(v_region));
    end loop;
    return v_given;
end
$$;
