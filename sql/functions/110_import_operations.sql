-- Operations of a ledger as they were, with the rows that they wrote: the past does not depend on what the
-- verbs would do today. Only namespaces that begin_import made in this transaction can be written to.
create or replace function supersede.import_operations(namespace text, lines jsonb[]) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_namespace text := import_operations.namespace;
    v_lines jsonb[] := import_operations.lines;
    v_head timestamptz;
    v_disorder timestamptz;
begin
    select n.head into v_head from supersede.namespace n
    where n.namespace = v_namespace and n.recorded_at = 'infinity' for no key update;
    if not found then
        perform supersede.fail('SU032', format('no import into namespace %L is under way', v_namespace));
    end if;
    select s.stamp into v_disorder
    from (select (l ->> 'stamp')::timestamptz as stamp,
                 lag((l ->> 'stamp')::timestamptz, 1, v_head) over (order by place) as before
          from unnest(v_lines) with ordinality as u(l, place)) as s
    where s.stamp <= s.before limit 1;
    if found then
        perform supersede.fail('SU032', format(
            'the stamps of a ledger must rise, and %s does not', supersede.iso(v_disorder)));
    end if;

    insert into supersede.operation
        (namespace, stamp, verb, actor, handle, digest, note, event, result, run)
    select v_namespace, (l ->> 'stamp')::timestamptz, l ->> 'op', l ->> 'actor', l ->> 'handle',
           l ->> 'digest', l ->> 'note', l -> 'event', l -> 'result', l ->> 'run'
    from unnest(v_lines) as l;
    perform supersede.import_facts(v_namespace, v_lines);
    perform supersede.import_versions(v_namespace, v_lines);
    perform supersede.import_links(v_namespace, v_lines);
    update supersede.namespace n
    set head = (select max((l ->> 'stamp')::timestamptz) from unnest(v_lines) as l)
    where n.namespace = v_namespace;
end
$$;

comment on function supersede.import_operations(text, jsonb[]) is
    'Writes lines of a ledger file, in order, to a namespace that begin_import made.';
