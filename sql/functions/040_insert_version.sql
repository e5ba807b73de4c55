-- One open version. Only a standing one (open, without an end) carries the active space's vector.
create or replace function supersede.insert_version(
    p_namespace text, p_fact_id uuid, p_valid_time tstzrange, p_slot uuid, p_stamp timestamptz)
returns void
language plpgsql
as $$
begin
    insert into supersede.fact_version
        (namespace, is_open, version_id, fact_id, valid_time, tx_time, slot_key,
         kind, trust, recorded, embedding)
    select p_namespace, true, supersede.new_id(), p_fact_id, p_valid_time, tstzrange(p_stamp, null),
           p_slot, f.kind, f.trust, f.stamp,
           case when upper_inf(p_valid_time) then (
               select e.vector
               from supersede.embedding e join supersede.embedding_space s on s.id = e.space_id
               where s.active and e.namespace = p_namespace and e.fact_id = p_fact_id) end
    from supersede.fact f
    where f.namespace = p_namespace and f.fact_id = p_fact_id;
end
$$;
