-- Binds from its stamp on. Open versions are closed and opened again with or without their slot key, so
-- that the exclusion constraint holds them from now on and the past keeps what it said.
create or replace function supersede.verb_declare_predicate(
    p_namespace text, p_event jsonb, p_stamp timestamptz)
returns jsonb
language plpgsql
as $$
declare
    v_key text := supersede.fold(p_event ->> 'name');
    v_overlaps jsonb;
    v_version record;
begin
    if not p_event ? 'name' or not p_event ? 'cardinality' then
        perform supersede.fail('SU013', 'declare_predicate needs a name and a cardinality');
    end if;
    if p_event ->> 'cardinality' = 'one' then
        select jsonb_agg(distinct pair.names) into v_overlaps
        from (
            select jsonb_build_array(supersede.name_of(p_namespace, a.fact_id),
                                     supersede.name_of(p_namespace, b.fact_id)) as names
            from supersede.fact_version va
            join supersede.fact a on a.namespace = va.namespace and a.fact_id = va.fact_id
            join supersede.fact b on b.namespace = a.namespace and b.subject_key = a.subject_key
                                 and b.predicate_key = a.predicate_key and b.fact_id > a.fact_id
            join supersede.fact_version vb on vb.is_open and vb.namespace = b.namespace
                                 and vb.fact_id = b.fact_id and vb.valid_time && va.valid_time
            where va.is_open and va.namespace = p_namespace and a.predicate_key = v_key
            limit 100) as pair;
        if v_overlaps is not null then
            perform supersede.fail('SU014', format(
                '%L cannot be one-valued while values overlap; end or supersede one of each pair: %s',
                p_event ->> 'name', v_overlaps), jsonb_build_object('overlaps', v_overlaps));
        end if;
    end if;
    insert into supersede.predicate (namespace, predicate_key, stamp, name, cardinality)
    values (p_namespace, v_key, p_stamp, p_event ->> 'name', p_event ->> 'cardinality');
    for v_version in
        select v.version_id, v.fact_id, v.valid_time,
               supersede.slot_of(p_namespace, f.subject_key, f.predicate_key) as slot
        from supersede.fact_version v
        join supersede.fact f on f.namespace = v.namespace and f.fact_id = v.fact_id
        where v.is_open and v.namespace = p_namespace and f.predicate_key = v_key
          and v.slot_key is distinct from
              supersede.slot_of(p_namespace, f.subject_key, f.predicate_key)
    loop
        update supersede.fact_version v
        set is_open = false, tx_time = tstzrange(lower(v.tx_time), p_stamp), embedding = null
        where v.is_open and v.namespace = p_namespace and v.version_id = v_version.version_id;
        perform supersede.insert_version(
            p_namespace, v_version.fact_id, v_version.valid_time, v_version.slot, p_stamp);
    end loop;
    return jsonb_build_object('name', p_event ->> 'name', 'cardinality', p_event ->> 'cardinality');
end
$$;
