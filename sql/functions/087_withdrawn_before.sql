-- What a fact held just before a stamp by the grace of operations that stand undone now. Whoever gives back
-- what was taken at that stamp must not bring it back with it. p_but: an undo that is taken as undone.
create or replace function supersede.withdrawn_before(
    p_namespace text, p_fact_id uuid, p_stamp timestamptz, p_but timestamptz)
returns tstzmultirange
language sql stable
return supersede.kept(p_namespace, p_fact_id, supersede.undone_among(p_namespace, array(
    select distinct lower(v.tx_time)
    from supersede.fact_version v
    where v.namespace = p_namespace and v.fact_id = p_fact_id and lower(v.tx_time) < p_stamp), p_but),
    p_stamp);
