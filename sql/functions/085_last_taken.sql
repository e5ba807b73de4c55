-- What the last operation that took something from a fact took, as the versions themselves tell: closed at
-- one stamp, and not opened again at it.
create or replace function supersede.last_taken(p_namespace text, p_fact_id uuid) returns tstzmultirange
language sql stable
return coalesce((
    select taken.region
    from (
        select c.stamp, c.closed - coalesce((
                   select range_agg(o.valid_time)
                   from supersede.fact_version o
                   where o.namespace = p_namespace and o.fact_id = p_fact_id
                     and lower(o.tx_time) = c.stamp), '{}') as region
        from (
            select upper(v.tx_time) as stamp, range_agg(v.valid_time) as closed
            from supersede.fact_version v
            where not v.is_open and v.namespace = p_namespace and v.fact_id = p_fact_id
            group by upper(v.tx_time)) as c) as taken
    where not isempty(taken.region)
    order by taken.stamp desc
    limit 1), '{}');
