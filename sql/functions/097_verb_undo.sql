-- The inverse of what one operation did to validity, as far as it still stands. What is history (evidence,
-- refs, edges, declarations) stays.
create or replace function supersede.verb_undo(p_namespace text, p_event jsonb, p_stamp timestamptz)
returns jsonb
language plpgsql
as $$
declare
    v_undone timestamptz := supersede.instant(p_event ->> 'stamp', 'stamp');
    v_why text := supersede.not_undone(p_namespace, v_undone);
    v_facts uuid[];
    v_fact_id uuid;
    v_each record;
    v_standing tstzmultirange := '{}';
    v_withdrawn jsonb := '[]';
    v_given_back jsonb := '[]';
    v_left_alone jsonb := '[]';
begin
    if v_why is not null then
        perform supersede.fail('SU013', format('the operation at %s cannot be undone: %s',
            coalesce(p_event ->> 'stamp', 'no stamp'), v_why));
    end if;
    v_facts := supersede.moved_by(p_namespace, v_undone);
    perform supersede.require_unmoved(p_namespace, v_facts, null, null, p_event);
    -- All is cut before anything is given back: in a slot the one makes room for the other.
    foreach v_fact_id in array v_facts loop
        v_each := supersede.undo_gained(p_namespace, v_fact_id, v_undone, p_stamp);
        v_standing := v_standing + v_each.standing;
        v_left_alone := v_left_alone || v_each.left_alone;
        if not isempty(v_each.withdrawn) then
            v_withdrawn := v_withdrawn
                || supersede.named_periods(p_namespace, v_fact_id, v_each.withdrawn);
        end if;
    end loop;
    foreach v_fact_id in array v_facts loop
        v_each := supersede.undo_lost(p_namespace, v_fact_id, v_undone, v_standing, p_stamp);
        v_left_alone := v_left_alone || v_each.left_alone;
        if not isempty(v_each.given_back) then
            v_given_back := v_given_back
                || supersede.named_periods(p_namespace, v_fact_id, v_each.given_back);
        end if;
    end loop;
    return jsonb_build_object('undone', supersede.iso(v_undone), 'withdrawn', v_withdrawn,
        'given_back', v_given_back, 'left_alone', v_left_alone);
end
$$;
