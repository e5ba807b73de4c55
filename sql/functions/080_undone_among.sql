-- Which of some operations stand undone: one of their undos was not undone in its turn. p_but: an undo that is
-- taken as undone, since it is about to be. All are asked about at once: one by one, with the undos of their
-- undos, this would be asked again and again for the same ones.
create or replace function supersede.undone_among(
    p_namespace text, p_stamps timestamptz[], p_but timestamptz default null)
returns timestamptz[]
language plpgsql stable
as $$
declare
    v_seen timestamptz[] := p_stamps;
    v_asked timestamptz[] := p_stamps;
    v_names text[];
    v_found timestamptz[];
    v_found_undone timestamptz[];
    v_undos timestamptz[] := '{}';
    v_undone timestamptz[] := '{}';
    v_each record;
    v_stands_undone timestamptz[] := '{}';
begin
    while cardinality(v_asked) > 0 loop
        -- Before the query, which would print them for every row.
        v_names := array(select supersede.iso(s) from unnest(v_asked) as s);
        select array_agg(o.stamp), array_agg((o.event ->> 'stamp')::timestamptz)
        into v_found, v_found_undone
        from supersede.operation o
        where o.namespace = p_namespace and o.verb = 'undo' and o.event ->> 'stamp' = any (v_names)
          and o.stamp is distinct from p_but;
        v_undos := v_undos || v_found;
        v_undone := v_undone || v_found_undone;
        v_asked := array(select s from unnest(v_found) as s where s <> all (v_seen));
        v_seen := v_seen || v_asked;
    end loop;
    -- An undo is newer than what it undoes.
    for v_each in
        select e.undo, e.undone from unnest(v_undos, v_undone) as e(undo, undone) order by e.undo desc
    loop
        if v_each.undo <> all (v_stands_undone) then
            v_stands_undone := v_stands_undone || v_each.undone;
        end if;
    end loop;
    return array(select s from unnest(p_stamps) as s where s = any (v_stands_undone));
end
$$;
