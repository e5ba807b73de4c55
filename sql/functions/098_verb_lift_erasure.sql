-- The content does not come back; the same may be recorded anew, as another fact.
create or replace function supersede.verb_lift_erasure(
    p_namespace text, p_event jsonb, p_stamp timestamptz)
returns jsonb
language plpgsql
as $$
declare
    v_erasure record;
begin
    perform supersede.require_reason(p_event);
    select e.fact_id, e.lifted_at into v_erasure
    from supersede.erasure e
    where e.namespace = p_namespace and e.fact_id::text = lower(p_event ->> 'ref')
    order by e.stamp desc
    limit 1;
    if not found then
        perform supersede.fail('SU013', format(
            'fact %s is not erased', supersede.resolve(p_namespace, p_event ->> 'ref')));
    end if;
    if v_erasure.lifted_at is not null then
        perform supersede.fail('SU013', format('the erasure of fact %s was lifted already, at %s',
            v_erasure.fact_id, supersede.iso(v_erasure.lifted_at)));
    end if;
    update supersede.erasure e set lifted_at = p_stamp
    where e.namespace = p_namespace and e.fact_id = v_erasure.fact_id and e.lifted_at is null;
    return supersede.written(p_namespace, v_erasure.fact_id, false, '{}', '[]');
end
$$;
