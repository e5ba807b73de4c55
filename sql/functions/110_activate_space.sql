-- Makes a space the active one, in one step for everybody. While a fact that has a vector in the active space
-- lacks one in the new one, nothing changes: `lacking` says how many do, and `namespaces` where. Facts of which
-- the new model makes no vector are named, and do not count.
-- The table is locked, not its rows: a namespace that does not exist yet must wait as well, or its first
-- write would copy the old space's vector. Readers go on.
create or replace function supersede.activate_space(
    p_space smallint, p_without_namespaces text[] default '{}', p_without_ids uuid[] default '{}',
    out lacking bigint, out namespaces text[])
language plpgsql
as $$
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        perform supersede.fail('SU012', format(
            'this transaction is %s; a switch needs READ COMMITTED, since under a snapshot the lock '
            'would show the past', upper(current_setting('transaction_isolation'))));
    end if;
    lock table supersede.namespace in exclusive mode;
    lock table supersede.embedding_space in share row exclusive mode;
    if not exists (select from supersede.embedding_space s where s.id = p_space) then
        perform supersede.fail('SU016', format('no embedding space %s is registered', p_space));
    end if;
    -- Nothing is known yet of the size of a space that was just filled: taking it for empty, the planner would
    -- compare every fact with every other, under the lock. Until the transaction ends.
    perform set_config('enable_nestloop', 'off', true);
    select count(*), coalesce(array_agg(distinct e.namespace), '{}') into lacking, namespaces
    from supersede.embedding e
    join supersede.embedding_space s on s.id = e.space_id and s.active
    where not exists (
            select from supersede.embedding n
            where n.namespace = e.namespace and n.fact_id = e.fact_id and n.space_id = p_space)
      and not exists (
            select from unnest(p_without_namespaces, p_without_ids) as w(namespace, fact_id)
            where w.namespace = e.namespace and w.fact_id = e.fact_id);
    if lacking > 0 or exists (
        select from supersede.embedding_space s where s.id = p_space and s.active)
    then
        return;
    end if;

    update supersede.embedding_space s set active = false where s.active;
    update supersede.embedding_space s set active = true where s.id = p_space;
    -- What lacks a vector in the new space carries none: a copy is never of another space.
    update supersede.fact_version v set embedding = null
    where v.is_open and v.embedding is not null
      and not exists (
          select from supersede.embedding e
          where e.namespace = v.namespace and e.fact_id = v.fact_id and e.space_id = p_space);
    update supersede.fact_version v set embedding = e.vector
    from supersede.embedding e
    where v.is_open and upper_inf(v.valid_time)
      and e.namespace = v.namespace and e.fact_id = v.fact_id and e.space_id = p_space;
end
$$;

comment on function supersede.activate_space(smallint, text[], uuid[]) is
    'Makes an embedding space the active one, if nothing lacks a vector in it; for the owner.';
