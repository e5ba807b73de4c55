-- The row of a new fact, its name and its vector.
create or replace function supersede.insert_fact(
    p_fact supersede.fact, p_embedding halfvec, p_space smallint, p_truncated boolean)
returns void
language plpgsql
as $$
declare
    v_space record;
begin
    p_fact.search := to_tsvector(
        (select c.text_search from supersede.configuration c), p_fact.claim);
    insert into supersede.fact select p_fact.*;
    if p_embedding is not null then
        select s.model, s.dimensions into v_space from supersede.embedding_space s where s.id = p_space;
        if v_space.dimensions is distinct from supersede.dimensions(p_embedding) then
            perform supersede.fail('SU011', format(
                'the vector has %s dimensions; the space of %s has %s',
                supersede.dimensions(p_embedding), v_space.model, v_space.dimensions));
        end if;
        insert into supersede.embedding (namespace, fact_id, space_id, vector, truncated, stamp)
        values (p_fact.namespace, p_fact.fact_id, p_space, p_embedding, p_truncated, p_fact.stamp);
    end if;
end
$$;
