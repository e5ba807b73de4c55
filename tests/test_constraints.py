"""Each constraint bears load: what it refuses is refused by it, and by nothing else.

Every CHECK and EXCLUDE has one row here that breaks it alone. With the constraint the row is refused and
the constraint named; with only that constraint dropped the same row goes in.
"""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from databases import query
from supersede import FactStore

A = "00000000-0000-7000-8000-00000000000a"
B = "00000000-0000-7000-8000-00000000000b"
SLOT = "00000000-0000-4000-8000-000000000001"


def version(partition: str, *, valid: str, tx: str, extra: str = "null, null", fact: str = A) -> str:
    """A row straight into a partition: past the verbs, and past the router that picks the partition."""
    return (
        f"insert into supersede.fact_version_{partition} (namespace, is_open, version_id, fact_id, "
        "valid_time, tx_time, kind, trust, recorded, slot_key, embedding) "
        f"values ('n', {str(partition == 'open').lower()}, gen_random_uuid(), '{fact}', '{valid}', '{tx}', "
        f"'fact', 'extracted', now(), {extra})"
    )


def fact(columns: str, values: str) -> str:
    return (
        f"insert into supersede.fact (namespace, fact_id, stamp, trust, {columns}) "
        f"values ('n', gen_random_uuid(), now(), 'extracted', {values})"
    )


def space(dimensions: int, floor: float) -> str:
    return f"insert into supersede.embedding_space values (7, 'm', {dimensions}, {floor}, 0.9, false)"


WHOLE, CLOSED, OPEN = "[2020-01-01Z,)", "[2021-01-01Z,2021-02-01Z)", "[2021-01-01Z,)"
VECTOR = "null, '[1,0]'"

BREAKS = {
    "configuration_only_row": "insert into supersede.configuration values (false, 'simple')",
    "secret_only_row": "insert into supersede.secret values (false, 'x')",
    "derivation_not_itself": f"insert into supersede.derivation values ('n', '{A}', '{A}', now())",
    "embedding_not_zero": f"insert into supersede.embedding values ('n', '{A}', 1, '[0,0]', false, now())",
    "embedding_space_dimensions": space(4001, 0.2),
    "embedding_space_thresholds": space(2, 1.5),
    "evidence_asserted_at_bounds": "insert into supersede.evidence values "
    f"('n', '{A}', 'uri', 'infinity', now())",
    "evidence_source_size": f"insert into supersede.evidence values ('n', '{A}', '', now(), now())",
    "fact_asserted_at_bounds": fact("claim, kind, asserted_at", "'c', 'fact', '-infinity'"),
    "fact_claim_size": fact("claim, kind", "'', 'fact'"),
    "fact_key_size": fact("claim, kind, subject_key", "'c', 'fact', repeat('s', 1001)"),
    "fact_kind_size": fact("claim, kind", "'c', ''"),
    "fact_ref_size": f"insert into supersede.fact_ref values ('n', '', '{A}', now())",
    "namespace_head_bounds": "insert into supersede.namespace values ('m', 'infinity', now())",
    "namespace_name": "insert into supersede.namespace values ('', now(), now())",
    "operation_handle_size": "insert into supersede.operation (namespace, stamp, verb, digest, handle) "
    "values ('n', now(), 'end', 'd', '')",
    "predicate_cardinality": "insert into supersede.predicate values ('n', 'p', now(), 'p', 'few')",
    "predicate_key_size": "insert into supersede.predicate values ('n', '', now(), 'p', 'one')",
    "supersedes_amendment_takes_nothing": "insert into supersede.supersedes values "
    f"('n', '{B}', '{A}', 'amendment', '{{{WHOLE}}}', now())",
    "supersedes_not_itself": "insert into supersede.supersedes values "
    f"('n', '{A}', '{A}', 'change', '{{}}', now())",
    "fact_version_open_valid_time_shape": version("open", valid="(2020-01-01Z,)", tx=OPEN),
    "fact_version_open_valid_time_bounds": version("open", valid="[2020-01-01Z,infinity)", tx=OPEN),
    "fact_version_open_tx_time_shape": version("open", valid=WHOLE, tx="(2021-01-01Z,)"),
    "fact_version_open_tx_time_bounds": version("open", valid=WHOLE, tx="[-infinity,)"),
    "fact_version_open_is_open_is_true": version("open", valid=WHOLE, tx=CLOSED),
    "fact_version_open_embedding_standing": version(
        "open", valid="[2020-01-01Z,2022-01-01Z)", tx=OPEN, extra=VECTOR
    ),
    "fact_version_open_fact_excl": version("open", valid="[2000-01-01Z,2000-03-01Z)", tx=OPEN, fact=B),
    "fact_version_open_slot_excl": version(
        "open", valid="[2000-01-01Z,2000-03-01Z)", tx=OPEN, extra=f"'{SLOT}', null"
    ),
    "fact_version_closed_valid_time_shape": version("closed", valid="empty", tx=CLOSED),
    "fact_version_closed_valid_time_bounds": version("closed", valid="[-infinity,)", tx=CLOSED),
    "fact_version_closed_tx_time_shape": version(
        "closed", valid=WHOLE, tx="[2021-01-01Z,2021-02-01Z]"
    ),
    "fact_version_closed_tx_time_bounds": version("closed", valid=WHOLE, tx="[2021-01-01Z,infinity)"),
    "fact_version_closed_is_open_is_true": version("closed", valid=WHOLE, tx=OPEN),
    "fact_version_closed_embedding_standing": version("closed", valid=WHOLE, tx=CLOSED, extra=VECTOR),
    "fact_version_closed_fact_excl": version(
        "closed", valid="[2000-01-01Z,2000-03-01Z)", tx="[2021-01-15Z,2021-03-01Z)", fact=B
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def rows(module_database: str) -> Iterator[psycopg.Connection]:
    """A connection on a database with two facts, a space, and B's versions to run into."""
    with FactStore.open(module_database, namespace="n") as store:
        store.remember("makes the namespace")
    with psycopg.connect(module_database, autocommit=True) as connection:
        for fact_id in (A, B):
            connection.execute(
                "insert into supersede.fact (namespace, fact_id, stamp, claim, kind, trust) "
                "values ('n', %s, now(), 'c', 'fact', 'extracted')",
                [fact_id],
            )
        connection.execute("insert into supersede.embedding_space values (1, 'two', 2, 0.2, 0.9, true)")
        held = {"valid": "[2000-02-01Z,2000-04-01Z)", "fact": B}
        connection.execute(version("open", tx=OPEN, extra=f"'{SLOT}', null", **held))
        connection.execute(version("closed", tx=CLOSED, **held))
        yield connection


def test_every_constraint_has_its_row(module_database: str) -> None:
    names = query(
        module_database,
        "select conname from pg_constraint "
        "where connamespace = 'supersede'::regnamespace and contype in ('c', 'x')",
    )
    assert {name for (name,) in names} == set(BREAKS)


@pytest.mark.parametrize("name", BREAKS)
def test_a_constraint_alone_refuses_what_it_is_for(rows: psycopg.Connection, name: str) -> None:
    with pytest.raises(psycopg.IntegrityError) as failure:
        rows.execute(BREAKS[name])
    assert failure.value.diag.constraint_name == name
    with rows.transaction(force_rollback=True):
        ((table,),) = rows.execute(
            "select conrelid::regclass::text from pg_constraint where conname = %s and conparentid = 0",
            [name],
        ).fetchall()
        rows.execute(sql.SQL(f"alter table {table} drop constraint {{}}").format(sql.Identifier(name)))
        rows.execute(BREAKS[name])
