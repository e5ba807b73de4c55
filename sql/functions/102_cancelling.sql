-- Of selected operations, in their order, the undos that directly follow what they undid: both cancel out, and
-- to undo the one and then the other would come to the same.
create or replace function supersede.cancelling(p_namespace text, p_stamps timestamptz[])
returns timestamptz[]
language plpgsql stable
as $$
declare
    v_open timestamptz[] := '{}';
    v_found timestamptz[] := '{}';
    v_each record;
begin
    for v_each in
        select o.stamp,
               case o.verb when 'undo' then supersede.instant(o.event ->> 'stamp', 'stamp') end as undoes
        from supersede.operation o
        where o.namespace = p_namespace and o.stamp = any (p_stamps)
          and supersede.not_undone(p_namespace, o.stamp) is distinct from 'history'
        order by o.stamp
    loop
        if v_open[cardinality(v_open)] = v_each.undoes then
            v_open := trim_array(v_open, 1);
            v_found := v_found || v_each.stamp;
        else
            v_open := v_open || v_each.stamp;
        end if;
    end loop;
    return v_found;
end
$$;
