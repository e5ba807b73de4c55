-- What a successor takes over from its olds when they share it: subject and predicate, together, and
-- for a refinement or a duplicate the object too. What the event says itself stands.
create or replace function supersede.take_over(
    p_namespace text, p_event jsonb, p_olds uuid[], p_reason supersede.reason)
returns jsonb
language plpgsql stable
as $$
declare
    v_shared record;
    v_taken jsonb := '{}';
begin
    select count(distinct f.subject_key) = 1 and bool_and(f.subject_key is not null)
           and count(distinct coalesce(f.predicate_key, '')) = 1 as pair,
           count(distinct f.object_key) = 1 and bool_and(f.object_key is not null) as object,
           min(f.subject_key) as subject_key, min(f.predicate_key) as predicate_key
    into v_shared
    from supersede.fact f where f.namespace = p_namespace and f.fact_id = any (p_olds);
    if not v_shared.pair
       or supersede.fold(p_event ->> 'subject') <> v_shared.subject_key
       or supersede.fold(p_event ->> 'predicate') <> v_shared.predicate_key
    then
        return p_event;
    end if;
    select jsonb_build_object('subject', f.subject, 'predicate', f.predicate)
           || case when v_shared.object and p_reason in ('refinement', 'duplicate')
                        and (not p_event ? 'predicate'
                             or supersede.fold(p_event ->> 'predicate') = v_shared.predicate_key)
                   then jsonb_build_object('object', f.object) else '{}' end
    into v_taken
    from supersede.fact f where f.namespace = p_namespace and f.fact_id = p_olds[1];
    return jsonb_strip_nulls(v_taken) || p_event;
end
$$;
