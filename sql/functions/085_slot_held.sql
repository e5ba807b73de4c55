-- Where a slot is held by facts other than one, and by which.
create or replace function supersede.slot_held(
    p_namespace text, p_slot uuid, p_except uuid[], out region tstzmultirange, out fact_ids uuid[])
language sql stable
begin atomic
    select coalesce(range_agg(v.valid_time), '{}'), array_agg(distinct v.fact_id)
    from supersede.fact_version v
    where v.is_open and v.namespace = p_namespace and v.slot_key = p_slot
      and v.fact_id <> all (p_except);
end;
