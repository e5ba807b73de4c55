-- Why an operation cannot be undone; NULL where it can.
create or replace function supersede.not_undone(p_namespace text, p_stamp timestamptz) returns text
language sql stable
return case
    when not exists (
        select from supersede.operation o where o.namespace = p_namespace and o.stamp = p_stamp)
        then 'unknown'
    when (select o.verb from supersede.operation o where o.namespace = p_namespace and o.stamp = p_stamp)
         not in ('remember', 'supersede', 'amend', 'end', 'retract', 'reinstate', 'undo')
        then 'history'
    when p_stamp = any (supersede.undone_among(p_namespace, array[p_stamp])) then 'already_undone' end;
