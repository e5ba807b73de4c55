-- Erasing and lifting are accounted for: somebody will ask why.
create or replace function supersede.require_reason(p_event jsonb) returns void
language plpgsql immutable
as $$
begin
    if supersede.fold(coalesce(p_event ->> 'note', '')) = '' then
        perform supersede.fail('SU013', format(
            '%s needs a note, which says why; it is kept, so let it not repeat what the fact said',
            p_event ->> 'op'));
    end if;
end
$$;
