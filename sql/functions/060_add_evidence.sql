-- Sources are URIs or [URI, asserted]; without a date of its own, a source has the call's.
create or replace function supersede.add_evidence(
    p_namespace text, p_fact_id uuid, p_sources jsonb, p_asserted_at timestamptz, p_stamp timestamptz)
returns void
language plpgsql
as $$
declare
    v_source jsonb;
    v_uri text;
    v_asserted_at timestamptz;
begin
    for v_source in select * from jsonb_array_elements(coalesce(p_sources, '[]')) loop
        v_uri := case jsonb_typeof(v_source) when 'array' then v_source ->> 0 else v_source #>> '{}' end;
        if jsonb_typeof(v_source) not in ('string', 'array') or v_uri is null or btrim(v_uri) = ''
           or octet_length(v_uri) > 2000 then
            perform supersede.fail('SU013', format(
                'a source is a URI of 1 to 2,000 bytes, or a pair of one and a date, not %s',
                left(v_source::text, 100)));
        end if;
        v_asserted_at := coalesce(supersede.instant(
            case jsonb_typeof(v_source) when 'array' then v_source ->> 1 end, 'asserted'), p_asserted_at);
        if exists (
            select from supersede.evidence e
            where e.namespace = p_namespace and e.fact_id = p_fact_id and e.source_uri = v_uri
              and e.stamp = p_stamp and e.asserted_at is distinct from v_asserted_at)
        then
            perform supersede.fail('SU013', format('source %L is given twice, with two dates', v_uri));
        end if;
        insert into supersede.evidence (namespace, fact_id, source_uri, asserted_at, stamp)
        select p_namespace, p_fact_id, v_uri, v_asserted_at, p_stamp
        where not exists (
            select from supersede.evidence e
            where e.namespace = p_namespace and e.fact_id = p_fact_id and e.source_uri = v_uri
              and (e.stamp = p_stamp or e.asserted_at is not distinct from v_asserted_at));
    end loop;
end
$$;
