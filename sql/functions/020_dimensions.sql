-- Bound to pgvector's own function when it is made: the verbs run without its schema on their path, where
-- somebody might put a function of the same name.
create or replace function supersede.dimensions(p_vector halfvec) returns integer
language sql immutable parallel safe strict
return vector_dims(p_vector);
