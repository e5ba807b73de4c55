-- The recorded result of an operation that is here again, by its handle; NULL where it is new.
-- A handle that was said is one name across all verbs; a handle that a ref gave counts for its verb.
create or replace function supersede.repeat_of(
    p_namespace text, p_verb text, p_handle text, p_handle_said boolean, p_digest text)
returns jsonb
language plpgsql stable
as $$
declare
    v_earlier record;
begin
    select o.verb, o.digest, o.result, o.stamp into v_earlier
    from supersede.operation o
    where o.namespace = p_namespace and o.handle = p_handle
      and (o.verb = p_verb or (p_handle_said and o.event ? 'handle'))
    order by (o.verb = p_verb) desc
    limit 1;
    if not found and exists (select from supersede.erasure e where e.namespace = p_namespace) then
        -- A handle that nobody said is a hash, which got the key when a fact in its operation was erased.
        select o.verb, o.digest, o.result, o.stamp into v_earlier
        from supersede.operation o
        where o.namespace = p_namespace and o.verb = p_verb
          and o.handle = supersede.keyed_digest('handle', p_handle);
    end if;
    if v_earlier.verb is null then
        return null;
    end if;
    if v_earlier.verb <> p_verb
       or v_earlier.digest not in (p_digest, supersede.keyed_digest('event', p_digest)) then
        perform supersede.fail('SU007', format(
            '%s %L already stands for another call: %s, recorded at %s; repeat that call exactly, '
            'use another one, or supersede the fact', case when p_handle_said then 'handle' else 'ref' end,
            p_handle, v_earlier.verb, supersede.iso(v_earlier.stamp)),
            jsonb_build_object('handle', p_handle, 'verb', v_earlier.verb));
    end if;
    return v_earlier.result || jsonb_build_object(
        'repeated', true,
        'believed', v_earlier.result ? 'id' and not isempty(
            supersede.held(p_namespace, (v_earlier.result ->> 'id')::uuid)));
end
$$;
