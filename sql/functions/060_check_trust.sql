-- What may take validity from what. The gates hold whoever asks, unless over_trust says otherwise.
create or replace function supersede.check_trust(
    p_namespace text, p_new supersede.trust, p_old_id uuid, p_reason supersede.reason)
returns void
language plpgsql stable
as $$
declare
    v_old supersede.trust;
begin
    select f.trust into v_old from supersede.fact f
    where f.namespace = p_namespace and f.fact_id = p_old_id;
    if p_new = 'summary' and v_old <> 'summary' then
        perform supersede.fail('SU008', format(
            'a summary may not take validity from %s, whose trust is %s; pass over_trust to insist',
            supersede.name_of(p_namespace, p_old_id), v_old));
    end if;
    if p_reason = 'correction' and p_new < v_old then
        perform supersede.fail('SU008', format(
            'a correction needs at least the trust of what it corrects: %s is %s, this is %s; '
            'pass over_trust to insist', supersede.name_of(p_namespace, p_old_id), v_old, p_new));
    end if;
end
$$;
