-- The digest of what an undo was selected by, as an event keeps it once a fact that it moved is erased: with the
-- key, so that a retry is still told from another undo with its handle. Empty for other events.
create or replace function supersede.keyed_selection(p_event jsonb) returns jsonb
language sql stable
return case
    when p_event ? 'selection' and not p_event ->> 'selection' like 'k:%' then jsonb_build_object(
        'selection', supersede.keyed_digest('selection', p_event ->> 'selection'))
    else '{}' end;
