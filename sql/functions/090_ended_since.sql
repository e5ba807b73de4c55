-- The periods over which a fact was ended after a stamp, by ends that were not undone. An end closes some
-- version of its fact, so its operation is found by that version's stamp.
create or replace function supersede.ended_since(p_namespace text, p_fact_id uuid, p_stamp timestamptz)
returns tstzmultirange
language sql stable
return (
    with ended as materialized (
        select o.stamp, tstzrange((o.result #>> '{period,0,0}')::timestamptz,
                                  (o.result #>> '{period,0,1}')::timestamptz) as period
        from supersede.operation o
        where o.namespace = p_namespace and o.verb = 'end' and o.stamp = any (array(
            select distinct upper(v.tx_time)
            from supersede.fact_version v
            where not v.is_open and v.namespace = p_namespace and v.fact_id = p_fact_id
              and upper(v.tx_time) > p_stamp)))
    select coalesce(range_agg(e.period), '{}')
    from ended e
    where e.stamp = any ((
        select supersede.standing(p_namespace, array(select s.stamp from ended s)))::timestamptz[]));
