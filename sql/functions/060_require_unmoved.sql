-- Compare what a decision was based on with what is there: of the facts it acts on, and of those that were
-- ever in the slot of p_fact, no version may have been opened or closed after the stamp that it had seen.
create or replace function supersede.require_unmoved(
    p_namespace text, p_facts uuid[], p_fact supersede.fact, p_slot uuid, p_event jsonb)
returns void
language plpgsql stable
as $$
declare
    v_seen timestamptz := supersede.instant(p_event ->> 'based_on', 'based_on');
    v_facts uuid[] := p_facts;
    v_moved text[];
begin
    if v_seen is null then
        return;
    end if;
    if v_seen > (select n.head from supersede.namespace n where n.namespace = p_namespace) then
        perform supersede.fail('SU015', format(
            'what this was based on was known up to %s; this server holds namespace %L only up to a time '
            'before: ask again and decide again', supersede.iso(v_seen), p_namespace),
            jsonb_build_object('namespace', p_namespace));
    end if;
    if p_slot is not null then
        select v_facts || array_agg(f.fact_id) into v_facts
        from supersede.fact f
        where f.namespace = p_namespace and f.subject_key = p_fact.subject_key
          and f.predicate_key = p_fact.predicate_key;
    end if;
    select array_agg(distinct supersede.name_of(p_namespace, v.fact_id)) into v_moved
    from supersede.fact_version v
    where v.namespace = p_namespace and v.fact_id = any (v_facts)
      and (lower(v.tx_time) > v_seen or upper(v.tx_time) > v_seen);
    if v_moved is null and p_slot is not null then
        -- Which slot an erased fact held is destroyed with it: it may have been this one.
        select array_agg(e.fact_id::text) into v_moved
        from supersede.erasure e where e.namespace = p_namespace and e.stamp > v_seen;
    end if;
    if v_moved is not null then
        perform supersede.fail('SU009', format(
            'what this was based on (as of %s) has moved since: %s; ask again and decide again',
            supersede.iso(v_seen), array_to_string(v_moved, ', ')),
            jsonb_build_object('moved', v_moved));
    end if;
end
$$;
