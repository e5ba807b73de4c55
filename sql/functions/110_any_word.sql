-- A question as a query that any of its words satisfies. Quoted by hand: quote_literal would write E'' for
-- a backslash, which is no tsquery.
create or replace function supersede.any_word(p_configuration regconfig, p_text text) returns tsquery
language sql stable parallel safe
return (
    select string_agg(
        '''' || replace(replace(lexeme, '\', '\\'), '''', '''''') || '''', ' | ')::tsquery
    from unnest(to_tsvector(p_configuration, p_text)));

comment on function supersede.any_word(regconfig, text) is
    'The lexemes of a text, OR-ed; NULL where it has none.';
