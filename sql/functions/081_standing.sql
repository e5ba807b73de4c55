-- Which of some operations do not stand undone.
create or replace function supersede.standing(p_namespace text, p_stamps timestamptz[])
returns timestamptz[]
language sql stable
return array(
    select s from unnest(p_stamps) as s
    except
    select u from unnest(supersede.undone_among(p_namespace, p_stamps)) as u);
