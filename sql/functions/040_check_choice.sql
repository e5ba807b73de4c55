create or replace function supersede.check_choice(p_event jsonb, p_key text, p_choices text[])
returns void
language plpgsql immutable
as $$
begin
    if p_event ->> p_key <> all (p_choices) then
        perform supersede.fail('SU013', format('%s: %L is not one of %s',
            p_key, p_event ->> p_key, array_to_string(p_choices, ', ')));
    end if;
end
$$;
