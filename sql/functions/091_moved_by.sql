-- The facts that an operation gave validity or took it from, as its result names them.
create or replace function supersede.moved_by(p_namespace text, p_stamp timestamptz) returns uuid[]
language sql stable
return coalesce((
    select array_agg(distinct n.id::uuid)
    from supersede.operation o
    cross join lateral (
        select o.result ->> 'id' as id
        union all
        select f ->> 'id'
        from (values ('supersedes'), ('given_back'), ('withdrawn')) as k(key)
        cross join lateral jsonb_array_elements(coalesce(o.result -> k.key, '[]')) as f) as n
    where o.namespace = p_namespace and o.stamp = p_stamp and n.id is not null), '{}');
