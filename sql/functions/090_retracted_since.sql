-- Whether a fact was retracted after a stamp, by a retraction that was not undone.
create or replace function supersede.retracted_since(p_namespace text, p_fact_id uuid, p_stamp timestamptz)
returns boolean
language sql stable
return cardinality(supersede.standing(p_namespace, array(
    select o.stamp
    from supersede.operation o
    where o.namespace = p_namespace and o.verb = 'retract' and o.stamp = any (array(
        select distinct upper(v.tx_time)
        from supersede.fact_version v
        where not v.is_open and v.namespace = p_namespace and v.fact_id = p_fact_id
          and upper(v.tx_time) > p_stamp))))) > 0;
