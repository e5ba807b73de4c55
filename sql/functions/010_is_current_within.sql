-- As is_current, of a period: whether some instant of it will do.
create or replace function supersede.is_current_within(
    valid_time tstzrange, tx_time tstzrange, valid_during tstzrange, known_at timestamptz)
returns boolean
language sql immutable parallel safe
return valid_time && valid_during and tx_time @> known_at;

comment on function supersede.is_current_within(tstzrange, tstzrange, tstzrange, timestamptz) is
    'Whether a version is valid at some instant of valid_during and was held by the store at known_at.';
