-- The operations of a selection, up to a stamp. Those of a source made facts all of whose evidence it is.
create or replace function supersede.selected(p_namespace text, p_selection jsonb, p_head timestamptz)
returns setof supersede.operation
language sql stable
begin atomic
    select o.*
    from supersede.operation o
    where o.namespace = p_namespace and o.stamp <= p_head
      and (not p_selection ? 'since'
           or o.stamp >= supersede.instant(p_selection ->> 'since', 'since'))
      and (not p_selection ? 'until' or o.stamp < supersede.instant(p_selection ->> 'until', 'until'))
      and (not p_selection ? 'stamp' or o.stamp = supersede.instant(p_selection ->> 'stamp', 'stamp'))
      and (not p_selection ? 'actor' or o.actor = p_selection ->> 'actor')
      and (not p_selection ? 'run' or o.run = p_selection ->> 'run')
      and (not p_selection ? 'source' or o.stamp in (
          select f.stamp
          from supersede.evidence e
          join supersede.fact f on f.namespace = e.namespace and f.fact_id = e.fact_id
          where e.namespace = p_namespace and e.source_uri = p_selection ->> 'source'
            and not exists (
                select from supersede.evidence other
                where other.namespace = e.namespace and other.fact_id = e.fact_id
                  and other.source_uri <> e.source_uri)));
end;
