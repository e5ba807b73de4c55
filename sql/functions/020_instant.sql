-- ISO 8601 only: PostgreSQL itself would take 'yesterday', 'UTC+3' with the sign reversed, 12/01/2024.
create or replace function supersede.instant(p_text text, p_name text default 'instant')
returns timestamptz
language plpgsql immutable parallel safe
as $$
declare
    v_text text := p_text;
    v_at timestamptz;
begin
    if v_text is null then
        return null;
    end if;
    if v_text ~ '^\d{4}-\d\d-\d\d$' then
        v_text := v_text || 'T00:00:00Z';
    end if;
    if v_text !~ '^\d{4}-\d\d-\d\d[T ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,6})?)?(Z|[+-](0\d|1[0-5])(:?[0-5]\d)?)$'
       or left(v_text, 4) = '0000' then
        perform supersede.fail('SU002', format(
            '%s: %L is not an instant; write ISO 8601 with an offset (2026-07-24T00:00:00Z) or a bare date',
            p_name, p_text));
    end if;
    v_at := v_text::timestamptz;
    if v_at not between '0001-01-01 00:00:00+00' and '9999-12-31 23:59:59.999999+00' then
        perform supersede.fail('SU002', format(
            '%s: %L lies outside the years 1 to 9999 in UTC', p_name, p_text));
    end if;
    return v_at;
exception
    when datetime_field_overflow or invalid_datetime_format or invalid_time_zone_displacement_value then
        perform supersede.fail('SU002', format('%s: there is no such instant as %L', p_name, p_text));
end
$$;

comment on function supersede.instant(text, text) is
    'Reads ISO 8601 with an offset, or a bare date as midnight UTC; refuses everything else.';
