-- Locks the namespace's row until the transaction ends, creating it with its first write. Under a
-- snapshot, the lock would be granted over a picture of the past: only READ COMMITTED is safe.
create or replace function supersede.lock_namespace(
    p_namespace text, out head timestamptz, out recorded_at timestamptz)
language plpgsql
as $$
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        perform supersede.fail('SU012', format(
            'this transaction is %s; writes need READ COMMITTED, since under a snapshot the lock '
            'would show the past', upper(current_setting('transaction_isolation'))));
    end if;
    if p_namespace is null or octet_length(p_namespace) not between 1 and 255 then
        perform supersede.fail('SU013', 'a namespace is a text of 1 to 255 bytes');
    end if;
    select n.head, n.recorded_at into head, recorded_at
    from supersede.namespace n where n.namespace = p_namespace for no key update;
    if not found then
        -- The first instant that Python can read stands for "nothing yet" until this commit.
        insert into supersede.namespace (namespace, head, recorded_at)
        values (p_namespace, '0001-01-01 00:00:00+00', '0001-01-01 00:00:00+00')
        on conflict on constraint namespace_pkey do nothing;
        select n.head, n.recorded_at into head, recorded_at
        from supersede.namespace n where n.namespace = p_namespace for no key update;
    end if;
end
$$;
