-- An amendment takes nothing: the fact is believed beside what it amends, which need not be believed any
-- more (a document may still be amended after another replaced it).
create or replace function supersede.verb_amend(
    p_namespace text, p_event jsonb, p_stamp timestamptz, p_now timestamptz, p_asserted_at timestamptz,
    p_embedding halfvec, p_space smallint, p_truncated boolean)
returns jsonb
language plpgsql
as $$
declare
    v_olds uuid[] := supersede.olds_of(p_namespace, p_event);
    v_is_new boolean := not p_event ? 'by';
    v_fact supersede.fact;
    v_period tstzmultirange;
    v_result jsonb;
    v_fact_id uuid;
begin
    if v_is_new then
        v_fact := supersede.candidate(p_namespace, p_event, p_stamp, p_asserted_at);
        v_period := supersede.period_ahead(v_fact, p_event, p_now, '{}');
    else
        v_fact := supersede.existing(p_namespace, p_event, v_olds);
        v_period := supersede.period_by(v_fact, p_event, p_now, '{}');
    end if;
    perform supersede.require_unmoved(p_namespace, v_olds, null, null, p_event);
    v_result := supersede.believe(
        v_fact, v_is_new, v_period, '{}', null, p_event, p_stamp, p_embedding, p_space, p_truncated);
    v_fact_id := (v_result ->> 'id')::uuid;
    if v_fact_id = any (v_olds) then
        perform supersede.fail('SU006', format(
            '%s would amend itself', supersede.name_of(p_namespace, v_fact_id)));
    end if;
    if exists (
        select from jsonb_array_elements(v_result -> 'supersedes') as cut
        where (cut ->> 'id')::uuid = any (v_olds))
    then
        perform supersede.fail('SU013', 'this would take validity from what it amends, since both stand in '
            'one slot with different values; use supersede, or leave out subject and predicate');
    end if;
    insert into supersede.supersedes (namespace, new_fact_id, old_fact_id, reason, taken, stamp)
    select p_namespace, v_fact_id, o, 'amendment', '{}', p_stamp from unnest(v_olds) as o;
    return v_result || jsonb_build_object('amends', (
        select jsonb_agg(jsonb_build_object(
            'id', o.fact_id, 'ref', supersede.first_ref(p_namespace, o.fact_id)) order by o.place)
        from unnest(v_olds) with ordinality as o(fact_id, place)));
end
$$;
