-- Undoes what an event selects, or says what would be done: the dry run is the real one, rolled back.
create or replace function supersede.undo_selected(p_namespace text, p_event jsonb, p_actor text)
returns jsonb
language plpgsql
as $$
declare
    v_selection jsonb := supersede.selection_of(p_event);
    v_dry_run boolean := coalesce((p_event ->> 'dry_run')::boolean, true);
    v_shared jsonb := jsonb_strip_nulls(jsonb_build_object(
        'note', p_event -> 'note', 'run', p_event -> 'own_run',
        'selection', supersede.digest(v_selection || jsonb_build_object('note', p_event -> 'note'))));
    v_head timestamptz;
    v_operations jsonb;
    v_result jsonb;
begin
    if not exists (select from supersede.namespace n where n.namespace = p_namespace) then
        return supersede.undoing(p_namespace, v_selection, null, v_dry_run, '[]');
    end if;
    begin
        v_head := (supersede.lock_namespace(p_namespace)).head;
        if supersede.instant(v_selection ->> 'since', 'since') > greatest(supersede.clock(), v_head) then
            perform supersede.fail('SU002', format(
                'since: %s lies in the future', v_selection ->> 'since'));
        end if;
        v_operations := supersede.undone_before(
            p_namespace, p_event ->> 'handle', v_shared ->> 'selection');
        if v_operations is not null then
            return supersede.undoing(p_namespace, v_selection, v_head, false, v_operations)
                || '{"repeated": true}';
        end if;
        v_operations := supersede.undo_each(
            p_namespace, v_selection, v_head, v_shared, p_event ->> 'handle', p_actor);
        v_result := supersede.undoing(p_namespace, v_selection, v_head, v_dry_run, v_operations);
        if v_result ->> 'plan' <> p_event ->> 'plan' then
            perform supersede.fail('SU009',
                'this would no longer do what the plan says; look at a new plan and decide again');
        end if;
        if v_dry_run then
            raise exception using errcode = 'SU900', message = 'a dry run leaves nothing';
        end if;
    exception when sqlstate 'SU900' then
        null;  -- the variables keep what would have been done
    end;
    return v_result;
end
$$;
