-- By what an erased fact is known again: its claim, and its subject, predicate and object where it has all.
create or replace function supersede.erasure_digests(
    p_fact supersede.fact, out digest text, out value_digest text)
language sql stable
begin atomic
    select supersede.keyed_digest('claim', supersede.fold(p_fact.claim)),
           case when p_fact.subject_key is not null and p_fact.predicate_key is not null
                     and p_fact.object_key is not null
                then supersede.keyed_digest('value', jsonb_build_array(
                    p_fact.subject_key, p_fact.predicate_key, p_fact.object_key)::text) end;
end;
