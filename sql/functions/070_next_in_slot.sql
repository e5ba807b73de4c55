-- When the next version in the slot is known to start, after an instant (NULL: the beginning of time).
create or replace function supersede.next_in_slot(
    p_namespace text, p_slot uuid, p_after timestamptz, p_except uuid[])
returns timestamptz
language sql stable
return (
    select min(lower(v.valid_time))
    from supersede.fact_version v
    where v.is_open and v.namespace = p_namespace and v.slot_key = p_slot
      and not lower_inf(v.valid_time)
      and (p_after is null or lower(v.valid_time) > p_after)
      and v.fact_id <> all (p_except));
