-- What a call of undo with this handle has done already; NULL where there was none.
create or replace function supersede.undone_before(p_namespace text, p_handle text, p_selection text)
returns jsonb
language plpgsql stable
as $$
declare
    v_earlier record;
begin
    -- The handles of one call are its own, a space, and the stamp of what is undone.
    select jsonb_agg(supersede.undone_operation(
               p_namespace, supersede.instant(o.event ->> 'stamp', 'stamp'), o.result, null)
               order by o.stamp) as operations,
           -- After an erasure it has the key, or is gone: then nobody knows that it was the same.
           bool_and(coalesce(o.event ->> 'selection' in (
               p_selection, supersede.keyed_digest('selection', p_selection)), false)) as same,
           max(o.stamp) as stamp
    into v_earlier
    from supersede.operation o
    where o.namespace = p_namespace and o.verb = 'undo'
      and o.handle > p_handle || ' ' and o.handle < p_handle || '!'
      and o.handle = p_handle || ' ' || (o.event ->> 'stamp');
    if not v_earlier.same then
        perform supersede.fail('SU007', format(
            'handle %L already stands for another undo, recorded at %s; repeat that call exactly, or use '
            'another one', p_handle, supersede.iso(v_earlier.stamp)),
            jsonb_build_object('handle', p_handle, 'verb', 'undo'));
    end if;
    return v_earlier.operations;
end
$$;
