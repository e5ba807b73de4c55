-- A fact and periods of it, as results list them.
create or replace function supersede.named_periods(p_namespace text, p_fact_id uuid, p_periods tstzmultirange)
returns jsonb
language sql stable
return jsonb_build_object(
    'id', p_fact_id, 'ref', supersede.first_ref(p_namespace, p_fact_id),
    'valid', supersede.iso_periods(p_periods));
