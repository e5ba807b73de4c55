-- The ref a fact is shown by: the first it was given. NULL where it has none.
create or replace function supersede.first_ref(p_namespace text, p_fact_id uuid) returns text
language sql stable
return (
    select r.ref from supersede.fact_ref r
    where r.namespace = p_namespace and r.fact_id = p_fact_id
    order by r.stamp, r.ref limit 1);
