-- A period from two bounds; NULL is unbounded. Empty and reversed ones are refused.
create or replace function supersede.period(p_from timestamptz, p_to timestamptz)
returns tstzmultirange
language plpgsql immutable
as $$
begin
    if p_from >= p_to then
        perform supersede.fail('SU001', format(
            'the period would be empty: it starts at %s and ends at %s; its end must lie after its start',
            supersede.iso(p_from), supersede.iso(p_to)));
    end if;
    return tstzmultirange(tstzrange(p_from, p_to, '[)'));
end
$$;
