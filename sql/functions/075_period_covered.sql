-- The period where validity is already held: all of it, or what of it lies on one side of a bound, or
-- exactly the two bounds that were said.
create or replace function supersede.period_covered(p_held tstzmultirange, p_event jsonb)
returns tstzmultirange
language plpgsql stable
as $$
declare
    v_from record := supersede.bound(p_event, 'valid_from', 'no_start');
    v_to record := supersede.bound(p_event, 'valid_to', 'no_end');
    v_said tstzmultirange := supersede.period(v_from.at, v_to.at);
begin
    return case when v_from.said and v_to.said then v_said else p_held * v_said end;
end
$$;
