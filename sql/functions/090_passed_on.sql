-- What others took, after a stamp, from the facts that took validity from an old one at it, and these do not
-- hold: who undoes that taking, or retracts its taker, finds it gone, and it does not come back to the old one.
create or replace function supersede.passed_on(p_namespace text, p_old uuid, p_stamp timestamptz)
returns tstzmultirange
language sql stable
return coalesce((
    select range_agg(l.period)
    from supersede.supersedes s
    join lateral (
        select distinct upper(v.tx_time) as stamp
        from supersede.fact_version v
        where not v.is_open and v.namespace = s.namespace and v.fact_id = s.new_fact_id
          and upper(v.tx_time) > p_stamp) as taken on true
    join supersede.operation o
      on o.namespace = s.namespace and o.stamp = taken.stamp
     and o.verb in ('remember', 'supersede', 'amend', 'end')
    cross join lateral unnest(
        (supersede.moved_at(s.namespace, s.new_fact_id, taken.stamp)).lost
        - supersede.held(s.namespace, s.new_fact_id)) as l(period)
    where s.namespace = p_namespace and s.old_fact_id = p_old and s.stamp = p_stamp
      and s.reason <> 'amendment' and supersede.undone_by(o.namespace, o.stamp) is null), '{}');
