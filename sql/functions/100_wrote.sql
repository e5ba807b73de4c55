-- The rows of one kind that the operations of some ledger lines wrote, each with its operation's stamp.
create or replace function supersede.wrote(p_lines jsonb[], p_kind text)
returns table (stamp timestamptz, r jsonb)
language sql stable
begin atomic
    select (l ->> 'stamp')::timestamptz, w
    from unnest(p_lines) as l, jsonb_array_elements(coalesce(l #> array['wrote', p_kind], '[]')) as w;
end;
