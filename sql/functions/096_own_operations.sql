-- The operations about one fact alone: those whose result is about it, their undos, and the undos of these.
create or replace function supersede.own_operations(p_namespace text, p_fact_id uuid)
returns timestamptz[]
language plpgsql stable
as $$
declare
    v_found timestamptz[] := array(
        select o.stamp
        from supersede.operation o
        where o.namespace = p_namespace and o.result ->> 'id' = p_fact_id::text);
    v_own timestamptz[] := v_found;
    v_names text[];
begin
    while cardinality(v_found) > 0 loop
        v_names := array(select supersede.iso(s) from unnest(v_found) as s);
        v_found := array(
            select o.stamp
            from supersede.operation o
            where o.namespace = p_namespace and o.verb = 'undo' and o.event ->> 'stamp' = any (v_names));
        v_own := v_own || v_found;
    end loop;
    return v_own;
end
$$;
