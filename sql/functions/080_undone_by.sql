-- The stamp of the undo that an operation stands undone by; NULL where it was never undone, or the undo was
-- undone in its turn. p_but: an undo that is taken as undone, since it is about to be.
create or replace function supersede.undone_by(
    p_namespace text, p_stamp timestamptz, p_but timestamptz default null)
returns timestamptz
language plpgsql stable
as $$
declare
    v_undo timestamptz;
begin
    for v_undo in
        select o.stamp from supersede.operation o
        where o.namespace = p_namespace and o.verb = 'undo'
          and o.event ->> 'stamp' = supersede.iso(p_stamp) and o.stamp is distinct from p_but
        order by o.stamp desc
    loop
        if supersede.undone_by(p_namespace, v_undo, p_but) is null then
            return v_undo;
        end if;
    end loop;
    return null;
end
$$;
