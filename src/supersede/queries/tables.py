"""The tables as analysts read them elsewhere: plain columns, periods as two bounds, NULL where unbounded."""

from __future__ import annotations

import sqlalchemy as sa

# Columns by table: name, kind, SQL. JSON goes out as text: each tool has its own idea of it.
_NAMESPACE = ("namespace", "text", "t.namespace")
_FACT = ("fact_id", "text", "t.fact_id::text")
_STAMP = ("stamp", "instant", "t.stamp")

TABLES: dict[str, tuple[tuple[str, str, str], ...]] = {
    "facts": (
        _NAMESPACE,
        _FACT,
        _STAMP,
        *((name, "text", f"t.{name}") for name in ("claim", "subject", "predicate", "object", "kind")),
        ("data", "text", "t.data::text"),
        ("trust", "text", "t.trust::text"),
        ("asserted", "instant", "t.asserted_at"),
    ),
    "versions": (
        _NAMESPACE,
        ("version_id", "text", "t.version_id::text"),
        _FACT,
        ("valid_from", "instant", "lower(t.valid_time)"),
        ("valid_to", "instant", "upper(t.valid_time)"),
        ("tx_from", "instant", "lower(t.tx_time)"),
        ("tx_to", "instant", "upper(t.tx_time)"),
        ("in_slot", "boolean", "t.slot_key is not null"),
    ),
    "edges": (
        _NAMESPACE,
        ("new_fact_id", "text", "t.new_fact_id::text"),
        ("old_fact_id", "text", "t.old_fact_id::text"),
        ("reason", "text", "t.reason::text"),
        ("taken", "text", "supersede.iso_periods(t.taken)::text"),
        _STAMP,
    ),
    "evidence": (
        _NAMESPACE,
        _FACT,
        ("source", "text", "t.source_uri"),
        ("asserted", "instant", "t.asserted_at"),
        ("inherited_from", "text", "t.inherited_from::text"),
        _STAMP,
    ),
    "refs": (_NAMESPACE, ("ref", "text", "t.ref"), _FACT, _STAMP),
    "operations": (
        _NAMESPACE,
        _STAMP,
        *((name, "text", f"t.{name}") for name in ("verb", "actor", "handle", "run", "note", "digest")),
        ("event", "text", "t.event::text"),
        ("result", "text", "t.result::text"),
    ),
}
"""Name, kind (``text``, ``instant``, ``boolean``) and SQL of each column, by table."""

_FROM = {
    "facts": ("fact", "t.stamp, t.fact_id"),
    "versions": ("fact_version", "lower(t.tx_time), t.version_id"),
    "edges": ("supersedes", "t.stamp, t.new_fact_id, t.old_fact_id"),
    "evidence": ("evidence", "t.stamp, t.fact_id, t.source_uri"),
    "refs": ("fact_ref", "t.stamp, t.ref"),
    "operations": ("operation", "t.stamp"),
}


def table(name: str, namespaces: list[str] | None) -> sa.TextClause:
    """All rows of a table, by namespace and stamp; None: of all namespaces."""
    columns = ", ".join(f"{sql} as {column}" for column, _, sql in TABLES[name])
    source, order = _FROM[name]
    return sa.text(
        f"select {columns} from supersede.{source} t "  # noqa: S608 - of the constants above
        "where cast(:names as text[]) is null or t.namespace = any (cast(:names as text[])) "
        f"order by t.namespace, {order}"
    ).bindparams(names=namespaces)
