-- A fact whose content was destroyed can be named in no verb: there is nothing left to act on.
create or replace function supersede.refuse_erased(p_namespace text, p_fact_id uuid) returns void
language plpgsql stable
as $$
declare
    v_stamp timestamptz;
begin
    select max(e.stamp) into v_stamp
    from supersede.erasure e where e.namespace = p_namespace and e.fact_id = p_fact_id;
    if v_stamp is not null then
        perform supersede.fail('SU018', format(
            'fact %s was erased at %s: its content was destroyed and does not come back; lift_erasure lets '
            'the same be recorded anew, as another fact', p_fact_id, supersede.iso(v_stamp)),
            jsonb_build_object('fact', p_fact_id, 'namespace', p_namespace,
                               'erased_at', supersede.iso(v_stamp)));
    end if;
end
$$;
