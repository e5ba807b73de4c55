-- remember, supersede and amend share how a candidate is read from an event.
create or replace function supersede.candidate(
    p_namespace text, p_event jsonb, p_stamp timestamptz, p_asserted_at timestamptz)
returns supersede.fact
language plpgsql
as $$
declare
    v_fact supersede.fact;
begin
    if not p_event ? 'claim' then
        perform supersede.fail('SU013', format('%s needs a claim', p_event ->> 'op'));
    end if;
    v_fact.namespace := p_namespace;
    v_fact.fact_id := coalesce((p_event ->> 'id')::uuid, supersede.new_id());
    v_fact.stamp := p_stamp;
    v_fact.claim := p_event ->> 'claim';
    v_fact.subject := p_event ->> 'subject';
    v_fact.predicate := p_event ->> 'predicate';
    v_fact.object := p_event ->> 'object';
    v_fact.kind := coalesce(p_event ->> 'kind', 'fact');
    v_fact.data := p_event -> 'data';
    v_fact.trust := coalesce(p_event ->> 'trust', 'extracted')::supersede.trust;
    v_fact.asserted_at := coalesce(supersede.instant(p_event ->> 'asserted', 'asserted'), p_asserted_at);
    v_fact.subject_key := supersede.fold(v_fact.subject);
    v_fact.predicate_key := supersede.fold(v_fact.predicate);
    v_fact.object_key := supersede.fold(v_fact.object);
    v_fact.value_key := supersede.hash_key(supersede.fold(coalesce(v_fact.object, v_fact.claim)));
    perform supersede.refuse_recurrence(v_fact);
    return v_fact;
end
$$;
