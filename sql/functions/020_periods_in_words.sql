-- A multirange for a message: [2024-01-01, 2024-06-01), from 2025-01-01 on.
create or replace function supersede.periods_in_words(p_periods tstzmultirange) returns text
language sql stable
return (
    select string_agg(
        case
            when lower(r) is null and upper(r) is null then 'of all time'
            when upper(r) is null then format('from %s on', regexp_replace(supersede.iso(lower(r)), 'T00:00:00Z$', ''))
            when lower(r) is null then format('until %s', regexp_replace(supersede.iso(upper(r)), 'T00:00:00Z$', ''))
            else format('[%s, %s)', regexp_replace(supersede.iso(lower(r)), 'T00:00:00Z$', ''),
                        regexp_replace(supersede.iso(upper(r)), 'T00:00:00Z$', ''))
        end, ', ' order by r)
    from unnest(p_periods) as r);
