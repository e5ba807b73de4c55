-- An event without its nulls, which say nothing.
create or replace function supersede.object_of(p_event jsonb) returns jsonb
language plpgsql immutable
as $$
begin
    if jsonb_typeof(p_event) is distinct from 'object' then
        perform supersede.fail('SU013', format(
            'an event is a JSON object, not %s', coalesce(jsonb_typeof(p_event), 'NULL')));
    end if;
    return (
        select coalesce(jsonb_object_agg(key, value), '{}')
        from jsonb_each(p_event) where jsonb_typeof(value) <> 'null');
end
$$;
