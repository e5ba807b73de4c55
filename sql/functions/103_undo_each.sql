-- Undoes the operations of a selection from the newest to the oldest; what is done to each, in that order.
-- p_event: what all their events share.
create or replace function supersede.undo_each(
    p_namespace text, p_selection jsonb, p_head timestamptz, p_event jsonb, p_handle text, p_actor text)
returns jsonb
language plpgsql
as $$
declare
    v_stamps timestamptz[] := array(
        select s.stamp from supersede.selected(p_namespace, p_selection, p_head) as s order by s.stamp desc);
    v_cancelling timestamptz[] := supersede.cancelling(p_namespace, v_stamps);
    v_stamp timestamptz;
    v_event jsonb;
    v_why text;
    v_result jsonb;
    v_done jsonb := '[]';
begin
    foreach v_stamp in array v_stamps loop
        v_why := supersede.not_undone(p_namespace, v_stamp);
        if v_why is null and v_stamp = any (v_cancelling) then
            v_why := 'undo_of_selected';
        end if;
        v_result := '{}';
        if v_why is null then
            v_event := p_event || jsonb_build_object('op', 'undo', 'stamp', supersede.iso(v_stamp));
            if p_handle is not null then
                v_event := v_event || jsonb_build_object(
                    'handle', p_handle || ' ' || supersede.iso(v_stamp));
            end if;
            v_result := supersede.record_event(
                p_namespace, v_event, null, null, false, p_actor, false, 'refuse');
        end if;
        v_done := v_done || supersede.undone_operation(p_namespace, v_stamp, v_result, v_why);
    end loop;
    return v_done;
end
$$;
