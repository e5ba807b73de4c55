-- Data must be readable again by every client: not nested deeper than a reader follows, no number longer
-- than one is parsed. Strings are blanked first, so that what is counted is structure.
create or replace function supersede.check_data(p_data jsonb) returns void
language plpgsql immutable
as $$
declare
    v_shape text := regexp_replace(p_data::text, '"([^"\\]|\\.)*"', '""', 'g');
    v_depth integer;
begin
    if octet_length(p_data::text) > 65536 then
        perform supersede.fail('SU013', 'data is meant to be small: at most 64 KiB of JSON');
    end if;
    if v_shape ~ '([0-9]{103}){3}' then
        perform supersede.fail('SU013', 'data holds a number of more than 308 digits');
    end if;
    select max(b.depth) into v_depth
    from (
        select sum(case when m[1] in ('{', '[') then 1 else -1 end) over (order by place) as depth
        from regexp_matches(v_shape, '[][{}]', 'g') with ordinality as r(m, place)) as b;
    if v_depth > 50 then
        perform supersede.fail('SU013', 'data is nested more than 50 deep');
    end if;
end
$$;
