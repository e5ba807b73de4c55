-- What one operation did to a fact's validity, as the versions themselves tell: what was opened and not closed
-- at its stamp, and the other way round.
create or replace function supersede.moved_at(
    p_namespace text, p_fact_id uuid, p_stamp timestamptz,
    out gained tstzmultirange, out lost tstzmultirange)
language sql stable
begin atomic
    select coalesce(m.opened - m.closed, '{}'), coalesce(m.closed - m.opened, '{}')
    from (
        select coalesce(range_agg(v.valid_time) filter (where lower(v.tx_time) = p_stamp), '{}') as opened,
               coalesce(range_agg(v.valid_time) filter (where upper(v.tx_time) = p_stamp), '{}') as closed
        from supersede.fact_version v
        where v.namespace = p_namespace and v.fact_id = p_fact_id
          and (lower(v.tx_time) = p_stamp or upper(v.tx_time) = p_stamp)) as m;
end;
