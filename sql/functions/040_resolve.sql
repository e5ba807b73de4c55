-- An id or a ref. A ref that happens to look like an id still resolves, unless it is one.
create or replace function supersede.resolve(p_namespace text, p_fact text) returns uuid
language plpgsql stable
as $$
declare
    v_fact_id uuid;
    v_is_erased boolean;
begin
    if p_fact ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then
        select f.fact_id, f.claim is null into v_fact_id, v_is_erased from supersede.fact f
        where f.namespace = p_namespace and f.fact_id = p_fact::uuid;
    end if;
    if v_fact_id is null then
        select r.fact_id into v_fact_id from supersede.fact_ref r
        where r.namespace = p_namespace and r.ref = p_fact;
    end if;
    if v_fact_id is null then
        perform supersede.fail('SU004',
            format('no fact in namespace %L has the id or ref %L', p_namespace, p_fact),
            jsonb_build_object('fact', p_fact, 'namespace', p_namespace));
    end if;
    if v_is_erased then
        perform supersede.refuse_erased(p_namespace, v_fact_id);
    end if;
    return v_fact_id;
end
$$;
