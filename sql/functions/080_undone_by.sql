-- The stamp of the undo that an operation stands undone by; NULL where it was never undone, or the undo was
-- undone in its turn.
create or replace function supersede.undone_by(p_namespace text, p_stamp timestamptz) returns timestamptz
language plpgsql stable
as $$
declare
    v_undo timestamptz;
begin
    for v_undo in
        select o.stamp from supersede.operation o
        where o.namespace = p_namespace and o.verb = 'undo'
          and o.event ->> 'stamp' = supersede.iso(p_stamp)
        order by o.stamp desc
    loop
        if supersede.undone_by(p_namespace, v_undo) is null then
            return v_undo;
        end if;
    end loop;
    return null;
end
$$;
