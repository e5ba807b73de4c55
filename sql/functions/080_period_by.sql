-- The period over which an existing fact is to be believed in place of others, or beside them: what it
-- holds, unless a bound is said.
create or replace function supersede.period_by(
    p_fact supersede.fact, p_event jsonb, p_now timestamptz, p_olds uuid[])
returns tstzmultirange
language plpgsql stable
as $$
begin
    if not (p_event ? 'valid_from' or p_event ? 'valid_to') then
        return supersede.held(p_fact.namespace, p_fact.fact_id);
    end if;
    return supersede.period_ahead(p_fact, p_event, p_now, p_olds || p_fact.fact_id);
end
$$;
