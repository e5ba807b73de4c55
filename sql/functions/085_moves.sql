-- What each operation did to a fact's validity, as the versions themselves tell: what was opened and not closed
-- at its stamp, and the other way round.
create or replace function supersede.moves(p_namespace text, p_fact_id uuid)
returns table (stamp timestamptz, gained tstzmultirange, lost tstzmultirange)
language sql stable
begin atomic
    select m.stamp, m.opened - m.closed, m.closed - m.opened
    from (
        select b.stamp,
               coalesce(range_agg(b.valid_time) filter (where b.opens), '{}') as opened,
               coalesce(range_agg(b.valid_time) filter (where not b.opens), '{}') as closed
        from (
            select lower(v.tx_time) as stamp, v.valid_time, true as opens
            from supersede.fact_version v
            where v.namespace = p_namespace and v.fact_id = p_fact_id
            union all
            select upper(v.tx_time), v.valid_time, false
            from supersede.fact_version v
            where not v.is_open and v.namespace = p_namespace and v.fact_id = p_fact_id) as b
        group by b.stamp) as m;
end;
