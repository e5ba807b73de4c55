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
    with recursive ancestor(fact_id, first) as (
        select o, o from unnest(p_olds) as o
        union
        select s.old_fact_id, a.first
        from ancestor a join supersede.supersedes s
          on s.namespace = p_namespace and s.new_fact_id = a.fact_id and s.reason <> 'amendment')
    select a.first into v_old from ancestor a where a.fact_id = p_new limit 1;
    if found then
        perform supersede.fail('SU006', format(
            '%s already supersedes %s, directly or through others; it cannot be superseded by it',
            supersede.name_of(p_namespace, v_old), supersede.name_of(p_namespace, p_new)));
    end if;
end
$$;
