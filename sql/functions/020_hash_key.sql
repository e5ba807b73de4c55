-- A fixed-size key for texts of any length; the exclusion constraints compare these.
create or replace function supersede.hash_key(value text) returns uuid
language sql immutable parallel safe strict
return encode(substring(sha256(convert_to(value, 'UTF8')) for 16), 'hex')::uuid;

comment on function supersede.hash_key(text) is '128 bits of the SHA-256 of a text.';
