-- Whether a fact was retracted after a stamp, by a retraction that was not undone.
create or replace function supersede.retracted_since(p_namespace text, p_fact_id uuid, p_stamp timestamptz)
returns boolean
language sql stable
return exists (
    select from supersede.fact_version v
    join supersede.operation o on o.namespace = v.namespace and o.stamp = upper(v.tx_time)
    where not v.is_open and v.namespace = p_namespace and v.fact_id = p_fact_id
      and upper(v.tx_time) > p_stamp and o.verb = 'retract'
      and supersede.undone_by(o.namespace, o.stamp) is null);
