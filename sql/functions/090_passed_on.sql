-- What others took, after a stamp, from the facts that took validity from an old one at it, and these do not
-- hold: who undoes that taking, or retracts its taker, finds it gone, and it does not come back to the old one.
create or replace function supersede.passed_on(p_namespace text, p_old uuid, p_stamp timestamptz)
returns tstzmultirange
language sql stable
return (
    with taken as materialized (
        select m.stamp, m.lost - supersede.held(p_namespace, s.new_fact_id) as region
        from supersede.supersedes s
        cross join lateral supersede.moves(p_namespace, s.new_fact_id) as m
        where s.namespace = p_namespace and s.old_fact_id = p_old and s.stamp = p_stamp
          and s.reason <> 'amendment' and m.stamp > p_stamp and not isempty(m.lost)
          and (select o.verb from supersede.operation o
               where o.namespace = p_namespace and o.stamp = m.stamp)
              = any (array['remember', 'supersede', 'amend', 'end']))
    select coalesce(range_agg(r), '{}')
    from taken t
    cross join lateral unnest(t.region) as r
    where t.stamp = any ((
        select supersede.standing(p_namespace, array(select s.stamp from taken s)))::timestamptz[]));
