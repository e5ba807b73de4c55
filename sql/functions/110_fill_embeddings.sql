-- Vectors for facts recorded without one: an operation of its own, whose stamp is the next free one and
-- never the clock, so that a later replay keeps its times. Facts that have a vector are left alone.
create or replace function supersede.fill_embeddings(
    p_namespace text, p_space smallint, p_fact_ids uuid[], p_vectors halfvec[], p_truncated boolean[],
    p_actor text default null)
returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_namespace record;
    v_stamp timestamptz;
    v_dimensions integer := (select s.dimensions from supersede.embedding_space s where s.id = p_space);
    v_wrong integer := (
        select supersede.dimensions(v) from unnest(p_vectors) as v
        where supersede.dimensions(v) is distinct from v_dimensions limit 1);
    v_filled uuid[];
begin
    if not exists (select from supersede.namespace n where n.namespace = p_namespace) then
        perform supersede.fail('SU010', format('namespace %L does not exist', p_namespace));
    end if;
    v_namespace := supersede.lock_namespace(p_namespace);
    v_stamp := v_namespace.head + interval '1 microsecond';
    if v_wrong is not null then
        perform supersede.fail('SU011', format(
            'a vector has %s dimensions; the space has %s', v_wrong, v_dimensions));
    end if;
    with filled as (
        insert into supersede.embedding (namespace, fact_id, space_id, vector, truncated, stamp)
        select p_namespace, f.fact_id, p_space, f.vector, f.truncated, v_stamp
        from unnest(p_fact_ids, p_vectors, p_truncated) as f(fact_id, vector, truncated)
        -- One may have been erased since its claim was read.
        join supersede.fact known
          on known.namespace = p_namespace and known.fact_id = f.fact_id and known.claim is not null
        on conflict on constraint embedding_pkey do nothing
        returning fact_id)
    select array_agg(fact_id) into v_filled from filled;
    if v_filled is null then
        return 0;
    end if;
    update supersede.fact_version v
    set embedding = e.vector
    from supersede.embedding e
    join supersede.embedding_space s on s.id = e.space_id and s.active
    where v.is_open and upper_inf(v.valid_time) and v.namespace = p_namespace
      and v.fact_id = any (v_filled)
      and e.namespace = v.namespace and e.fact_id = v.fact_id and e.space_id = p_space;
    insert into supersede.operation (namespace, stamp, verb, actor, digest, event, result)
    values (p_namespace, v_stamp, 'fill_embeddings', p_actor,
            supersede.digest(to_jsonb(v_filled)),
            jsonb_build_object('op', 'fill_embeddings', 'space', p_space),
            jsonb_build_object('filled', cardinality(v_filled)));
    update supersede.namespace n set head = v_stamp where n.namespace = p_namespace;
    return cardinality(v_filled);
end
$$;

comment on function supersede.fill_embeddings(text, smallint, uuid[], halfvec[], boolean[], text) is
    'Stores vectors for facts that have none in a space; returns how many.';
