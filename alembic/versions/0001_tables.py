"""Tables, constraints, indexes.

Everything that is costly to add to a large table later stands here: the exclusion constraints, the
text-search column, the vectors, the tables of later features.

Revision: 0001
Revises:
"""

from __future__ import annotations

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# What psycopg can read back as a datetime; infinities fall outside.
_INSTANT = "between timestamptz '0001-01-01 00:00:00+00' and timestamptz '9999-12-31 23:59:59.999999+00'"


def _version_checks(partition: str) -> str:
    """CHECKs are named on the partitions, where errors will name them."""
    return f"""
    constraint {partition}_valid_time_shape check (
        not isempty(valid_time)
        and (lower_inf(valid_time) or lower_inc(valid_time))
        and not upper_inc(valid_time)),
    constraint {partition}_valid_time_bounds check (
        (lower_inf(valid_time) or lower(valid_time) {_INSTANT})
        and (upper_inf(valid_time) or upper(valid_time) {_INSTANT})),
    constraint {partition}_tx_time_shape check (
        not isempty(tx_time) and lower_inc(tx_time) and not lower_inf(tx_time)
        and not upper_inc(tx_time)),
    constraint {partition}_tx_time_bounds check (
        lower(tx_time) {_INSTANT}
        and (upper_inf(tx_time) or upper(tx_time) {_INSTANT})),
    constraint {partition}_is_open_is_true check (is_open = upper_inf(tx_time)),
    constraint {partition}_embedding_standing check (
        embedding is null or (is_open and upper_inf(valid_time)))"""


_TABLES = [
    "create type supersede.trust as enum ('summary', 'extracted', 'verbatim')",
    "create type supersede.reason as enum ('change', 'correction', 'refinement', 'duplicate', 'amendment')",
    """
create table supersede.configuration (
    only_row boolean not null default true,
    text_search regconfig not null,
    constraint configuration_pkey primary key (only_row),
    constraint configuration_only_row check (only_row))
""",
    f"""
create table supersede.namespace (
    namespace text collate "C" not null,
    head timestamptz not null,
    recorded_at timestamptz not null,
    constraint namespace_pkey primary key (namespace),
    constraint namespace_name check (octet_length(namespace) between 1 and 255),
    constraint namespace_head_bounds check (head {_INSTANT}))
""",
    f"""
create table supersede.fact (
    namespace text collate "C" not null,
    fact_id uuid not null,
    stamp timestamptz not null,
    claim text,
    subject text,
    predicate text,
    object text,
    kind text not null,
    data jsonb,
    trust supersede.trust not null,
    asserted_at timestamptz,
    subject_key text collate "C",
    predicate_key text collate "C",
    object_key text collate "C",
    value_key uuid,
    search tsvector,
    constraint fact_pkey primary key (namespace, fact_id),
    constraint fact_namespace_fkey foreign key (namespace) references supersede.namespace (namespace),
    constraint fact_claim_size check (octet_length(claim) between 1 and 200000),
    constraint fact_key_size check (
        octet_length(subject_key) <= 1000 and octet_length(predicate_key) <= 1000),
    constraint fact_kind_size check (octet_length(kind) between 1 and 255),
    constraint fact_asserted_at_bounds check (asserted_at {_INSTANT}))
""",
    "create index fact_stamp_idx on supersede.fact (namespace, stamp)",
    "create index fact_subject_idx on supersede.fact (namespace, subject_key, predicate_key)",
    "create index fact_predicate_idx on supersede.fact (namespace, predicate_key)",
    "create index fact_search_idx on supersede.fact using gin (search)",
    """
create table supersede.fact_ref (
    namespace text collate "C" not null,
    ref text collate "C" not null,
    fact_id uuid not null,
    stamp timestamptz not null,
    constraint fact_ref_pkey primary key (namespace, ref),
    constraint fact_ref_fact_fkey foreign key (namespace, fact_id)
        references supersede.fact (namespace, fact_id),
    constraint fact_ref_size check (octet_length(ref) between 1 and 1000))
""",
    "create index fact_ref_fact_idx on supersede.fact_ref (namespace, fact_id)",
    """
create table supersede.fact_version (
    namespace text collate "C" not null,
    is_open boolean not null,
    version_id uuid not null,
    fact_id uuid not null,
    valid_time tstzrange not null,
    tx_time tstzrange not null,
    slot_key uuid,
    kind text not null,
    trust supersede.trust not null,
    recorded timestamptz not null,
    embedding halfvec,
    constraint fact_version_pkey primary key (namespace, is_open, version_id),
    constraint fact_version_fact_fkey foreign key (namespace, fact_id)
        references supersede.fact (namespace, fact_id))
    partition by list (is_open)
""",
    # The namespace stands last in GiST keys: GiST splits badly on a constant.
    f"""
create table supersede.fact_version_open partition of supersede.fact_version (
    {_version_checks("fact_version_open")},
    constraint fact_version_open_fact_excl exclude using gist (
        fact_id with =, valid_time with &&, namespace with =),
    constraint fact_version_open_slot_excl exclude using gist (
        slot_key with =, valid_time with &&, namespace with =) where (slot_key is not null))
    for values in (true)
""",
    f"""
create table supersede.fact_version_closed partition of supersede.fact_version (
    {_version_checks("fact_version_closed")},
    constraint fact_version_closed_fact_excl exclude using gist (
        fact_id with =, valid_time with &&, tx_time with &&, namespace with =))
    for values in (false)
""",
    "create index fact_version_fact_idx on supersede.fact_version (namespace, fact_id, upper(tx_time))",
    # The second arm of questions about now: open versions whose end lies ahead.
    "create index fact_version_open_end_idx on supersede.fact_version_open "
    "(namespace, upper(valid_time)) where not upper_inf(valid_time)",
    """
create table supersede.supersedes (
    namespace text collate "C" not null,
    new_fact_id uuid not null,
    old_fact_id uuid not null,
    reason supersede.reason not null,
    taken tstzmultirange not null,
    stamp timestamptz not null,
    constraint supersedes_pkey primary key (namespace, new_fact_id, old_fact_id, stamp),
    constraint supersedes_new_fkey foreign key (namespace, new_fact_id)
        references supersede.fact (namespace, fact_id),
    constraint supersedes_old_fkey foreign key (namespace, old_fact_id)
        references supersede.fact (namespace, fact_id),
    constraint supersedes_not_itself check (new_fact_id <> old_fact_id),
    constraint supersedes_amendment_takes_nothing check (
        reason <> 'amendment' or isempty(taken)))
""",
    "create index supersedes_old_idx on supersede.supersedes (namespace, old_fact_id, stamp)",
    f"""
create table supersede.evidence (
    namespace text collate "C" not null,
    fact_id uuid not null,
    source_uri text collate "C" not null,
    asserted_at timestamptz,
    stamp timestamptz not null,
    inherited_from uuid,
    constraint evidence_pkey primary key (namespace, fact_id, source_uri, stamp),
    constraint evidence_fact_fkey foreign key (namespace, fact_id)
        references supersede.fact (namespace, fact_id),
    constraint evidence_inherited_fkey foreign key (namespace, inherited_from)
        references supersede.fact (namespace, fact_id),
    constraint evidence_source_size check (octet_length(source_uri) between 1 and 2000),
    constraint evidence_asserted_at_bounds check (asserted_at {_INSTANT}))
""",
    "create index evidence_source_idx on supersede.evidence (namespace, source_uri)",
    """
create table supersede.operation (
    namespace text collate "C" not null,
    stamp timestamptz not null,
    verb text collate "C" not null,
    actor text,
    handle text collate "C",
    digest text collate "C" not null,
    note text,
    event jsonb,
    result jsonb,
    constraint operation_pkey primary key (namespace, stamp),
    constraint operation_namespace_fkey foreign key (namespace)
        references supersede.namespace (namespace),
    constraint operation_handle_size check (octet_length(handle) between 1 and 1000))
""",
    "create unique index operation_handle_key on supersede.operation "
    "(namespace, handle, verb) where handle is not null",
    """
create table supersede.predicate (
    namespace text collate "C" not null,
    predicate_key text collate "C" not null,
    stamp timestamptz not null,
    name text not null,
    cardinality text collate "C" not null,
    constraint predicate_pkey primary key (namespace, predicate_key, stamp),
    constraint predicate_namespace_fkey foreign key (namespace)
        references supersede.namespace (namespace),
    constraint predicate_cardinality check (cardinality in ('one', 'many')),
    constraint predicate_key_size check (octet_length(predicate_key) between 1 and 1000))
""",
    """
create table supersede.embedding_space (
    id smallint not null,
    model text collate "C" not null,
    dimensions integer not null,
    min_similarity real not null,
    near_duplicate real not null,
    active boolean not null,
    constraint embedding_space_pkey primary key (id),
    constraint embedding_space_model_key unique (model),
    constraint embedding_space_dimensions check (dimensions between 1 and 4000),
    constraint embedding_space_thresholds check (
        min_similarity between 0 and 1 and near_duplicate between 0 and 1))
""",
    "create unique index embedding_space_active_key on supersede.embedding_space (active) where active",
    """
create table supersede.embedding (
    namespace text collate "C" not null,
    fact_id uuid not null,
    space_id smallint not null,
    vector halfvec not null,
    truncated boolean not null,
    stamp timestamptz not null,
    constraint embedding_pkey primary key (namespace, fact_id, space_id),
    constraint embedding_fact_fkey foreign key (namespace, fact_id)
        references supersede.fact (namespace, fact_id),
    constraint embedding_space_fkey foreign key (space_id)
        references supersede.embedding_space (id),
    constraint embedding_not_zero check (l2_norm(vector) > 0))
""",
    """
create table supersede.derivation (
    namespace text collate "C" not null,
    summary_id uuid not null,
    premise_id uuid not null,
    stamp timestamptz not null,
    constraint derivation_pkey primary key (namespace, summary_id, premise_id),
    constraint derivation_summary_fkey foreign key (namespace, summary_id)
        references supersede.fact (namespace, fact_id),
    constraint derivation_premise_fkey foreign key (namespace, premise_id)
        references supersede.fact (namespace, fact_id),
    constraint derivation_not_itself check (summary_id <> premise_id))
""",
    "create index derivation_premise_idx on supersede.derivation (namespace, premise_id)",
    """
create table supersede.contested (
    namespace text collate "C" not null,
    fact_id uuid not null,
    candidate_id uuid not null,
    stamp timestamptz not null,
    note text,
    constraint contested_pkey primary key (namespace, fact_id, candidate_id, stamp),
    constraint contested_fact_fkey foreign key (namespace, fact_id)
        references supersede.fact (namespace, fact_id),
    constraint contested_candidate_fkey foreign key (namespace, candidate_id)
        references supersede.fact (namespace, fact_id))
""",
    """
create table supersede.erasure (
    namespace text collate "C" not null,
    fact_id uuid not null,
    stamp timestamptz not null,
    digest text collate "C" not null,
    lifted_at timestamptz,
    constraint erasure_pkey primary key (namespace, fact_id, stamp),
    constraint erasure_fact_fkey foreign key (namespace, fact_id)
        references supersede.fact (namespace, fact_id))
""",
    "create index erasure_digest_idx on supersede.erasure (namespace, digest)",
]

_COMMENTS = {
    "configuration": "What was chosen at init and holds for the whole database; one row.",
    "namespace": "The unit of isolation and ordering. head: the stamp of its last operation; "
    "recorded_at: the latest recording time, which replay may not go behind.",
    "fact": "One claim with an identity; written once.",
    "fact_ref": "External names of facts.",
    "fact_version": "One rectangle of valid time and transaction time of a fact.",
    "supersedes": "Which fact took which validity away from which, and why.",
    "evidence": "Sources of facts; append-only.",
    "operation": "The ledger: one row per write; every bound of a tx_time is one of its stamps.",
    "predicate": "Declared cardinalities; the newest declaration of a predicate binds.",
    "embedding_space": "Models whose vectors are stored; one is active.",
    "embedding": "The vectors; those of two spaces are never compared.",
    "derivation": "Which premises a summary stands on.",
    "contested": "Candidates that may not cut a fact they contradict.",
    "erasure": "Which facts were erased; a keyed digest keeps them from coming back.",
}


def upgrade() -> None:
    for statement in _TABLES:
        op.execute(statement)
    for table, comment in _COMMENTS.items():
        op.execute(f"comment on table supersede.{table} is '{comment}'")


def downgrade() -> None:
    # Views and functions live outside the revisions; they go with the tables that they read.
    op.execute("""
do $$
declare
    v_drop text;
begin
    -- An array, since CASCADE drops some of them before their turn.
    foreach v_drop in array (
        select coalesce(array_agg(d), '{}')
        from (
            select 'drop view if exists ' || c.oid::regclass || ' cascade' as d
            from pg_class c where c.relnamespace = 'supersede'::regnamespace and c.relkind = 'v'
            union all
            select 'drop routine if exists ' || p.oid::regprocedure || ' cascade'
            from pg_proc p where p.pronamespace = 'supersede'::regnamespace) as object)
    loop
        execute v_drop;
    end loop;
end $$
""")
    for table in reversed(_COMMENTS):
        op.execute(f"drop table supersede.{table}")
    op.execute("drop type supersede.reason")
    op.execute("drop type supersede.trust")
