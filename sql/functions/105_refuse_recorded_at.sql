-- Transaction time is the store's; only replay, which needs its own privilege, brings another.
create or replace function supersede.refuse_recorded_at(p_event jsonb) returns void
language plpgsql immutable
as $$
begin
    if p_event ? 'recorded_at' or p_event ? 'id' then
        perform supersede.fail('SU013',
            'recorded_at and id are set by the store; use replay to bring history with its own');
    end if;
end
$$;
