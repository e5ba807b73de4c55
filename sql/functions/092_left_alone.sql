-- Why an undo leaves something alone, for its result: empty where there is nothing. p_by: the fact for whose
-- sake, if there is one.
create or replace function supersede.left_alone(
    p_namespace text, p_fact_id uuid, p_periods tstzmultirange, p_reason text, p_by uuid)
returns jsonb
language sql stable
return case when isempty(p_periods) then '[]'::jsonb else jsonb_build_array(
    supersede.named_periods(p_namespace, p_fact_id, p_periods) || jsonb_build_object(
        'reason', p_reason,
        'by', case when p_by is not null then jsonb_build_object(
            'id', p_by, 'ref', supersede.first_ref(p_namespace, p_by)) end)) end;
