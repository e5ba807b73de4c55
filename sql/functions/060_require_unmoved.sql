-- Compare what a decision was based on with what is there: of the facts it acts on, and of the slot, no
-- version may have been opened or closed after the stamp that the decision had seen.
create or replace function supersede.require_unmoved(
    p_namespace text, p_facts uuid[], p_slot uuid, p_event jsonb)
returns void
language plpgsql stable
as $$
declare
    v_seen timestamptz := supersede.instant(p_event ->> 'based_on', 'based_on');
    v_moved text[];
begin
    if v_seen is null then
        return;
    end if;
    select array_agg(distinct supersede.name_of(p_namespace, v.fact_id)) into v_moved
    from supersede.fact_version v
    where v.namespace = p_namespace
      and (v.fact_id = any (p_facts) or v.slot_key = p_slot)
      and (lower(v.tx_time) > v_seen or upper(v.tx_time) > v_seen);
    if v_moved is not null then
        perform supersede.fail('SU009', format(
            'what this was based on (as of %s) has moved since: %s; ask again and decide again',
            supersede.iso(v_seen), array_to_string(v_moved, ', ')),
            jsonb_build_object('moved', v_moved));
    end if;
end
$$;
