"""What a ledger file is made of: the operations of a namespace, each followed by the rows that it wrote."""

from __future__ import annotations

import sqlalchemy as sa

KINDS = (
    "facts",
    "refs",
    "closed",
    "opened",
    "edges",
    "evidence",
    "predicates",
    "vectors",
    "derivations",
    "contested",
    "erasures",
)
"""The kinds of rows, in the order of a line."""

# Of each kind: the stamp, what rows of one stamp are ordered by, the row as JSON, where it comes from.
# No data is stripped of its nulls: those inside a fact's own JSON mean something.
_ROWS = {
    "facts": (
        "t.stamp",
        "t.fact_id",
        "jsonb_strip_nulls(jsonb_build_object('id', t.fact_id, 'claim', t.claim, 'subject', t.subject, "
        "'predicate', t.predicate, 'object', t.object, 'kind', t.kind, 'trust', t.trust, "
        "'asserted', supersede.iso(t.asserted_at))) "
        "|| case when t.data is null then '{}' else jsonb_build_object('data', t.data) end",
        "supersede.fact t",
    ),
    "refs": (
        "t.stamp",
        "t.ref",
        "jsonb_build_object('ref', t.ref, 'fact', t.fact_id)",
        "supersede.fact_ref t",
    ),
    "closed": (
        "upper(t.tx_time)",
        "t.version_id",
        "to_jsonb(t.version_id)",
        "(select * from supersede.fact_version v where not v.is_open) t",
    ),
    "opened": (
        "lower(t.tx_time)",
        "t.version_id",
        "jsonb_build_object('id', t.version_id, 'fact', t.fact_id, 'valid', jsonb_build_array("
        "supersede.iso(lower(t.valid_time)), supersede.iso(upper(t.valid_time)))) "
        "|| case when t.slot_key is null then '{}' else jsonb_build_object('slot', t.slot_key) end",
        "supersede.fact_version t",
    ),
    "edges": (
        "t.stamp",
        "t.new_fact_id::text || t.old_fact_id",
        "jsonb_build_object('new', t.new_fact_id, 'old', t.old_fact_id, 'reason', t.reason, "
        "'taken', supersede.iso_periods(t.taken))",
        "supersede.supersedes t",
    ),
    "evidence": (
        "t.stamp",
        "t.fact_id::text || t.source_uri",
        "jsonb_strip_nulls(jsonb_build_object('fact', t.fact_id, 'source', t.source_uri, "
        "'asserted', supersede.iso(t.asserted_at), 'inherited_from', t.inherited_from))",
        "supersede.evidence t",
    ),
    "predicates": (
        "t.stamp",
        "t.predicate_key",
        "jsonb_build_object('name', t.name, 'cardinality', t.cardinality)",
        "supersede.predicate t",
    ),
    "vectors": (
        "t.stamp",
        "t.fact_id::text || t.model",
        "jsonb_build_object('fact', t.fact_id, 'space', t.model, 'vector', t.vector::text, "
        "'truncated', t.truncated)",
        "(select e.*, s.model from supersede.embedding e "
        "join supersede.embedding_space s on s.id = e.space_id) t",
    ),
    "derivations": (
        "t.stamp",
        "t.summary_id::text || t.premise_id",
        "jsonb_build_object('summary', t.summary_id, 'premise', t.premise_id)",
        "supersede.derivation t",
    ),
    "contested": (
        "t.stamp",
        "t.fact_id::text || t.candidate_id",
        "jsonb_strip_nulls(jsonb_build_object('fact', t.fact_id, 'candidate', t.candidate_id, "
        "'note', t.note))",
        "supersede.contested t",
    ),
    "erasures": (
        "t.stamp",
        "t.fact_id",
        "jsonb_strip_nulls(jsonb_build_object('fact', t.fact_id, 'digest', t.digest, "
        "'lifted', supersede.iso(t.lifted_at), 'value_digest', t.value_digest))",
        "supersede.erasure t",
    ),
}


def ledger_rows() -> sa.TextClause:
    """The rows of a namespace (``:namespace``) by stamp: an operation, then what it wrote.

    Columns: stamp, place (0: the operation, else that of the kind in ``KINDS``, from 1), key, row, event,
    result; the last two are of operations, all three are JSON text. One sort over all, since the tables
    have no index by stamp.
    """
    operations = (
        "select t.stamp, 0 as place, '' collate \"C\" as key, jsonb_build_object('op', t.verb, "
        "'actor', t.actor, 'handle', t.handle, 'run', t.run, 'note', t.note, 'digest', t.digest)::text "
        "as row, t.event::text as event, t.result::text as result "
        "from supersede.operation t where t.namespace = :namespace"
    )
    rows = [
        f'select {stamp}, {place}, ({key})::text collate "C", ({row})::text, null, null '  # noqa: S608
        f"from {table} where t.namespace = :namespace"
        for place, (stamp, key, row, table) in enumerate((_ROWS[kind] for kind in KINDS), 1)
    ]
    return sa.text(" union all ".join([operations, *rows]) + " order by stamp, place, key")


def exported(names: list[str] | None) -> sa.TextClause:
    """The namespaces of an export, by name: name, head, latest recording time, count of erasures."""
    return sa.text(
        "select n.namespace, n.head, n.recorded_at, "
        "(select count(*) from supersede.erasure e where e.namespace = n.namespace) "
        "from supersede.namespace n "
        "where cast(:names as text[]) is null or n.namespace = any (cast(:names as text[])) "
        "order by n.namespace"
    ).bindparams(names=names)
