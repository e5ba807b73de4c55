-- jsonb prints its keys in one order and its numbers in one form, so equal arguments digest equally.
create or replace function supersede.digest(p_event jsonb) returns text
language sql immutable parallel safe strict
return encode(sha256(convert_to(p_event::text, 'UTF8')), 'hex');
