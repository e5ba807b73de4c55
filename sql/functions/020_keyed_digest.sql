-- Told from a plain digest, which the ledger holds too, by its prefix. The key is hashed in twice, so that
-- nobody can lengthen a text whose digest is known. The body is text: a downgrade drops the table.
create or replace function supersede.keyed_digest(p_kind text, p_text text) returns text
language sql stable strict
as $$
select 'k:' || encode(
    sha256(s.erasure_key || sha256(s.erasure_key || convert_to(p_kind || ':' || p_text, 'UTF8'))), 'hex')
from supersede.secret s
$$;

comment on function supersede.keyed_digest(text, text) is
    'A digest of something erased, which nobody without the key can test a guess against.';
