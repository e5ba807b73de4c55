"""The ledger as a file, and back into an empty store: the same rows, the same answers on the same bases."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import io
import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from typer.testing import CliRunner

from databases import dump, execute, query
from fakes import BagOfWords, OtherModel
from histories import a_life, questions
from servers import new_database
from supersede import (
    AsyncFactStore,
    DimensionMismatch,
    FactStore,
    InvalidInput,
    InvalidLedger,
    LedgerMismatch,
    NamespaceExists,
    NamespaceNotFound,
    PrivilegeMissing,
    SupersedeError,
    ledger,
)
from supersede.cli import app
from supersede.settings import normalise_url


@pytest.fixture
def other_database(server_url: str, template_database: str) -> Iterator[str]:
    """A second prepared database, without an embedding space."""
    with new_database(server_url, "test", template_database) as (_, url):
        yield url


@pytest.fixture(scope="module")
def source(server_url: str, vector_template_database: str) -> Iterator[str]:
    """A database with a small history, which nobody changes."""
    with new_database(server_url, "test", vector_template_database) as (_, url):
        with FactStore.open(url, embedder=BagOfWords()) as store:
            a_life(store)
        yield url


@pytest.fixture(scope="module")
def life(source: str) -> bytes:
    """The ledger of ``source``."""
    with FactStore.open(source) as store:
        return exported(store)


@pytest.fixture
def vector_store(source: str) -> Iterator[FactStore]:
    """A store on ``source``, to read."""
    with FactStore.open(source, embedder=BagOfWords()) as store:
        yield store


@pytest.fixture(scope="module")
def target(server_url: str, template_database: str) -> Iterator[str]:
    """A prepared database into which nothing is ever imported with success."""
    with new_database(server_url, "test", template_database) as (_, url):
        yield url


def exported(store: FactStore, **arguments: Any) -> bytes:
    out = io.BytesIO()
    store.export_ledger(out, **arguments)
    return out.getvalue()


def signed(lines: list[str]) -> bytes:
    """A ledger of these lines with a last line that is true of them."""
    body = "".join(f"{line}\n" for line in lines).encode()
    operations = [json.loads(line) for line in lines[1:]]
    last = {
        "operations": len(operations),
        "facts": sum(len(operation.get("wrote", {}).get("facts", [])) for operation in operations),
        "sha256": hashlib.sha256(body).hexdigest(),
    }
    return body + json.dumps(last, separators=(",", ":")).encode() + b"\n"


def changed(file: bytes, number: int, change: Callable[[dict[str, Any]], None]) -> bytes:
    """The ledger with one line changed, counted from 1, as if it had been exported so."""
    lines = file.decode().split("\n")[:-2]
    line = json.loads(lines[number - 1])
    change(line)
    lines[number - 1] = json.dumps(line, ensure_ascii=False)
    return signed(lines)


def refused(url: str, file: bytes, kind: type[SupersedeError], message: str, **arguments: Any) -> None:
    """An import that must fail with this error and change nothing."""
    before = dump(url)
    with FactStore.open(url) as store, pytest.raises(kind, match=message) as failure:
        store.import_ledger(io.BytesIO(file), **arguments)
    assert type(failure.value) is kind
    assert dump(url) == before


# --- there and back


def test_an_imported_ledger_is_the_same_rows_the_same_file_and_the_same_answers(
    vector_store: FactStore, source: str, other_database: str, life: bytes
) -> None:
    answers = questions(vector_store)
    assert exported(vector_store) == life
    with FactStore.open(other_database) as copy:
        done = copy.import_ledger(io.BytesIO(life))
    assert (done.operations, done.facts, sorted(done.heads)) == (29, 21, ["b-c", "b.c", "default"])
    left, right = dump(source), dump(other_database)
    assert {**right, "secret": None} == {**left, "secret": None}
    with FactStore.open(other_database, embedder=BagOfWords()) as copy:
        assert exported(copy) == life
        for answer in answers:
            ask = copy.ask if answer.basis.question == "ask" else copy.facts
            assert ask(basis=str(answer.basis)).model_dump_json() == answer.model_dump_json()
    assert {answer.outcome for answer in answers} > {"answered", "all_withheld"}


def test_the_imported_store_goes_on_as_the_first_one_would(vector_database: str, other_database: str) -> None:
    with FactStore.open(vector_database, embedder=BagOfWords()) as store:
        _goes_on(store, other_database)


def _goes_on(vector_store: FactStore, other_database: str) -> None:
    a_life(vector_store)
    repeated = vector_store.remember("The lift is broken", ref="lift", sources=["mail/1"])
    with FactStore.open(other_database) as copy:
        copy.import_ledger(io.BytesIO(exported(vector_store)))
    with FactStore.open(other_database, embedder=BagOfWords()) as copy:
        for store in (vector_store, copy):
            again = store.remember("The lift is broken", ref="lift", sources=["mail/1"])
            assert (again.repeated, again.id) == (True, repeated.id)
            store.declare_predicate("meets", cardinality="one")
            store.supersede("monday", "The team meets on Tuesdays", ref="tuesday")
            assert store.ask("when does the team meet").facts[0].ref == "tuesday"
        assert copy.ask("team meet").facts[0].similarity == vector_store.ask("team meet").facts[0].similarity


def test_vectors_filled_later_and_versions_closed_later_come_back_across_batches(
    vector_database: str, other_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch of the import may hold one line: what it closes and fills stands in earlier ones."""
    with FactStore.open(vector_database, embedder=BagOfWords()) as store:
        with store.transaction() as transaction:
            transaction.remember("The port is 5432", ref="port")
            transaction.remember("The host is db1", ref="host")
        store.supersede("port", "The port is 5433", ref="port2")
        store.end("host", at="2100-01-01")
        file = exported(store)
    ops = [json.loads(line)["op"] for line in file.decode().splitlines()[1:-1]]
    assert ops == ["remember", "remember", "fill_embeddings", "supersede", "end"]
    monkeypatch.setattr("supersede.ledger.files._BATCH_LINES", 1)
    seen: list[int] = []
    with FactStore.open(other_database) as copy:
        copy.import_ledger(io.BytesIO(file), progress=seen.append)
        assert exported(copy) == file
    assert seen == [1] * 5
    left, right = dump(vector_database), dump(other_database)
    assert right["fact_version"] == left["fact_version"]
    standing = query(
        other_database,
        "select count(embedding), count(*) from supersede.fact_version "
        "where is_open and upper_inf(valid_time)",
    )
    assert standing == [(1, 1)]


def test_every_table_of_the_schema_is_carried(database: str) -> None:
    """A new table must be thought of here: it is in the header, among the rows, or left out on purpose."""
    tables = {
        name
        for (name,) in query(
            database,
            "select relname from pg_class where relnamespace = 'supersede'::regnamespace "
            "and relkind in ('r', 'p') and not relispartition",
        )
    }
    carried = {"fact", "fact_ref", "fact_version", "supersedes", "evidence", "operation", "predicate"}
    carried |= {"embedding", "derivation", "contested", "erasure"}
    in_header = {"namespace", "embedding_space", "configuration", "secret"}
    assert tables == carried | in_header | {"alembic_version"}


def test_what_json_readers_would_round_comes_back_exactly(
    database: str, other_database: str, store: FactStore
) -> None:
    """Numbers longer than a float, nulls inside data, line separators, and a claim that looks like JSON."""
    execute(
        database,
        r"""select supersede.remember('{"claim": "{\"a\": \"\u2028\\n\"}\nb", "ref": "x", "note": " ",
        "data": {"long": 0.1000000000000000055511151231257827, "zeros": 1.100, "none": null,
                 "big": 123456789012345678901234567890, "list": [null, {"none": null}]}}'::jsonb)""",
    )
    file = exported(store)
    with FactStore.open(other_database) as copy:
        copy.import_ledger(io.BytesIO(file))
        assert exported(copy) == file
    rows = "select data::text, claim from supersede.fact"
    assert query(other_database, rows) == query(database, rows)
    assert "1.100" in query(other_database, rows)[0][0]


def test_tables_of_later_features_are_carried(database: str, other_database: str, store: FactStore) -> None:
    a, b = (store.remember(name, ref=name).id for name in ("a", "b"))
    execute(
        database,
        f"""
        insert into supersede.derivation select 'default', '{a}', '{b}', max(stamp) from supersede.operation;
        insert into supersede.contested
        select 'default', '{a}', '{b}', max(stamp), 'why' from supersede.operation;
        update supersede.operation set run = 'r', actor = 'somebody' where stamp = (
            select min(stamp) from supersede.operation)""",
    )
    with FactStore.open(other_database) as copy:
        copy.import_ledger(io.BytesIO(exported(store)))
    left, right = dump(database), dump(other_database)
    assert {**right, "secret": None} == {**left, "secret": None}
    assert right["derivation"]
    assert right["contested"]


def test_some_namespaces_alone(vector_store: FactStore, other_database: str, life: bytes) -> None:
    part = exported(vector_store, namespaces=["b.c", "b-c", "b.c"])
    rest = exported(vector_store, namespaces=["default"])
    with FactStore.open(other_database) as copy:
        assert sorted(copy.import_ledger(io.BytesIO(part)).heads) == ["b-c", "b.c"]
        assert copy.import_ledger(io.BytesIO(rest)).operations == 25
        assert exported(copy) == life
    with pytest.raises(NamespaceNotFound, match="'elsewhere'"):
        exported(vector_store, namespaces=["default", "elsewhere"])
    for wrong in ([], "default"):
        with pytest.raises(InvalidInput, match="list of names"):
            exported(vector_store, namespaces=wrong)


def test_an_empty_store_has_a_ledger_too(store: FactStore, other_database: str) -> None:
    file = exported(store)
    with FactStore.open(other_database) as copy:
        assert copy.import_ledger(io.BytesIO(file)).operations == 0
        assert exported(copy) == file


def test_a_file_is_packed_by_its_name_and_appears_whole(
    vector_store: FactStore, other_database: str, life: bytes, tmp_path: Path
) -> None:
    plain, packed, again = (tmp_path / name for name in ("l.jsonl", "l.jsonl.gz", "again.gz"))
    vector_store.export_ledger(plain)
    vector_store.export_ledger(str(packed))
    vector_store.export_ledger(again)
    assert plain.read_bytes() == life == gzip.decompress(packed.read_bytes())
    assert packed.read_bytes() == again.read_bytes()
    with FactStore.open(other_database) as copy:
        copy.import_ledger(packed)
        assert exported(copy) == life

    def stop(_: int) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        vector_store.export_ledger(plain, progress=stop)
    assert plain.read_bytes() == life
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.gz", "l.jsonl", "l.jsonl.gz"]
    with pytest.raises(InvalidInput, match="No such file"):
        vector_store.export_ledger(tmp_path / "nowhere" / "l.jsonl")
    with pytest.raises(InvalidInput, match="No such file"):
        vector_store.import_ledger(tmp_path / "nowhere")


def test_an_export_sees_one_moment(database: str, store: FactStore) -> None:
    """What is recorded while the file is being written is not in it, nor is half of it."""
    for n in range(3):
        store.remember(f"before {n}", ref=f"before {n}")

    class Slow(io.BytesIO):
        lines = 0

        def write(self, data: Any) -> int:
            self.lines += 1
            if self.lines == 2:
                store.supersede("before 2", "after", ref="after")
            return super().write(data)

    out = Slow()
    store.export_ledger(out)
    assert b"after" not in out.getvalue()
    assert b'"closed"' not in out.getvalue()
    assert b"after" in exported(store)


def test_the_async_store_moves_ledgers_too(source: str, other_database: str, life: bytes) -> None:
    async def there_and_back() -> None:
        async with await AsyncFactStore.open(source) as store:
            out = io.BytesIO()
            await store.export_ledger(out)
            assert out.getvalue() == life
        async with await AsyncFactStore.open(other_database) as copy:
            with pytest.raises(InvalidLedger, match="cut off"):
                await copy.import_ledger(io.BytesIO(life[:-50]))
            await copy.import_ledger(io.BytesIO(life))

    asyncio.run(there_and_back())
    with FactStore.open(other_database) as copy:
        assert exported(copy) == life


def test_the_events_of_a_ledger_can_be_replayed(
    vector_store: FactStore, other_database: str, life: bytes
) -> None:
    """Run again by the verbs, they come to the same answers, in namespaces of their own."""
    with closing(ledger.history(io.BytesIO(life))) as found:
        events = list(found)
    assert len(events) == 29
    for name in ("default", "b.c"):
        with FactStore.open(other_database, namespace=name) as copy:
            copy.replay([event for namespace, event in events if namespace == name])
    with FactStore.open(other_database) as copy:
        for point in ("2023-05-01", "2023-09-03T12:00:00Z", "2024-06-01"):
            ours, theirs = (s.facts(as_of=point, explain=True) for s in (copy, vector_store))
            assert [f.model_dump() for f in ours.facts] == [f.model_dump() for f in theirs.facts]
            assert ours.withheld == theirs.withheld


# --- where it does not fit


def test_namespaces_that_exist_are_named(vector_store: FactStore, other_database: str, life: bytes) -> None:
    with FactStore.open(other_database, namespace="b.c") as other:
        other.remember("here first")
    refused(other_database, life, NamespaceExists, r"but these do: b\.c$")


def test_another_text_search_is_refused(server_url: str, vector_store: FactStore, life: bytes) -> None:
    with new_database(server_url, "test") as (_, url):
        FactStore.init(url, text_search="simple")
        execute(url, "delete from supersede.embedding_space")
        refused(url, life, LedgerMismatch, "'english', this database with 'simple'")


def test_a_space_of_other_dimensions_is_refused(database: str, life: bytes) -> None:
    FactStore.init(database, embedder=BagOfWords(dimensions=32))
    refused(database, life, DimensionMismatch, "have 64 dimensions")


def test_the_active_space_stays_active(database: str, life: bytes) -> None:
    """Where another space is active, the ledger's stands beside it, and no version carries its vectors."""
    FactStore.init(database, embedder=OtherModel())
    with FactStore.open(database, embedder=OtherModel()) as store:
        store.import_ledger(io.BytesIO(life))
        assert store.ask("Acme").withheld.unembedded or store.ask("Acme").facts[0].similarity is None
    spaces = query(database, "select model, active from supersede.embedding_space order by id")
    assert spaces == [("fake-other-model", True), ("fake-bag-of-words", False)]
    assert query(database, "select count(embedding) from supersede.fact_version") == [(0,)]
    with FactStore.open(database, embedder=BagOfWords()) as store:
        assert store.ask("Where does Acme sit?").facts[0].similarity


# --- a damaged file


@pytest.mark.parametrize("kept", [0, 1, 100, 0.5, -1, -60, -130])
def test_a_file_that_is_cut_off_is_noticed(target: str, life: bytes, kept: float) -> None:
    cut = life[: int(len(life) * kept) if 0 < kept < 1 else int(kept)]
    refused(target, cut, InvalidLedger, "cut off|no ledger")
    packed = gzip.compress(life)[:-20]
    refused(target, packed, InvalidLedger, "no ledger|UTF-8")


def test_a_packed_file_that_is_cut_off_is_noticed(target: str, life: bytes, tmp_path: Path) -> None:
    file = tmp_path / "l.gz"
    for damaged in (gzip.compress(life)[:-20], gzip.compress(life)[:-2000], life):
        file.write_bytes(damaged)
        with FactStore.open(target) as copy, pytest.raises(InvalidLedger, match="gzip"):
            copy.import_ledger(file)
    assert query(target, "select count(*) from supersede.namespace") == [(0,)]


def test_a_line_changed_lost_or_moved_is_noticed(target: str, life: bytes) -> None:
    lines = life.splitlines(keepends=True)
    refused(target, life.replace(b"Oslo", b"Bonn"), InvalidLedger, "their sum differs")
    refused(target, b"".join(lines[:5] + lines[6:]), InvalidLedger, "it counts 29 operations")
    swapped = [*lines[:6], lines[7], lines[6], *lines[8:]]
    refused(target, b"".join(swapped), InvalidLedger, "line 8: its stamp does not come after")
    refused(target, life + lines[1], InvalidLedger, "line 32: there is more after the last line")
    mixed = [*lines[:2], lines[4], *lines[2:4], *lines[5:]]
    refused(target, b"".join(mixed), InvalidLedger, "line 4: namespace 'b-c' is not due here")


WRONG: list[tuple[int, Callable[[dict[str, Any]], None], str]] = [
    (1, lambda line: line.update(format=2), "format 2; this release reads format 1"),
    (1, lambda line: line.update(more=1), "line 1: more: Extra inputs"),
    (1, lambda line: line["namespaces"].pop("default"), "line 6: namespace 'default' is not due here"),
    (1, lambda line: line["namespaces"]["b.c"].update(head="2021-01-02T00:00:00Z"), "is not the head"),
    (2, lambda line: line.pop("digest"), "line 2: digest: Field required"),
    (2, lambda line: line.update(digest=7), "line 2: digest: Input should be a valid string"),
    (2, lambda line: line.update(stamp="yesterday"), "line 2: stamp: .*'yesterday' is not an instant"),
    (2, lambda line: line.update(actor="a\x00b"), "line 2: actor: .*NUL"),
    (2, lambda line: line["wrote"]["facts"][0].update(kin="x"), r"line 2: wrote\.facts\.0\.kin: Extra"),
    (2, lambda line: line["wrote"]["facts"][0].update(trust="low"), r"line 2: wrote\.facts\.0\.trust: "),
    (2, lambda line: line["wrote"]["opened"][0].update(valid=[None]), r"line 2: wrote\.opened\.0\.valid"),
    (2, lambda line: line["wrote"]["vectors"][0].update(vector="[1,2]"), "line 2: a vector does not belong"),
    (2, lambda line: line["wrote"]["vectors"][0].update(space="other"), "line 2: a vector does not belong"),
    (2, lambda line: line["wrote"].pop("facts"), r"lines 2 to 3: .* a row \(23503, fact_ref_fact_fkey"),
    (2, lambda line: line["wrote"]["opened"].append(line["wrote"]["opened"][0]), r"refused a row \(23"),
    (2, lambda line: line["wrote"]["facts"][0].update(kind="x" * 300), "fact_kind_size"),
    (11, lambda line: line["wrote"]["closed"].append(f"{0:032x}"), "lines 6 to 30: of .* are open"),
    (7, lambda line: line["wrote"]["opened"][0].update(slot=f"{1:032x}"), "a slot is not that of"),
    (
        2,
        lambda line: line["wrote"]["opened"][0].update(valid=["2021-01-02T00:00:00Z", "2021-01-01"]),
        r"lines 2 to 3: PostgreSQL refused a row \(22000",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("number", "change", "message"), WRONG, ids=[message for _, _, message in WRONG])
def test_a_line_that_is_wrong_is_named(
    target: str,
    life: bytes,
    number: int,
    change: Callable[[dict[str, Any]], None],
    message: str,
) -> None:
    refused(target, changed(life, number, change), InvalidLedger, message)


NO_LEDGERS = [b"", b"\n", b"[]\n", b'{"op": "end"}\n', b'{"supersede":"ledger"\n', b"\xff\xfe\n", b"{" * 9000]


@pytest.mark.parametrize("file", NO_LEDGERS)
def test_what_is_no_ledger_is_called_so(target: str, file: bytes) -> None:
    refused(target, file, InvalidLedger, "no ledger|cut off|UTF-8")


def test_the_constraints_hold_for_rows_as_they_do_for_verbs(store: FactStore, target: str) -> None:
    """Two values of one slot at once, and two versions of one fact, are refused."""
    acme = {"subject": "Acme", "predicate": "hq"}
    store.declare_predicate("hq", cardinality="one")
    store.remember("Denver", valid_from="2022-01-01", **acme)
    store.remember("Oslo", valid_from="2023-01-01", **acme)
    file = exported(store)

    def overlap(line: dict[str, Any]) -> None:
        for version in line["wrote"]["opened"]:
            version["valid"] = ["2019-01-01T00:00:00Z", None]

    def twice(line: dict[str, Any]) -> None:
        line["wrote"]["opened"].append({**line["wrote"]["opened"][0], "id": f"{1:032x}"})

    refused(target, changed(file, 4, overlap), InvalidLedger, "23P01, fact_version_open_slot_excl")
    refused(target, changed(file, 4, twice), InvalidLedger, "23P01, fact_version_open_fact_excl")


# --- who may, and over what


@pytest.fixture
def as_importer(server_url: str, other_database: str) -> Iterator[str]:
    name = f"importer_{normalise_url(other_database).database}"
    execute(server_url, f"create role {name} login password 'login' in role supersede_importer")
    url = normalise_url(other_database).set(drivername="postgresql", username=name, password="login")
    yield url.render_as_string(hide_password=False)
    execute(server_url, f"drop role {name}")


def test_an_importer_may_import_and_export_all_but_the_key(
    as_importer: str, other_database: str, life: bytes
) -> None:
    with FactStore.open(as_importer) as copy:
        copy.import_ledger(io.BytesIO(life))
        assert exported(copy) == life
        with pytest.raises(PrivilegeMissing):
            exported(copy, with_erasure_key=True)


def test_rows_cannot_be_written_to_a_namespace_that_is_there(as_importer: str, life: bytes) -> None:
    """Not by begin_import, since it exists; not without it either, in or after the import's transaction."""
    lines = life.decode().split("\n")
    header, first = lines[:2]
    late = json.dumps({**json.loads(first), "stamp": "2022-01-01T00:00:00Z"})
    write = "select supersede.import_operations('b-c', array[%s]::jsonb[])"
    with psycopg.connect(as_importer) as connection:
        with pytest.raises(psycopg.Error, match="no import into namespace"):
            connection.execute(write, [first])
        connection.rollback()
        connection.execute("select supersede.begin_import(%s)", [header])
        connection.execute(write, [first])
        with pytest.raises(psycopg.Error, match="is not the head"), connection.transaction():
            connection.execute("select supersede.end_import(%s)", [header])
        with pytest.raises(psycopg.Error, match="must rise"), connection.transaction():
            connection.execute(write, [first])
        connection.rollback()
    with FactStore.open(as_importer) as store:
        store.import_ledger(io.BytesIO(life))
    with psycopg.connect(as_importer) as connection:
        for statement, argument in ((write, late), ("select supersede.end_import(%s)", header)):
            with pytest.raises(psycopg.Error, match=r"no import|is not the head"), connection.transaction():
                connection.execute(statement, [argument])
        with pytest.raises(psycopg.Error, match="but these do"), connection.transaction():
            connection.execute("select supersede.begin_import(%s)", [header])


# --- erasure


def erased(url: str, store: FactStore) -> None:
    """A fact erased, as rows: its content is gone, its shape and a keyed digest stay."""
    fact = store.remember("Ann lives in Lima", ref="ann", subject="Ann", predicate="home", object="Lima")
    store.retract("ann")
    execute(
        url,
        f"""
        update supersede.fact set claim = null, subject = null, object = null, data = null, search = null,
            subject_key = null, object_key = null, value_key = null;
        delete from supersede.fact_ref; delete from supersede.embedding;
        update supersede.fact_version set slot_key = null;
        update supersede.operation set event = null, note = null, handle = null, result = null
        where verb = 'remember';
        insert into supersede.erasure (namespace, fact_id, stamp, digest, value_digest)
        select 'default', '{fact.id}', max(stamp), 'd1', 'd2' from supersede.operation""",
    )


def test_only_the_owner_may_bring_another_key(
    as_importer: str, other_database: str, store: FactStore
) -> None:
    """Who set the key could try out guesses of what is erased later."""
    including = exported(store, with_erasure_key=True)
    execute(other_database, "update supersede.secret set erasure_key = sha256('another')")
    with (
        FactStore.open(as_importer) as copy,
        pytest.raises(PrivilegeMissing, match="for the owner of this database"),
    ):
        copy.import_ledger(io.BytesIO(including))
    with FactStore.open(other_database) as copy:
        copy.import_ledger(io.BytesIO(including))
        assert exported(copy, with_erasure_key=True) == including


def test_a_ledger_with_erasures_needs_their_key(
    database: str, other_database: str, store: FactStore, server_url: str, template_database: str
) -> None:
    execute(database, "update supersede.secret set erasure_key = sha256('of the first one')")
    erased(database, store)
    without, including = exported(store), exported(store, with_erasure_key=True)
    assert b"Lima" not in including
    assert b"erasure_key" not in without
    refused(other_database, without, LedgerMismatch, "were erased, and without the key")
    with FactStore.open(other_database) as copy:
        done = copy.import_ledger(io.BytesIO(including))
        assert (done.erasures, done.erasure_key) == (1, True)
        assert exported(copy, with_erasure_key=True) == including
    assert dump(other_database) == dump(database)

    with new_database(server_url, "test", template_database) as (_, third):
        with FactStore.open(third, namespace="own") as own:
            own.remember("x", ref="x")
            execute(third, "insert into supersede.erasure select namespace, fact_id, stamp, 'd' "
                           "from supersede.fact")  # fmt: skip
            refused(third, including, LedgerMismatch, "under a key of its own")
            key = query(third, "select erasure_key from supersede.secret")
            done = own.import_ledger(io.BytesIO(without), unguarded_erasures=True)
            assert (done.erasures, done.erasure_key) == (1, False)
        assert query(third, "select erasure_key from supersede.secret") == key


# --- the command line


def run(url: str, *arguments: str, status: int = 0, stdin: bytes | None = None) -> Any:
    result = CliRunner().invoke(app, [*arguments, "--url", url], input=stdin)
    assert result.exit_code == status, result.output
    return result


def test_export_and_import_on_the_command_line(
    source: str, other_database: str, life: bytes, tmp_path: Path
) -> None:
    file = tmp_path / "life.jsonl.gz"
    said = run(source, "export", str(file))
    assert said.stdout == f"{file}: 29 operations on 21 facts in 3 namespaces\n"
    assert gzip.decompress(file.read_bytes()) == life
    assert run(source, "export", "-").stdout_bytes == life
    part = run(source, "export", "-", "--namespace", "b.c").stdout_bytes
    assert part.count(b"\n") == 4
    misused = run(other_database, "import", str(file), "--namespace", "x", status=2)
    assert "leave --namespace out" in misused.stderr
    done = run(other_database, "import", "-", "--json", stdin=part)
    assert json.loads(done.stdout)["operations"] == 2
    assert "these do: b.c" in run(other_database, "import", str(file), status=1).stderr
    assert "give a FILE" in run(other_database, "export", status=2).stderr


def test_who_exports_erasures_without_their_key_is_told(
    database: str, target: str, store: FactStore, tmp_path: Path
) -> None:
    erased(database, store)
    file = str(tmp_path / "l")
    assert "1 erasures without their key" in run(database, "export", file).stderr
    failed = run(target, "import", file, status=1)
    assert "export it with --with-erasure-key, or accept that with --unguarded-erasures" in failed.stderr
    assert run(database, "export", file, "--with-erasure-key").stderr == ""


def test_a_link_stays_and_what_it_points_to_is_written(store: FactStore, tmp_path: Path) -> None:
    store.remember("one")
    target, link = tmp_path / "target.jsonl", tmp_path / "link.jsonl"
    target.write_text("old")
    link.symlink_to(target)
    store.export_ledger(link)
    assert link.is_symlink()
    assert target.read_bytes().startswith(b'{"supersede"')
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.jsonl", "target.jsonl"]


def test_a_pipe_is_written_through_and_stays_a_pipe(store: FactStore, tmp_path: Path) -> None:
    store.remember("one")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as pool:
        read = pool.submit(pipe.read_bytes)
        store.export_ledger(pipe)
        assert read.result(timeout=60).startswith(b'{"supersede"')
    assert pipe.is_fifo()


def test_two_exports_to_one_file_leave_one_of_them_whole(store: FactStore, tmp_path: Path) -> None:
    store.remember_many(f"claim number {n}" for n in range(300))
    file = tmp_path / "ledger.jsonl"
    with ThreadPoolExecutor() as pool:
        for done in [pool.submit(store.export_ledger, file) for _ in range(4)]:
            done.result(timeout=60)
    assert len(list(ledger.history(file))) == 300
    assert [path.name for path in tmp_path.iterdir()] == ["ledger.jsonl"]


@pytest.mark.parametrize("path", ["", "a\x00b", "x" * 300], ids=["empty", "NUL", "too long"])
def test_what_is_no_path_is_an_input_error(store: FactStore, tmp_path: Path, path: str) -> None:
    store.remember("one")
    with pytest.raises(InvalidInput):
        store.export_ledger(path and str(tmp_path / path))
