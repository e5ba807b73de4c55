"""What the environment says, and which URLs are taken."""

from __future__ import annotations

import traceback
from pathlib import Path

import psycopg
import pytest
import sqlalchemy
from pydantic import SecretStr, ValidationError

from servers import container_class, docker_answers
from supersede.errors import ServerUnavailable
from supersede.settings import Settings, display_url, normalise_url


def test_without_environment_there_is_a_default_namespace_and_nothing_else():
    assert Settings().model_dump() == {
        "url": None,
        "data_dir": None,
        "namespace": "default",
        "actor": None,
        "run": None,
        "tokenizer": None,
    }


def test_the_environment_is_read_when_settings_are_made(monkeypatch):
    monkeypatch.setenv("SUPERSEDE_URL", "postgresql://u:hush@h/db")
    monkeypatch.setenv("SUPERSEDE_DATA_DIR", "/srv/facts")
    monkeypatch.setenv("SUPERSEDE_NAMESPACE", "a.b-c")
    monkeypatch.setenv("SUPERSEDE_ACTOR", "anna")
    monkeypatch.setenv("SUPERSEDE_TOKENIZER", "/srv/tokenizer.json")
    settings = Settings()
    assert settings.url is not None
    assert settings.url.get_secret_value() == "postgresql://u:hush@h/db"
    assert settings.data_dir == Path("/srv/facts")
    assert (settings.namespace, settings.actor) == ("a.b-c", "anna")
    assert settings.tokenizer == Path("/srv/tokenizer.json")
    assert "hush" not in repr(settings) + str(settings) + settings.model_dump_json()


def test_an_empty_variable_counts_as_unset(monkeypatch):
    monkeypatch.setenv("SUPERSEDE_URL", "")
    monkeypatch.setenv("SUPERSEDE_NAMESPACE", "")
    assert Settings().url is None
    assert Settings().namespace == "default"


def test_settings_do_not_change(monkeypatch):
    settings = Settings()
    with pytest.raises(ValidationError):
        settings.namespace = "other"


def test_no_dotenv_file_is_read(monkeypatch, tmp_path):
    (tmp_path / ".env").write_text("SUPERSEDE_NAMESPACE=elsewhere\n")
    monkeypatch.chdir(tmp_path)
    assert Settings().namespace == "default"


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg", "POSTGRES"])
def test_each_scheme_becomes_psycopg_3(scheme):
    url = normalise_url(f"{scheme}://anna:s%40crit@db.example:5433/facts?sslmode=require\n")
    assert url == sqlalchemy.URL.create(
        "postgresql+psycopg", "anna", "s@crit", "db.example", 5433, "facts", {"sslmode": "require"}
    )


def test_a_secret_string_is_taken_too():
    assert normalise_url(SecretStr("postgres://u:p@h/d")).password == "p"


@pytest.mark.parametrize(
    ("given", "arguments"),
    [
        ("postgresql:///facts", {"dbname": "facts"}),
        ("postgresql://h", {"host": "h"}),
        ("postgresql://h:/", {"host": "h"}),
        ("postgresql://[::1]:5433/d", {"host": "::1", "port": 5433, "dbname": "d"}),
        ("postgresql://%2Frun%2Fpg/d", {"host": "/run/pg", "dbname": "d"}),
        (
            "postgresql://u@/d?host=/run/pg&port=5433",
            {"user": "u", "host": "/run/pg", "port": "5433", "dbname": "d"},
        ),
        (
            "postgresql://a:1,b:2/d?target_session_attrs=read-write",
            {"host": "a,b", "port": "1,2", "dbname": "d", "target_session_attrs": "read-write"},
        ),
        ("postgresql://a,[::1]:2/d", {"host": "a,::1", "port": ",2", "dbname": "d"}),
        (
            "postgresql://h/d%20e?user=u&password=p%26q&application_name=a+b",
            {
                "host": "h",
                "dbname": "d e",
                "user": "u",
                "password": "p&q",
                "application_name": "a+b",
            },
        ),
        ("postgresql:///?service=facts", {"service": "facts"}),
    ],
)
def test_the_driver_gets_what_libpq_would_make_of_the_url(given, arguments):
    url = normalise_url(given)
    _, got = url.get_dialect()().create_connect_args(url)
    assert got == arguments


BAD_URLS = [
    "postgresql://u:s3cret%zz@h/d",
    "postgresql://u:s3cret%@h/d",
    "postgresql://u:s3cret%00@h/d",
    "postgresql://u:s3cret%ff@h/d",
    "postgresql://u:p@s3cret@h/d",
    "postgresql://u:p/s3cret@h/d",
    "postgresql://u:p?s3cret@h/d",
    "postgresql://u:x@h:s3cret/d",
    "postgresql://u:x@h:99999/d?password=s3cret",
    "postgresql://u:x@h/d?port=s3cret",
    "postgresql://u:x@h/d?s3cret",
    "postgresql://u:x@h/d?s3cret=1",
    "postgresql://u:x@h/d?sslpassword=s3cret",
    "postgresql://u:s3cret@h/d\nx",
    "postgresql+psycopg2://u:s3cret@h/d",
    "mysql://u:s3cret@h/d",
    "host=h user=u password=s3cret",
    "s3cret",
    "",
]


@pytest.mark.parametrize("url", BAD_URLS)
def test_secrets_in_errors_a_url_that_is_refused_is_not_repeated(url):
    with pytest.raises(ServerUnavailable) as caught:
        normalise_url(url)
    printed = "".join(traceback.format_exception(caught.value, chain=True))
    printed = "\n".join(line for line in printed.splitlines() if "normalise_url(url)" not in line)
    assert "s3cret" not in printed
    assert caught.value.__cause__ is None


def test_secrets_in_errors_what_sqlalchemy_prints_hides_a_password_of_the_query_string():
    url = normalise_url("postgresql://u@h/d?password=s3cret")
    assert "s3cret" not in f"{url} {url!r} {sqlalchemy.create_engine(url)!r}"


def test_secrets_in_errors_a_failed_connection_does_not_show_the_password():
    url = normalise_url("postgresql://u:s3cret@127.0.0.1:1/d?connect_timeout=2")
    with pytest.raises(sqlalchemy.exc.OperationalError) as caught:
        sqlalchemy.create_engine(url, connect_args={}).connect()
    assert "s3cret" not in "".join(traceback.format_exception(caught.value))


def test_a_url_for_messages_has_neither_password_nor_options():
    url = normalise_url("postgres://u:s3cret@h:5433/d?sslmode=require&passfile=/s3cret")
    assert display_url(url) == "postgresql://u:***@h:5433/d"
    assert display_url(normalise_url("postgresql://u@/d?host=/run/pg&options=-cs3cret=1")) == (
        "postgresql://u@/d?host=%2Frun%2Fpg"
    )


def test_the_test_server_has_what_the_store_needs(empty_database):
    with psycopg.connect(empty_database) as connection:
        for extension in ("vector", "btree_gist", "pg_trgm"):
            connection.execute(f"create extension {extension}")
        assert connection.info.server_version >= 170000


def test_looking_for_docker_is_silent(monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    assert docker_answers() is False


def test_the_container_of_the_tests_can_be_imported():
    pytest.importorskip("testcontainers")
    assert container_class().__name__ == "PostgresContainer"
