-- Keys stand in btrees, whose entries have a size limit; folding may lengthen a text.
create or replace function supersede.check_size(p_event jsonb, p_key text, p_bytes integer)
returns void
language plpgsql immutable
as $$
begin
    if greatest(octet_length(p_event ->> p_key), octet_length(supersede.fold(p_event ->> p_key))) > p_bytes
    then
        perform supersede.fail('SU013', format('%s is longer than %s bytes', p_key, p_bytes));
    end if;
end
$$;
