-- Which operations an event of undo selects, checked, with its instants in their printed form.
create or replace function supersede.selection_of(p_event jsonb) returns jsonb
language plpgsql stable
as $$
declare
    v_known text[] := array['op', 'actor', 'run', 'source', 'stamp', 'since', 'until', 'dry_run', 'plan',
                            'handle', 'note', 'own_run'];
    v_key text;
    v_value jsonb;
    v_type text;
begin
    for v_key, v_value in select * from jsonb_each(p_event) loop
        if v_key <> all (v_known) then
            perform supersede.fail('SU013', format('undo takes no %L; it takes %s',
                v_key, array_to_string(v_known, ', ')));
        end if;
        v_type := case v_key when 'dry_run' then 'boolean' else 'string' end;
        if jsonb_typeof(v_value) <> v_type then
            perform supersede.fail('SU013', format('undo: %s must be of JSON type %s, not %s',
                v_key, v_type, jsonb_typeof(v_value)));
        end if;
        if v_type = 'string' and v_key <> 'note' and btrim(v_value #>> '{}') = '' then
            perform supersede.fail('SU013', format('undo: %s is empty', v_key));
        end if;
    end loop;
    if not p_event ?| array['actor', 'run', 'source', 'stamp'] then
        perform supersede.fail('SU013', 'undo needs to know whose operations: an actor, a run or a source');
    end if;
    if not p_event ?| array['run', 'stamp', 'since'] then
        perform supersede.fail('SU013',
            'undo needs since: from when on; only a run may be undone from its beginning');
    end if;
    if supersede.instant(p_event ->> 'until', 'until') <= supersede.instant(p_event ->> 'since', 'since') then
        perform supersede.fail('SU001', format('undo: no operation is since %s and before %s',
            p_event ->> 'since', p_event ->> 'until'));
    end if;
    perform supersede.check_size(p_event, 'handle', 960);
    return (
        select jsonb_object_agg(e.key, case when e.key in ('stamp', 'since', 'until')
            then supersede.iso(supersede.instant(e.value, e.key)) else e.value end)
        from jsonb_each_text(p_event) as e
        where e.key in ('actor', 'run', 'source', 'stamp', 'since', 'until'));
end
$$;
