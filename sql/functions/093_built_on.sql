-- What others added to a fact after a stamp, which stays though validity of it is withdrawn: facts that amend
-- it, and evidence.
create or replace function supersede.built_on(
    p_namespace text, p_fact_id uuid, p_withdrawn tstzmultirange, p_stamp timestamptz)
returns jsonb
language sql stable
return (
    with added as materialized (
        select s.stamp, s.new_fact_id as amended_by
        from supersede.supersedes s
        where s.namespace = p_namespace and s.old_fact_id = p_fact_id and s.stamp > p_stamp
          and s.reason = 'amendment'
        union
        select e.stamp, null
        from supersede.evidence e
        where e.namespace = p_namespace and e.fact_id = p_fact_id and e.stamp > p_stamp),
    standing as materialized (
        select a.stamp, a.amended_by
        from added a
        where a.stamp = any ((
            select supersede.standing(p_namespace, array(select t.stamp from added t)))::timestamptz[]))
    select coalesce(jsonb_agg(b.entry order by b.stamp, b.entry), '[]')
    from (
        select s.stamp, supersede.left_alone(p_namespace, s.amended_by,
                   supersede.held(p_namespace, s.amended_by), 'amends_it', p_fact_id) -> 0 as entry
        from standing s
        where s.amended_by is not null
        union all
        select min(s.stamp), supersede.left_alone(
                   p_namespace, p_fact_id, p_withdrawn, 'confirmed_since', null) -> 0
        from standing s
        where s.amended_by is null
        having count(*) > 0) as b
    where b.entry is not null);
