-- An event as one verb takes it from a writer. Transaction time and ids are the store's; only replay, which
-- needs its own privilege, brings others.
create or replace function supersede.event_of(p_verb text, p_event jsonb) returns jsonb
language plpgsql immutable
as $$
declare
    v_event jsonb := supersede.object_of(p_event);
begin
    if v_event ? 'recorded_at' or v_event ? 'id' then
        perform supersede.fail('SU013',
            'recorded_at and id are set by the store; use replay to bring history with its own');
    end if;
    if v_event ->> 'op' <> p_verb then
        perform supersede.fail('SU013', format(
            'this is an event of %s, not of %s', v_event ->> 'op', p_verb));
    end if;
    return v_event || jsonb_build_object('op', p_verb);
end
$$;
