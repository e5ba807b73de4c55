-- Versions that the lines opened and closed, brought to where the last of the lines leaves them: first the
-- older ones are closed, so that no constraint sees two states at once.
create or replace function supersede.import_versions(p_namespace text, p_lines jsonb[]) returns void
language plpgsql
as $$
declare
    v_closed integer;
    v_wanted integer;
begin
    update supersede.fact_version v
    set is_open = false, tx_time = tstzrange(lower(v.tx_time), w.stamp), embedding = null
    from supersede.wrote(p_lines, 'closed') as w
    where v.is_open and v.namespace = p_namespace and v.version_id = (w.r #>> '{}')::uuid;
    get diagnostics v_closed = row_count;

    insert into supersede.fact_version
        (namespace, is_open, version_id, fact_id, valid_time, tx_time, slot_key,
         kind, trust, recorded, embedding)
    select p_namespace, c.stamp is null, (w.r ->> 'id')::uuid, f.fact_id, v.valid_time,
           tstzrange(w.stamp, c.stamp), (w.r ->> 'slot')::uuid, f.kind, f.trust, f.stamp,
           case when c.stamp is null and upper_inf(v.valid_time) then (
               select e.vector
               from supersede.embedding e join supersede.embedding_space s on s.id = e.space_id
               where s.active and e.namespace = p_namespace and e.fact_id = f.fact_id) end
    from supersede.wrote(p_lines, 'opened') as w
    cross join lateral (
        select tstzrange((w.r #>> '{valid,0}')::timestamptz, (w.r #>> '{valid,1}')::timestamptz)
                   as valid_time) as v
    left join supersede.wrote(p_lines, 'closed') as c on c.r #>> '{}' = w.r ->> 'id'
    left join supersede.fact f on f.namespace = p_namespace and f.fact_id = (w.r ->> 'fact')::uuid;

    select count(*) - count(o.r) into v_wanted
    from supersede.wrote(p_lines, 'closed') as c
    left join supersede.wrote(p_lines, 'opened') as o on o.r ->> 'id' = c.r #>> '{}';
    if v_closed <> v_wanted then
        perform supersede.fail('SU032', format(
            'of %s older versions that are closed here, %s are open', v_wanted, v_closed));
    end if;
    if exists (
        select from supersede.wrote(p_lines, 'opened') as w
        join supersede.fact f on f.namespace = p_namespace and f.fact_id = (w.r ->> 'fact')::uuid
        where (w.r ->> 'slot')::uuid <> supersede.hash_key(
            jsonb_build_array(f.subject_key, f.predicate_key)::text)
          and f.subject_key is not null and f.predicate_key is not null)
    then
        perform supersede.fail('SU032', 'a slot is not that of the subject and predicate of its fact');
    end if;
    -- Vectors filled later, for versions of earlier lines.
    update supersede.fact_version v
    set embedding = e.vector
    from supersede.wrote(p_lines, 'vectors') as w
    join supersede.embedding_space s on s.model = w.r ->> 'space' and s.active
    join supersede.embedding e on e.namespace = p_namespace and e.fact_id = (w.r ->> 'fact')::uuid
                              and e.space_id = s.id
    where v.is_open and upper_inf(v.valid_time) and v.namespace = p_namespace
      and v.fact_id = e.fact_id and v.embedding is null;
end
$$;
