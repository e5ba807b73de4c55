-- Whether a recording time may follow the latest one. Returns the late event's own time, to be kept as
-- asserted, where late ones are let through to the next free stamp.
create or replace function supersede.check_order(
    p_recorded_at timestamptz, p_latest timestamptz, p_out_of_order text)
returns timestamptz
language plpgsql
as $$
begin
    if p_recorded_at > supersede.clock() then
        perform supersede.fail('SU003', format(
            'recorded_at %s lies in the future', supersede.iso(p_recorded_at)));
    end if;
    if p_recorded_at >= p_latest then
        return null;
    end if;
    if p_out_of_order <> 'next_stamp' then
        perform supersede.fail('SU003', format(
            'recorded_at %s comes before %s, which is already in the ledger; replay in order, or pass '
            'out_of_order="next_stamp" to give late events the next free stamp',
            supersede.iso(p_recorded_at), supersede.iso(p_latest)));
    end if;
    return p_recorded_at;
end
$$;
