-- One operation in the result of an undo: which it was, and what was done to it or why nothing was.
create or replace function supersede.undone_operation(
    p_namespace text, p_stamp timestamptz, p_result jsonb, p_why text)
returns jsonb
language sql stable
return (
    select jsonb_build_object(
        'stamp', supersede.iso(o.stamp), 'verb', o.verb, 'actor', o.actor, 'run', o.run, 'note', o.note,
        'undone_at', p_result ->> 'stamp', 'skipped', p_why,
        'withdrawn', coalesce(p_result -> 'withdrawn', '[]'),
        'given_back', coalesce(p_result -> 'given_back', '[]'),
        'left_alone', coalesce(p_result -> 'left_alone', '[]'))
    from supersede.operation o
    where o.namespace = p_namespace and o.stamp = p_stamp);
