"""The tables of schema ``supersede``, as SQLAlchemy Core sees them.

The revisions in ``alembic/`` make the tables; ``alembic check`` holds these definitions to them. What
metadata cannot express (CHECKs, EXCLUDEs, partitions, partial predicates) lives in the revisions alone.
"""

from __future__ import annotations

import sqlalchemy as sa
from pgvector.sqlalchemy import HALFVEC
from sqlalchemy.dialects import postgresql as pg

SCHEMA = "supersede"
HEAD_REVISION = "0003"

metadata = sa.MetaData(schema=SCHEMA)

TRUST = pg.ENUM("summary", "extracted", "verbatim", name="trust", schema=SCHEMA, create_type=False)
REASON = pg.ENUM(
    "change",
    "correction",
    "refinement",
    "duplicate",
    "amendment",
    name="reason",
    schema=SCHEMA,
    create_type=False,
)
KEY = sa.Text(collation="C")
INSTANT = sa.DateTime(timezone=True)


def _namespace() -> sa.Column[str]:
    return sa.Column("namespace", KEY, primary_key=True)


def _fact_key(column: str, name: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["namespace", column], [f"{SCHEMA}.fact.namespace", f"{SCHEMA}.fact.fact_id"], name=name
    )


configuration = sa.Table(
    "configuration",
    metadata,
    sa.Column("only_row", sa.Boolean, primary_key=True, server_default=sa.true()),
    sa.Column("text_search", pg.REGCONFIG, nullable=False),
    comment="What was chosen at init and holds for the whole database; one row.",
)

namespace = sa.Table(
    "namespace",
    metadata,
    _namespace(),
    sa.Column("head", INSTANT, nullable=False),
    sa.Column("recorded_at", INSTANT, nullable=False),
    comment="The unit of isolation and ordering. head: the stamp of its last operation; "
    "recorded_at: the latest recording time, which replay may not go behind.",
)

fact = sa.Table(
    "fact",
    metadata,
    sa.Column(
        "namespace",
        KEY,
        sa.ForeignKey(f"{SCHEMA}.namespace.namespace", name="fact_namespace_fkey"),
        primary_key=True,
    ),
    sa.Column("fact_id", sa.Uuid, primary_key=True),
    sa.Column("stamp", INSTANT, nullable=False),
    sa.Column("claim", sa.Text),
    sa.Column("subject", sa.Text),
    sa.Column("predicate", sa.Text),
    sa.Column("object", sa.Text),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("data", pg.JSONB),
    sa.Column("trust", TRUST, nullable=False),
    sa.Column("asserted_at", INSTANT),
    sa.Column("subject_key", KEY),
    sa.Column("predicate_key", KEY),
    sa.Column("object_key", KEY),
    sa.Column("value_key", sa.Uuid),
    sa.Column("search", pg.TSVECTOR),
    sa.Index("fact_stamp_idx", "namespace", "stamp"),
    sa.Index("fact_subject_idx", "namespace", "subject_key", "predicate_key"),
    sa.Index("fact_predicate_idx", "namespace", "predicate_key"),
    sa.Index("fact_search_idx", "search", postgresql_using="gin"),
    comment="One claim with an identity; written once.",
)

fact_ref = sa.Table(
    "fact_ref",
    metadata,
    _namespace(),
    sa.Column("ref", KEY, primary_key=True),
    sa.Column("fact_id", sa.Uuid, nullable=False),
    sa.Column("stamp", INSTANT, nullable=False),
    _fact_key("fact_id", "fact_ref_fact_fkey"),
    sa.Index("fact_ref_fact_idx", "namespace", "fact_id"),
    comment="External names of facts.",
)

fact_version = sa.Table(
    "fact_version",
    metadata,
    _namespace(),
    sa.Column("is_open", sa.Boolean, primary_key=True),
    sa.Column("version_id", sa.Uuid, primary_key=True),
    sa.Column("fact_id", sa.Uuid, nullable=False),
    sa.Column("valid_time", pg.TSTZRANGE, nullable=False),
    sa.Column("tx_time", pg.TSTZRANGE, nullable=False),
    sa.Column("slot_key", sa.Uuid),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("trust", TRUST, nullable=False),
    sa.Column("recorded", INSTANT, nullable=False),
    sa.Column("embedding", HALFVEC),
    _fact_key("fact_id", "fact_version_fact_fkey"),
    sa.Index("fact_version_fact_idx", "namespace", "fact_id", sa.text("upper(tx_time)")),
    postgresql_partition_by="LIST (is_open)",
    comment="One rectangle of valid time and transaction time of a fact.",
)

supersedes = sa.Table(
    "supersedes",
    metadata,
    _namespace(),
    sa.Column("new_fact_id", sa.Uuid, primary_key=True),
    sa.Column("old_fact_id", sa.Uuid, primary_key=True),
    sa.Column("reason", REASON, nullable=False),
    sa.Column("taken", pg.TSTZMULTIRANGE, nullable=False),
    sa.Column("stamp", INSTANT, primary_key=True),
    _fact_key("new_fact_id", "supersedes_new_fkey"),
    _fact_key("old_fact_id", "supersedes_old_fkey"),
    sa.Index("supersedes_old_idx", "namespace", "old_fact_id", "stamp"),
    comment="Which fact took which validity away from which, and why.",
)

evidence = sa.Table(
    "evidence",
    metadata,
    _namespace(),
    sa.Column("fact_id", sa.Uuid, primary_key=True),
    sa.Column("source_uri", KEY, primary_key=True),
    sa.Column("asserted_at", INSTANT),
    sa.Column("stamp", INSTANT, primary_key=True),
    sa.Column("inherited_from", sa.Uuid),
    _fact_key("fact_id", "evidence_fact_fkey"),
    _fact_key("inherited_from", "evidence_inherited_fkey"),
    sa.Index("evidence_source_idx", "namespace", "source_uri"),
    comment="Sources of facts; append-only.",
)

operation = sa.Table(
    "operation",
    metadata,
    sa.Column(
        "namespace",
        KEY,
        sa.ForeignKey(f"{SCHEMA}.namespace.namespace", name="operation_namespace_fkey"),
        primary_key=True,
    ),
    sa.Column("stamp", INSTANT, primary_key=True),
    sa.Column("verb", KEY, nullable=False),
    sa.Column("actor", sa.Text),
    sa.Column("handle", KEY),
    sa.Column("digest", KEY, nullable=False),
    sa.Column("note", sa.Text),
    sa.Column("event", pg.JSONB),
    sa.Column("result", pg.JSONB),
    sa.Column("run", KEY),
    sa.Index("operation_run_idx", "namespace", "run", "stamp", postgresql_where=sa.text("run is not null")),
    sa.Index(
        "operation_undo_idx",
        "namespace",
        sa.text("(event ->> 'stamp')"),
        postgresql_where=sa.text("verb = 'undo'"),
    ),
    sa.Index(
        "operation_handle_key",
        "namespace",
        "handle",
        "verb",
        unique=True,
        postgresql_where=sa.text("handle is not null"),
    ),
    comment="The ledger: one row per write; every bound of a tx_time is one of its stamps.",
)

predicate = sa.Table(
    "predicate",
    metadata,
    sa.Column(
        "namespace",
        KEY,
        sa.ForeignKey(f"{SCHEMA}.namespace.namespace", name="predicate_namespace_fkey"),
        primary_key=True,
    ),
    sa.Column("predicate_key", KEY, primary_key=True),
    sa.Column("stamp", INSTANT, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("cardinality", KEY, nullable=False),
    comment="Declared cardinalities; the newest declaration of a predicate binds.",
)

embedding_space = sa.Table(
    "embedding_space",
    metadata,
    sa.Column("id", sa.SmallInteger, primary_key=True, autoincrement=False),
    sa.Column("model", KEY, nullable=False),
    sa.Column("dimensions", sa.Integer, nullable=False),
    sa.Column("min_similarity", sa.REAL, nullable=False),
    sa.Column("near_duplicate", sa.REAL, nullable=False),
    sa.Column("active", sa.Boolean, nullable=False),
    sa.UniqueConstraint("model", name="embedding_space_model_key"),
    sa.Index("embedding_space_active_key", "active", unique=True, postgresql_where=sa.text("active")),
    comment="Models whose vectors are stored; one is active.",
)

embedding = sa.Table(
    "embedding",
    metadata,
    _namespace(),
    sa.Column("fact_id", sa.Uuid, primary_key=True),
    sa.Column(
        "space_id",
        sa.SmallInteger,
        sa.ForeignKey(f"{SCHEMA}.embedding_space.id", name="embedding_space_fkey"),
        primary_key=True,
    ),
    sa.Column("vector", HALFVEC, nullable=False),
    sa.Column("truncated", sa.Boolean, nullable=False),
    sa.Column("stamp", INSTANT, nullable=False),
    _fact_key("fact_id", "embedding_fact_fkey"),
    comment="The vectors; those of two spaces are never compared.",
)

derivation = sa.Table(
    "derivation",
    metadata,
    _namespace(),
    sa.Column("summary_id", sa.Uuid, primary_key=True),
    sa.Column("premise_id", sa.Uuid, primary_key=True),
    sa.Column("stamp", INSTANT, nullable=False),
    _fact_key("summary_id", "derivation_summary_fkey"),
    _fact_key("premise_id", "derivation_premise_fkey"),
    sa.Index("derivation_premise_idx", "namespace", "premise_id"),
    comment="Which premises a summary stands on.",
)

contested = sa.Table(
    "contested",
    metadata,
    _namespace(),
    sa.Column("fact_id", sa.Uuid, primary_key=True),
    sa.Column("candidate_id", sa.Uuid, primary_key=True),
    sa.Column("stamp", INSTANT, primary_key=True),
    sa.Column("note", sa.Text),
    _fact_key("fact_id", "contested_fact_fkey"),
    _fact_key("candidate_id", "contested_candidate_fkey"),
    comment="Candidates that may not cut a fact they contradict.",
)

erasure = sa.Table(
    "erasure",
    metadata,
    _namespace(),
    sa.Column("fact_id", sa.Uuid, primary_key=True),
    sa.Column("stamp", INSTANT, primary_key=True),
    sa.Column("digest", KEY, nullable=False),
    sa.Column("lifted_at", INSTANT),
    sa.Column("value_digest", KEY),
    _fact_key("fact_id", "erasure_fact_fkey"),
    sa.Index("erasure_digest_idx", "namespace", "digest"),
    sa.Index("erasure_value_digest_idx", "namespace", "value_digest"),
    comment="Which facts were erased; a keyed digest keeps them from coming back.",
)

secret = sa.Table(
    "secret",
    metadata,
    sa.Column("only_row", sa.Boolean, primary_key=True, server_default=sa.true()),
    sa.Column("erasure_key", sa.LargeBinary, nullable=False),
    comment="The key of the digests in erasure; one row, for the owner alone.",
)
