-- The one printed form of an instant, whatever the session's time zone and DateStyle.
create or replace function supersede.iso(p_at timestamptz) returns text
language sql stable parallel safe strict
return to_char(p_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS')
    || case when extract(microseconds from p_at)::bigint % 1000000 = 0 then ''
            else rtrim(to_char(p_at at time zone 'UTC', '.US'), '0') end
    || 'Z';

comment on function supersede.iso(timestamptz) is 'ISO 8601 in UTC, with as many decimals as needed.';
