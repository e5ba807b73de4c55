-- One end of a period as said in an event. A NULL bound means unbounded, so "said" is told apart.
create or replace function supersede.bound(
    p_event jsonb, p_name text, p_unbounded text, out said boolean, out at timestamptz)
language plpgsql immutable
as $$
begin
    said := p_event ? p_name;
    if p_event ->> p_name is distinct from p_unbounded then
        at := supersede.instant(p_event ->> p_name, p_name);
    end if;
end
$$;
