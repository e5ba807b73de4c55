-- Currency, defined once. Plain SQL without SET or SECURITY DEFINER, so that it is inlined.
create or replace function supersede.is_current(
    valid_time tstzrange, tx_time tstzrange, valid_at timestamptz, known_at timestamptz)
returns boolean
language sql immutable parallel safe
return valid_time @> valid_at and tx_time @> known_at;

comment on function supersede.is_current(tstzrange, tstzrange, timestamptz, timestamptz) is
    'Whether a version is valid at valid_at and was held by the store at known_at.';
