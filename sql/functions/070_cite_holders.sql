-- The evidence of a write: for the fact it made, and for every fact that already held the same value.
create or replace function supersede.cite_holders(
    p_namespace text, p_fact_id uuid, p_holders uuid[], p_sources jsonb, p_asserted_at timestamptz,
    p_inherit uuid[], p_stamp timestamptz)
returns void
language plpgsql
as $$
declare
    v_fact_id uuid;
begin
    for v_fact_id in
        select p_fact_id union select h from unnest(p_holders) as h
    loop
        if p_sources is not null then
            perform supersede.add_evidence(p_namespace, v_fact_id, p_sources, p_asserted_at, p_stamp);
        end if;
        if p_inherit is not null then
            perform supersede.inherit_evidence(p_namespace, v_fact_id, p_inherit, p_stamp);
        end if;
    end loop;
end
$$;
