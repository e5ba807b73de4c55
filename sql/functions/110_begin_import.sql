-- Makes the namespaces and spaces that the header of a ledger names. Until supersede.end_import, such a
-- namespace has no latest recording time: that is how import_operations knows what it may write to, and
-- nothing else is ever written to by rows.
create or replace function supersede.begin_import(header jsonb, unguarded_erasures boolean default false)
returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_key bytea := decode(header ->> 'erasure_key', 'hex');
    v_space record;
    v_there text[];
begin
    with made as (
        insert into supersede.namespace (namespace, head, recorded_at)
        select name, '0001-01-01 00:00:00+00', 'infinity'
        from jsonb_object_keys(header -> 'namespaces') as name
        order by name collate "C"
        on conflict on constraint namespace_pkey do nothing
        returning namespace)
    select array_agg(name) into v_there
    from jsonb_object_keys(header -> 'namespaces') as name
    where name not in (select namespace from made);
    if v_there is not null then
        perform supersede.fail('SU030', format(
            'a ledger is imported into namespaces that do not exist yet, but these do: %s',
            array_to_string(v_there, ', ')), jsonb_build_object('namespaces', v_there));
    end if;

    lock table supersede.embedding_space in share row exclusive mode;
    for v_space in
        select * from jsonb_to_recordset(header -> 'spaces') as s(
            model text, dimensions integer, min_similarity real, near_duplicate real, active boolean)
    loop
        perform from supersede.embedding_space s
        where s.model = v_space.model and s.dimensions <> v_space.dimensions;
        if found then
            perform supersede.fail('SU011', format(
                'the ledger''s vectors of %s have %s dimensions; the space of that name here has others',
                v_space.model, v_space.dimensions));
        end if;
        insert into supersede.embedding_space
            (id, model, dimensions, min_similarity, near_duplicate, active)
        select coalesce(max(s.id), 0) + 1, v_space.model, v_space.dimensions, v_space.min_similarity,
               v_space.near_duplicate, v_space.active and not coalesce(bool_or(s.active), false)
        from supersede.embedding_space s
        on conflict on constraint embedding_space_model_key do nothing;
    end loop;

    if v_key is not null and v_key <> (select k.erasure_key from supersede.secret k) then
        -- Who sets the key knows it, and could try out guesses of what is erased later.
        if not pg_has_role(session_user, current_user, 'member') then
            perform supersede.fail('42501', 'a ledger that brings the key of its erasures is for the owner '
                'of this database to import');
        end if;
        if exists (select from supersede.erasure) then
            perform supersede.fail('SU031', 'this database has erased facts under a key of its own, and '
                'cannot take over another; import the ledger into a database without erasures');
        end if;
        update supersede.secret set erasure_key = v_key;
    elsif v_key is null and (header ->> 'erasures')::integer > 0 and not unguarded_erasures then
        perform supersede.fail('SU031', 'facts in this ledger were erased, and without the key of their '
            'digests nothing keeps them from being recorded again; export with with_erasure_key=True, or '
            'accept that with unguarded_erasures=True');
    end if;
end
$$;

comment on function supersede.begin_import(jsonb, boolean) is
    'Begins the import of a ledger file: makes the namespaces and spaces that its header names.';
