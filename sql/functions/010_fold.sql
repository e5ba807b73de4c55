-- Values are compared by form, case and spaces folded, never by punctuation: C is not C++.
create or replace function supersede.fold(value text) returns text
language sql immutable parallel safe strict
return btrim(
    regexp_replace(
        lower(normalize(value, nfkc) collate pg_catalog.pg_c_utf8),
        '\s+', ' ', 'g'),
    ' ');

comment on function supersede.fold(text) is
    'The form by which subjects, predicates and objects are compared: NFKC, lower case, single spaces.';
