-- Names and types of an event's keys. What is misspelt must not be dropped in silence.
create or replace function supersede.check_event(p_event jsonb) returns void
language plpgsql immutable
as $$
declare
    v_verb text := p_event ->> 'op';
    v_content text[] := array['ref', 'claim', 'subject', 'predicate', 'object', 'kind', 'data', 'trust',
                              'valid_from', 'valid_to', 'sources', 'asserted', 'over_trust', 'id'];
    v_known text[];
    v_key text;
    v_value jsonb;
    v_type text;
begin
    v_known := array['op', 'recorded_at', 'handle', 'note', 'run', 'based_on'] || case v_verb
        when 'remember' then v_content
        when 'supersede' then v_content || array['old', 'by', 'reason', 'if_not_current']
        when 'amend' then v_content || array['old', 'by']
        when 'end' then array['ref', 'when', 'until']
        when 'retract' then array['ref', 'give_back']
        when 'reinstate' then array['ref', 'valid_from', 'valid_to']
        when 'cite' then array['ref', 'sources', 'asserted']
        when 'undo' then array['stamp', 'selection']
        when 'erase' then array['ref']
        when 'lift_erasure' then array['ref']
        when 'declare_predicate' then array['name', 'cardinality']
    end;
    if v_known is null then
        perform supersede.fail('SU013', format('%L is no verb', v_verb));
    end if;
    for v_key, v_value in select * from jsonb_each(p_event) loop
        if v_key <> all (v_known) then
            perform supersede.fail('SU013', format('%s takes no %L; it takes %s',
                v_verb, v_key, array_to_string(v_known, ', ')));
        end if;
        v_type := case v_key
            when 'old' then 'array' when 'sources' then 'array'
            when 'data' then 'object' when 'over_trust' then 'boolean'
            when 'give_back' then 'boolean' else 'string' end;
        if jsonb_typeof(v_value) <> v_type then
            perform supersede.fail('SU013', format('%s: %s must be of JSON type %s, not %s',
                v_verb, v_key, v_type, jsonb_typeof(v_value)));
        end if;
        if v_type = 'string' and v_key <> 'note' and supersede.fold(v_value #>> '{}') = '' then
            perform supersede.fail('SU013', format('%s: %s is empty', v_verb, v_key));
        end if;
    end loop;
    perform supersede.check_choice(p_event, 'trust', array['verbatim', 'extracted', 'summary']);
    perform supersede.check_choice(
        p_event, 'reason', array['change', 'correction', 'refinement', 'duplicate']);
    perform supersede.check_choice(p_event, 'if_not_current', array['link', 'refuse']);
    perform supersede.check_choice(p_event, 'cardinality', array['one', 'many']);
    if p_event ? 'data' then
        perform supersede.check_data(p_event -> 'data');
    end if;
    if octet_length(p_event ->> 'claim') > 200000 then
        perform supersede.fail('SU013', 'a claim is one statement: at most 200,000 bytes');
    end if;
    perform supersede.check_size(p_event, 'ref', 1000);
    perform supersede.check_size(p_event, 'handle', 1000);
    perform supersede.check_size(p_event, 'run', 1000);
    perform supersede.check_size(p_event, 'kind', 255);
    perform supersede.check_size(p_event, 'subject', 1000);
    perform supersede.check_size(p_event, 'predicate', 1000);
    perform supersede.check_size(p_event, 'name', 1000);
    perform supersede.check_size(p_event, 'object', 10000);
    if octet_length(p_event ->> 'note') > 10000 then
        perform supersede.fail('SU013', 'a note has at most 10,000 bytes');
    end if;
    if jsonb_array_length(p_event -> 'sources') > 1000 then
        perform supersede.fail('SU013', 'a call takes at most 1,000 sources');
    end if;
end
$$;
