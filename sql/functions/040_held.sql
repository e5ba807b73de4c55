-- The validity that a fact is believed for now: the union of its open versions.
create or replace function supersede.held(p_namespace text, p_fact_id uuid) returns tstzmultirange
language sql stable
return coalesce(
    (select range_agg(v.valid_time) from supersede.fact_version v
     where v.is_open and v.namespace = p_namespace and v.fact_id = p_fact_id),
    '{}');
