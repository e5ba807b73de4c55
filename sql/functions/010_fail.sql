-- Errors carry a code that Python maps to a class, and details as JSON.
create or replace function supersede.fail(p_code text, p_message text, p_details jsonb default '{}')
returns void
language plpgsql
as $$
begin
    raise exception using errcode = p_code, message = p_message, detail = p_details::text;
end
$$;
