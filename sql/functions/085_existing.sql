-- The fact an event names with by=: it must be believed somewhere, and be none of the olds. Content is
-- its own, so the event may bring none.
create or replace function supersede.existing(p_namespace text, p_event jsonb, p_olds uuid[])
returns supersede.fact
language plpgsql stable
as $$
declare
    v_fact supersede.fact;
    v_said text;
begin
    select string_agg(k, ', ') into v_said
    from jsonb_object_keys(p_event) as k
    where k in ('claim', 'subject', 'predicate', 'object', 'kind', 'data', 'trust', 'ref', 'id');
    if v_said is not null then
        perform supersede.fail('SU013', format(
            'by= names an existing fact, whose content is its own; leave out %s', v_said));
    end if;
    select * into v_fact from supersede.fact f
    where f.namespace = p_namespace and f.fact_id = supersede.resolve(p_namespace, p_event ->> 'by');
    if v_fact.fact_id = any (p_olds) then
        perform supersede.fail('SU006', format('%s would supersede itself', p_event ->> 'by'));
    end if;
    if isempty(supersede.held(p_namespace, v_fact.fact_id)) then
        perform supersede.fail('SU005', format('%s is not believed at any time', p_event ->> 'by'),
            jsonb_build_object('facts', jsonb_build_array(p_event ->> 'by')));
    end if;
    return v_fact;
end
$$;
