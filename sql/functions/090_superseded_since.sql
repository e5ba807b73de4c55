-- Where other facts stand that were told to supersede an old one after a stamp.
create or replace function supersede.superseded_since(p_namespace text, p_old uuid, p_stamp timestamptz)
returns tstzmultirange
language sql stable
return (
    with told as materialized (
        select s.new_fact_id, s.stamp
        from supersede.supersedes s
        where s.namespace = p_namespace and s.old_fact_id = p_old and s.stamp > p_stamp
          and s.reason <> 'amendment')
    select coalesce(range_agg(v.valid_time), '{}')
    from supersede.fact_version v
    where v.is_open and v.namespace = p_namespace and v.fact_id = any (array(
        select distinct t.new_fact_id
        from told t
        where t.stamp = any ((
            select supersede.standing(p_namespace, array(select a.stamp from told a)))::timestamptz[]))));
