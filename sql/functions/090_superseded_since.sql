-- Where other facts stand that were told to supersede an old one after a stamp.
create or replace function supersede.superseded_since(p_namespace text, p_old uuid, p_stamp timestamptz)
returns tstzmultirange
language sql stable
return coalesce((
    select range_agg(v.valid_time)
    from supersede.supersedes s
    join supersede.fact_version v
      on v.is_open and v.namespace = s.namespace and v.fact_id = s.new_fact_id
    where s.namespace = p_namespace and s.old_fact_id = p_old and s.stamp > p_stamp
      and s.reason <> 'amendment' and supersede.undone_by(s.namespace, s.stamp) is null), '{}');
