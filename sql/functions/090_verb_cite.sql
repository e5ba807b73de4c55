create or replace function supersede.verb_cite(
    p_namespace text, p_event jsonb, p_stamp timestamptz, p_now timestamptz)
returns jsonb
language plpgsql
as $$
declare
    v_fact_id uuid := supersede.resolve(p_namespace, p_event ->> 'ref');
begin
    if jsonb_array_length(coalesce(p_event -> 'sources', '[]')) = 0 then
        perform supersede.fail('SU013', 'cite needs at least one source');
    end if;
    perform supersede.require_unmoved(p_namespace, array[v_fact_id], null, null, p_event);
    perform supersede.add_evidence(
        p_namespace, v_fact_id, p_event -> 'sources',
        coalesce(supersede.instant(p_event ->> 'asserted', 'asserted'), p_now), p_stamp);
    return supersede.written(p_namespace, v_fact_id, false, '{}', '[]');
end
$$;
