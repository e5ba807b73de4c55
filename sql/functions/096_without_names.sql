-- An event or a result that tells of an erased fact among others: its names give way to its id; notes, which
-- may say anything, are left out. Of an event only the keys that name facts
-- are looked at: a claim may well consist of the same letters.
create or replace function supersede.without_names(
    p_json jsonb, p_names text[], p_fact_id uuid, p_deep boolean)
returns jsonb
language plpgsql immutable
as $$
declare
    v_array boolean := jsonb_typeof(p_json) = 'array';
begin
    if v_array then
        return (
            select coalesce(jsonb_agg(case when p_deep then supersede.without_names(
                e.value, p_names, p_fact_id, true) else e.value end order by e.place), '[]')
            from jsonb_array_elements(p_json) with ordinality as e(value, place));
    elsif jsonb_typeof(p_json) <> 'object' then
        return p_json;
    end if;
    return (
        select coalesce(jsonb_object_agg(e.key, case
            when e.key in ('ref', 'by') and e.value #>> '{}' = any (p_names) then to_jsonb(p_fact_id)
            when e.key in ('old', 'refs') and jsonb_typeof(e.value) = 'array' then (
                select coalesce(jsonb_agg(case when o.value #>> '{}' = any (p_names)
                    then to_jsonb(p_fact_id) else o.value end order by o.place), '[]')
                from jsonb_array_elements(e.value) with ordinality as o(value, place))
            when p_deep then supersede.without_names(e.value, p_names, p_fact_id, true)
            else e.value end), '{}')
        from jsonb_each(p_json) as e
        where e.key not in ('note', 'source'));
end
$$;
