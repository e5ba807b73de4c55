create or replace function supersede.verb_remember(
    p_namespace text, p_event jsonb, p_stamp timestamptz, p_now timestamptz, p_asserted_at timestamptz,
    p_embedding halfvec, p_space smallint, p_truncated boolean)
returns jsonb
language plpgsql
as $$
declare
    v_fact supersede.fact := supersede.candidate(p_namespace, p_event, p_stamp, p_asserted_at);
begin
    return supersede.believe(
        v_fact, true, supersede.period_ahead(v_fact, p_event, p_now, '{}'), '{}', null,
        p_event, p_stamp, p_embedding, p_space, p_truncated);
end
$$;
