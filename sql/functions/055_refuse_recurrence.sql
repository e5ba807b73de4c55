-- What was erased is not recorded again, under whatever name, until its erasure is lifted.
create or replace function supersede.refuse_recurrence(p_fact supersede.fact) returns void
language plpgsql stable
as $$
declare
    v_digests record;
    v_erased record;
begin
    if not exists (select from supersede.erasure e where e.namespace = p_fact.namespace) then
        return;
    end if;
    v_digests := supersede.erasure_digests(p_fact);
    select e.fact_id, e.stamp into v_erased
    from supersede.erasure e
    where e.namespace = p_fact.namespace and e.lifted_at is null
      and (e.digest = v_digests.digest or e.value_digest = v_digests.value_digest)
    order by e.stamp desc
    limit 1;
    if found then
        perform supersede.fail('SU018', format(
            'this was erased at %s, as fact %s; it may be recorded again only after lift_erasure of that '
            'fact', supersede.iso(v_erased.stamp), v_erased.fact_id),
            jsonb_build_object('fact', v_erased.fact_id, 'namespace', p_fact.namespace,
                               'erased_at', supersede.iso(v_erased.stamp)));
    end if;
end
$$;
