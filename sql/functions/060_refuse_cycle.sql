-- Would an edge from p_new to one of p_olds close a ring? Amendments take nothing and are left out.
create or replace function supersede.refuse_cycle(p_namespace text, p_new uuid, p_olds uuid[])
returns void
language plpgsql stable
as $$
declare
    v_old uuid;
begin
    if p_new = any (p_olds) then
        perform supersede.fail('SU006', format('%s would supersede itself',
            supersede.name_of(p_namespace, p_new)));
    end if;
    -- Planned anew each time: a plan kept from when there were few edges would scan them all at every step.
    execute $query$
        with recursive ancestor(fact_id, first) as (
            select o, o from unnest($2) as o
            union
            select s.old_fact_id, a.first
            from ancestor a join supersede.supersedes s
              on s.namespace = $1 and s.new_fact_id = a.fact_id and s.reason <> 'amendment')
        select a.first from ancestor a where a.fact_id = $3 limit 1
    $query$ into v_old using p_namespace, p_olds, p_new;
    if v_old is not null then
        perform supersede.fail('SU006', format(
            '%s already supersedes %s, directly or through others; it cannot be superseded by it',
            supersede.name_of(p_namespace, v_old), supersede.name_of(p_namespace, p_new)));
    end if;
end
$$;
