-- The import is whole: each namespace gets its head and its latest recording time.
create or replace function supersede.end_import(header jsonb) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_wrong text;
begin
    select h.name into v_wrong
    from jsonb_each(header -> 'namespaces') as h(name, said)
    left join supersede.namespace n on n.namespace = h.name and n.recorded_at = 'infinity'
    where n.head is null
       or (n.head <> (h.said ->> 'head')::timestamptz
           and exists (select from supersede.operation o where o.namespace = h.name))
       or not isfinite((h.said ->> 'recorded_at')::timestamptz)
    limit 1;
    if found then
        perform supersede.fail('SU032', format(
            'the last operation of namespace %L is not the head that the ledger says', v_wrong));
    end if;
    update supersede.namespace n
    set head = (h.said ->> 'head')::timestamptz, recorded_at = (h.said ->> 'recorded_at')::timestamptz
    from jsonb_each(header -> 'namespaces') as h(name, said)
    where n.namespace = h.name;
end
$$;

comment on function supersede.end_import(jsonb) is 'Ends the import that begin_import began.';
