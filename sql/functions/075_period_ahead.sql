-- The period of a remember, a change or an amendment: from now, and without an end or, in a slot, until
-- the next version there is known to start; unless said.
create or replace function supersede.period_ahead(
    p_fact supersede.fact, p_event jsonb, p_now timestamptz, p_except uuid[])
returns tstzmultirange
language plpgsql stable
as $$
declare
    v_from record := supersede.bound(p_event, 'valid_from', 'no_start');
    v_to record := supersede.bound(p_event, 'valid_to', 'no_end');
    v_slot uuid;
begin
    if not v_from.said then
        v_from.at := p_now;
    end if;
    if not v_to.said and p_fact.predicate_key is not null then
        v_slot := supersede.slot_of(p_fact.namespace, p_fact.subject_key, p_fact.predicate_key);
        v_to.at := supersede.next_in_slot(p_fact.namespace, v_slot, v_from.at, p_except);
    end if;
    return supersede.period(v_from.at, v_to.at);
end
$$;
