-- Whether a basis saw anything of a namespace; refused where this server does not hold what it saw. Every head
-- is the stamp of an operation: one that is not in the ledger here lies ahead of it, or was lost with the tail
-- of another primary, and then what was written since may even have later stamps.
create or replace function supersede.has_seen(p_namespace text, p_head timestamptz)
returns boolean
language plpgsql stable
as $$
declare
    v_head timestamptz;
begin
    if p_head is null then
        return false;
    end if;
    if not exists (
        select from supersede.operation o where o.namespace = p_namespace and o.stamp = p_head)
    then
        select n.head into v_head from supersede.namespace n where n.namespace = p_namespace;
        perform supersede.fail('SU015', case when v_head > p_head
            then format(
                'the basis saw namespace %L up to %s, an operation that this server never recorded: it was lost '
                'with the tail of another primary, or made in another database; ask again without the basis',
                p_namespace, supersede.iso(p_head))
            else format(
                'the basis saw namespace %L up to %s; this server holds it up to %s: ask the primary, or wait',
                p_namespace, supersede.iso(p_head), coalesce(supersede.iso(v_head), 'nothing'))
            end, jsonb_build_object('namespace', p_namespace));
    end if;
    return true;
end
$$;

comment on function supersede.has_seen(text, timestamptz) is
    'Whether a basis saw anything of a namespace (its head is not NULL); an error where this server lacks it.';
