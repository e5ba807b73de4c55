-- Who may do what. Applied after every upgrade, since new functions are open to PUBLIC at first.
-- Append-only is a privilege: nobody but the owner may update, delete or truncate.
do $$
declare
    v_verbs text := 'supersede.remember(jsonb, text, text, halfvec, smallint, boolean), '
        'supersede.supersede(jsonb, text, text, halfvec, smallint, boolean), '
        'supersede.amend(jsonb, text, text, halfvec, smallint, boolean), '
        'supersede."end"(jsonb, text, text), supersede.retract(jsonb, text, text), '
        'supersede.reinstate(jsonb, text, text), supersede.undo(jsonb, text, text), '
        'supersede.cite(jsonb, text, text), supersede.declare_predicate(jsonb, text, text), '
        'supersede.fill_embeddings(text, smallint, uuid[], halfvec[], boolean[], text)';
    v_reads text := 'supersede.clock(), supersede.fold(text), supersede.instant(text, text), '
        'supersede.fail(text, text, jsonb), supersede.iso(timestamptz), '
        'supersede.iso_periods(tstzmultirange), '
        'supersede.any_word(regconfig, text), '
        'supersede.facts_as_of(timestamptz, timestamptz, text[]), supersede.facts_on(jsonb), '
        'supersede.facts_during(tstzrange, timestamptz, text[]), '
        'supersede.has_seen(text, timestamptz), '
        'supersede.is_current(tstzrange, tstzrange, timestamptz, timestamptz), '
        'supersede.is_current_within(tstzrange, tstzrange, tstzrange, timestamptz)';
    v_role text;
begin
    revoke all on all routines in schema supersede from public;
    revoke all on all tables in schema supersede from public;
    foreach v_role in array
        array['supersede_reader', 'supersede_writer', 'supersede_importer', 'supersede_analyst']
    loop
        if not exists (select from pg_roles where rolname = v_role) then
            continue;  -- the owner may not create roles; init prints the statement
        end if;
        execute format('grant usage on schema supersede to %I', v_role);
        execute format('grant select on all tables in schema supersede to %I', v_role);
        execute format('revoke all on table supersede.secret from %I', v_role);
        execute format('grant execute on function %s to %I', v_reads, v_role);
        if v_role in ('supersede_writer', 'supersede_importer') then
            execute format('grant execute on function %s to %I', v_verbs, v_role);
        end if;
        if v_role = 'supersede_importer' then
            execute format('grant execute on function '
                'supersede.replay(jsonb, text, text, halfvec, smallint, boolean, text), '
                'supersede.erase(jsonb, text, text), supersede.lift_erasure(jsonb, text, text), '
                'supersede.begin_import(jsonb, boolean), supersede.import_operations(text, jsonb[]), '
                'supersede.end_import(jsonb) to %I', v_role);
        end if;
    end loop;
end $$;
