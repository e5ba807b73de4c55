-- A multirange as JSON: [["from", "to"], ...], null where unbounded.
create or replace function supersede.iso_periods(p_periods tstzmultirange) returns jsonb
language sql stable
return (
    select coalesce(
        jsonb_agg(jsonb_build_array(supersede.iso(lower(r)), supersede.iso(upper(r))) order by r), '[]')
    from unnest(p_periods) as r);
