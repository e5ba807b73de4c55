-- NULL where the pair is no slot: a part is missing, or the predicate is not declared one-valued.
create or replace function supersede.slot_of(p_namespace text, p_subject_key text, p_predicate_key text)
returns uuid
language sql stable
return (
    select case when p.cardinality = 'one'
                then supersede.hash_key(jsonb_build_array(p_subject_key, p_predicate_key)::text) end
    from supersede.predicate p
    where p.namespace = p_namespace and p.predicate_key = p_predicate_key
      and p_subject_key is not null
    order by p.stamp desc
    limit 1);

comment on function supersede.slot_of(text, text, text) is
    'The key of the slot of a folded subject and predicate, or NULL where the predicate is many-valued.';
