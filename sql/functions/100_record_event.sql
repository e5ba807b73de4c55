-- One operation, from the lock to the head: every verb goes this way.
create or replace function supersede.record_event(
    p_namespace text, p_event jsonb, p_embedding halfvec, p_space smallint, p_truncated boolean,
    p_actor text, p_replay boolean, p_out_of_order text)
returns jsonb
language plpgsql
as $$
declare
    v_event jsonb := supersede.object_of(p_event);
    v_verb text := v_event ->> 'op';
    v_digest text := supersede.digest(
        v_event - 'handle' - 'recorded_at' - 'based_on' - 'run');
    v_handle text := v_event ->> 'handle';
    v_recorded_at timestamptz := supersede.instant(v_event ->> 'recorded_at', 'recorded_at');
    v_namespace record;
    v_result jsonb;
    v_clock timestamptz;
    v_stamp timestamptz;
    v_now timestamptz;
    v_asserted_at timestamptz;
begin
    perform supersede.check_event(v_event);
    if p_replay then
        -- A decision's basis is checked when it is made, not when its history is told.
        v_event := v_event - 'based_on';
    end if;
    if v_handle is null and v_verb in ('remember', 'supersede', 'amend') then
        v_handle := v_event ->> 'ref';
    end if;
    if v_handle is null and p_replay then
        v_handle := supersede.digest(v_event - 'run');
    end if;
    v_namespace := supersede.lock_namespace(p_namespace);
    v_result := supersede.repeat_of(
        p_namespace, v_verb, v_handle, v_event ? 'handle', v_digest);
    if v_result is not null then
        return v_result;
    end if;

    v_clock := supersede.clock();
    v_stamp := greatest(v_clock, v_namespace.head + interval '1 microsecond');
    v_now := v_stamp;
    if p_replay then
        if v_recorded_at is null then
            perform supersede.fail('SU013', 'an event to replay needs recorded_at');
        end if;
        v_now := v_recorded_at;
        v_asserted_at := supersede.check_order(
            v_recorded_at, v_namespace.recorded_at, p_out_of_order);
        v_stamp := greatest(v_recorded_at, v_namespace.head + interval '1 microsecond');
    end if;

    v_result := case v_verb
        when 'remember' then supersede.verb_remember(p_namespace, v_event, v_stamp, v_now,
            v_asserted_at, p_embedding, p_space, p_truncated)
        when 'supersede' then supersede.verb_supersede(p_namespace, v_event, v_stamp, v_now,
            v_asserted_at, p_embedding, p_space, p_truncated)
        when 'amend' then supersede.verb_amend(p_namespace, v_event, v_stamp, v_now,
            v_asserted_at, p_embedding, p_space, p_truncated)
        when 'end' then supersede.verb_end(p_namespace, v_event, v_stamp, v_now)
        when 'retract' then supersede.verb_retract(p_namespace, v_event, v_stamp)
        when 'reinstate' then supersede.verb_reinstate(p_namespace, v_event, v_stamp)
        when 'undo' then supersede.verb_undo(p_namespace, v_event, v_stamp)
        when 'cite' then supersede.verb_cite(p_namespace, v_event, v_stamp, v_now)
        when 'erase' then supersede.verb_erase(p_namespace, v_event, v_stamp)
        when 'lift_erasure' then supersede.verb_lift_erasure(p_namespace, v_event, v_stamp)
        when 'declare_predicate' then supersede.verb_declare_predicate(p_namespace, v_event, v_stamp)
    end || jsonb_build_object(
        'verb', v_verb, 'namespace', p_namespace, 'stamp', supersede.iso(v_stamp), 'repeated', false)
        || case when not p_replay and v_stamp > v_clock + interval '1 second' then jsonb_build_object(
            'notice', format('the server''s clock stands at %s, behind the newest stamp of this '
                'namespace; this write was stamped right after that one', supersede.iso(v_clock)))
           else '{}' end;

    if v_verb in ('erase', 'lift_erasure') then
        -- By its id: the ledger must not keep a name of what it says was destroyed.
        v_handle := case when v_event ? 'handle' then v_handle
                         else supersede.keyed_digest('handle', v_handle) end;
        v_digest := supersede.keyed_digest('event', v_digest);
        v_event := v_event || jsonb_build_object('ref', v_result -> 'id');
    end if;
    insert into supersede.operation
        (namespace, stamp, verb, actor, handle, digest, note, event, result, run)
    values (p_namespace, v_stamp, v_verb, p_actor, v_handle, v_digest, v_event ->> 'note',
            v_event, v_result, v_event ->> 'run');
    update supersede.namespace n
    set head = v_stamp,
        recorded_at = greatest(n.recorded_at, case when p_replay then v_recorded_at else v_stamp end)
    where n.namespace = p_namespace;
    return v_result;
end
$$;
