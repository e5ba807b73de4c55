-- The result of an undo. "plan" tells two of them apart by what they do.
create or replace function supersede.undoing(
    p_namespace text, p_selection jsonb, p_head timestamptz, p_dry_run boolean, p_operations jsonb)
returns jsonb
language sql stable
return (
    select jsonb_build_object(
        'namespace', p_namespace, 'dry_run', p_dry_run, 'selection', p_selection,
        'head', supersede.iso(p_head), 'repeated', false,
        'plan', supersede.digest(coalesce(jsonb_agg(o.value - 'undone_at' order by o.place), '[]')),
        'notice', supersede.undo_notice(p_namespace, p_selection, p_operations),
        'operations', coalesce(jsonb_agg(
            case when p_dry_run then o.value || '{"undone_at": null}' else o.value end order by o.place), '[]'))
    from jsonb_array_elements(p_operations) with ordinality as o(value, place));
