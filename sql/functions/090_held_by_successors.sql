-- Where other facts that supersede an old one, by operations that were not undone, are believed now.
create or replace function supersede.held_by_successors(p_namespace text, p_old uuid, p_except uuid)
returns tstzmultirange
language sql stable
return (
    with told as materialized (
        select s.new_fact_id, s.stamp
        from supersede.supersedes s
        where s.namespace = p_namespace and s.old_fact_id = p_old and s.new_fact_id <> p_except
          and s.reason <> 'amendment')
    select coalesce(range_agg(v.valid_time), '{}')
    from supersede.fact_version v
    where v.is_open and v.namespace = p_namespace and v.fact_id = any (array(
        select distinct t.new_fact_id
        from told t
        where t.stamp = any ((
            select supersede.standing(p_namespace, array(select a.stamp from told a)))::timestamptz[]))));
