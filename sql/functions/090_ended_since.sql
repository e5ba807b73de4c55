-- The periods over which a fact was ended after a stamp, by ends that were not undone. An end closes some
-- version of its fact, so its operation is found by that version's stamp.
create or replace function supersede.ended_since(p_namespace text, p_fact_id uuid, p_stamp timestamptz)
returns tstzmultirange
language sql stable
return coalesce((
    select range_agg(tstzrange((o.result #>> '{period,0,0}')::timestamptz,
                               (o.result #>> '{period,0,1}')::timestamptz))
    from (
        select distinct upper(v.tx_time) as stamp
        from supersede.fact_version v
        where not v.is_open and v.namespace = p_namespace and v.fact_id = p_fact_id
          and upper(v.tx_time) > p_stamp) as closed
    join supersede.operation o on o.namespace = p_namespace and o.stamp = closed.stamp
    where o.verb = 'end' and supersede.undone_by(o.namespace, o.stamp) is null), '{}');
