-- What of an event stays when the fact that it was about is erased: the verb, times, reason, and the ids of
-- the facts that it named, which are structure; nothing that says what the fact said.
create or replace function supersede.reduced_event(p_namespace text, p_event jsonb, p_fact_id uuid)
returns jsonb
language sql stable
return (
    select coalesce(jsonb_object_agg(e.key, e.value), '{}') || '{"erased": true}'::jsonb
        || case when p_event ? 'old' then jsonb_build_object('old', (
               select jsonb_agg(coalesce(r.fact_id::text, o.name) order by o.place)
               from jsonb_array_elements_text(p_event -> 'old') with ordinality as o(name, place)
               left join supersede.fact_ref r on r.namespace = p_namespace and r.ref = o.name)) else '{}' end
        || case when p_event ? 'by' then jsonb_build_object('by', p_fact_id)
                when p_event ? 'ref' and not p_event ? 'claim' then jsonb_build_object('ref', p_fact_id)
                else '{}' end
    from jsonb_each(p_event) as e
    where e.key = any (array[
        'op', 'id', 'recorded_at', 'valid_from', 'valid_to', 'asserted', 'when', 'until', 'reason',
        'stamp', 'if_not_current', 'give_back', 'run', 'kind', 'trust', 'over_trust', 'based_on']));
