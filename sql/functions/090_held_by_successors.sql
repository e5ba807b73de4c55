-- Where other facts that supersede an old one, by operations that were not undone, are believed now.
create or replace function supersede.held_by_successors(p_namespace text, p_old uuid, p_except uuid)
returns tstzmultirange
language sql stable
return coalesce((
    select range_agg(v.valid_time)
    from supersede.supersedes s
    join supersede.fact_version v
      on v.is_open and v.namespace = s.namespace and v.fact_id = s.new_fact_id
    where s.namespace = p_namespace and s.old_fact_id = p_old and s.new_fact_id <> p_except
      and s.reason <> 'amendment' and supersede.undone_by(s.namespace, s.stamp) is null), '{}');
