-- What a person should know about the result of an undo.
create or replace function supersede.undo_notice(p_namespace text, p_selection jsonb, p_operations jsonb)
returns text
language sql stable
return case
    when p_operations <> '[]' then
        case when not jsonb_path_exists(p_operations, '$[*] ? (@.skipped == null)')
             then 'there is nothing to undo: what was selected stays as it is' end
    when not exists (select from supersede.namespace n where n.namespace = p_namespace)
        then format('nothing was ever recorded in namespace %L', p_namespace)
    when p_selection ? 'actor' and not exists (
        select from supersede.operation o
        where o.namespace = p_namespace and o.actor = p_selection ->> 'actor')
        then format('no operation in namespace %L is by actor %L', p_namespace, p_selection ->> 'actor')
    when p_selection ? 'run' and not exists (
        select from supersede.operation o
        where o.namespace = p_namespace and o.run = p_selection ->> 'run')
        then format('no operation in namespace %L is of run %L', p_namespace, p_selection ->> 'run')
    else 'no operation was selected' end;
