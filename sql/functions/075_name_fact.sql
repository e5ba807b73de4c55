-- Gives a fact one more external name.
create or replace function supersede.name_fact(
    p_namespace text, p_fact_id uuid, p_ref text, p_stamp timestamptz)
returns void
language plpgsql
as $$
declare
    v_other uuid;
begin
    select r.fact_id into v_other from supersede.fact_ref r
    where r.namespace = p_namespace and r.ref = p_ref;
    if not found then
        -- One IF in the other: AND may be evaluated in any order, and a cast of any other text fails.
        if p_ref ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then
            if exists (
                select from supersede.fact f where f.namespace = p_namespace and f.fact_id = p_ref::uuid)
            then
                perform supersede.fail('SU007', format('ref %L is the id of a fact, and would hide it', p_ref),
                    jsonb_build_object('ref', p_ref));
            end if;
        end if;
        insert into supersede.fact_ref (namespace, ref, fact_id, stamp)
        values (p_namespace, p_ref, p_fact_id, p_stamp);
    elsif v_other <> p_fact_id then
        perform supersede.fail('SU007', format('ref %L already names another fact', p_ref),
            jsonb_build_object('ref', p_ref));
    end if;
end
$$;
