-- What others added to a fact after a stamp, which stays though validity of it is withdrawn: facts that amend
-- it, and evidence.
create or replace function supersede.built_on(
    p_namespace text, p_fact_id uuid, p_withdrawn tstzmultirange, p_stamp timestamptz)
returns jsonb
language sql stable
return (
    select coalesce(jsonb_agg(b.entry order by b.stamp, b.entry), '[]')
    from (
        select s.stamp, supersede.left_alone(p_namespace, s.new_fact_id,
                   supersede.held(p_namespace, s.new_fact_id), 'amends_it', p_fact_id) -> 0 as entry
        from supersede.supersedes s
        where s.namespace = p_namespace and s.old_fact_id = p_fact_id and s.stamp > p_stamp
          and s.reason = 'amendment' and supersede.undone_by(s.namespace, s.stamp) is null
        union all
        select min(e.stamp), supersede.left_alone(
                   p_namespace, p_fact_id, p_withdrawn, 'confirmed_since', null) -> 0
        from supersede.evidence e
        where e.namespace = p_namespace and e.fact_id = p_fact_id and e.stamp > p_stamp
          and supersede.undone_by(e.namespace, e.stamp) is null
        having count(*) > 0) as b
    where b.entry is not null);
