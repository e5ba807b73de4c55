-- What a person would call a fact in a message: its first ref, else its id.
create or replace function supersede.name_of(p_namespace text, p_fact_id uuid) returns text
language sql stable
return coalesce(supersede.first_ref(p_namespace, p_fact_id), p_fact_id::text);
