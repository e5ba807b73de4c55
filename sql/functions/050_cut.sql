-- Takes a region out of a fact's validity at a stamp: closes each open version that overlaps it and
-- opens what is left of it on either side. valid_time is never updated: that would forget the past.
create or replace function supersede.cut(
    p_namespace text, p_fact_id uuid, p_region tstzmultirange, p_stamp timestamptz)
returns void
language plpgsql
as $$
declare
    v_version record;
    v_rest tstzrange;
begin
    for v_version in
        select v.version_id, v.valid_time, v.slot_key
        from supersede.fact_version v
        where v.is_open and v.namespace = p_namespace and v.fact_id = p_fact_id
          and v.valid_time && p_region
    loop
        update supersede.fact_version v
        set is_open = false, tx_time = tstzrange(lower(v.tx_time), p_stamp), embedding = null
        where v.is_open and v.namespace = p_namespace and v.version_id = v_version.version_id;
        foreach v_rest in array (
            select coalesce(array_agg(r), '{}')
            from unnest(tstzmultirange(v_version.valid_time) - p_region) as r)
        loop
            perform supersede.insert_version(
                p_namespace, p_fact_id, v_rest, v_version.slot_key, p_stamp);
        end loop;
    end loop;
end
$$;
