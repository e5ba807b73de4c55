"""What the environment says (``SUPERSEDE_*``), and the one form in which a server's URL is used.

The environment is read when :class:`Settings` is made, never on import. No message raised here
repeats any part of a URL: a password with a stray ``@`` turns up in the host, so no part is safe.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from supersede.errors import ServerUnavailable

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

SCHEMES = frozenset({"postgres", "postgresql", "postgresql+psycopg"})

_FORM = (
    "The URL must have the form postgresql://user:password@host:port/database, where characters of"
    " the user, the password and the database such as @ / ? : % are written %40 %2F %3F %3A %25"
)
_URL = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://"
    r"(?:(?P<user>[^:/?@]*)(?::(?P<password>[^/?@]*))?@)?"
    r"(?P<hosts>[^/?@]*)"
    r"(?:/(?P<database>[^/?@]*))?"
    r"(?:\?(?P<query>.*))?"
)
_HOST = re.compile(r"(?:\[(?P<v6>[^\[\]]+)\]|(?P<name>[^\[\]:]*))(?::(?P<port>\d{0,5}))?")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})|%00")
# SQLAlchemy hides the password when it prints a URL, but nothing of the query string.
_SECRET_OPTIONS = frozenset({"sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key"})


class Settings(BaseSettings):
    """The environment's ``SUPERSEDE_*`` variables; an empty one counts as unset.

    ``url``: the server; unset means the embedded one. ``data_dir``: where the embedded server keeps
    its data. ``namespace``, ``actor`` and ``run``: what a store uses when it is not told. ``tokenizer``: the
    ``tokenizer.json`` of the light embedder, where it is not to be looked for.
    """

    # No .env file: a program should not start to talk to another database because of the folder
    # it was started in.
    model_config = SettingsConfigDict(
        env_prefix="SUPERSEDE_", env_ignore_empty=True, frozen=True, extra="ignore"
    )

    url: SecretStr | None = None
    data_dir: Path | None = None
    namespace: str = Field(default="default", min_length=1)
    actor: str | None = None
    run: str | None = None
    tokenizer: Path | None = None


def normalise_url(url: str | SecretStr) -> URL:
    """The URL of a PostgreSQL server as SQLAlchemy wants it, for the driver psycopg 3.

    Takes what libpq takes as a URI (several hosts, a socket folder as ``?host=``, a service), with
    the scheme ``postgres``, ``postgresql`` or ``postgresql+psycopg``. A password in the query
    string is moved to where SQLAlchemy hides it.

    :raises ServerUnavailable: when the URL cannot be used; the message repeats no part of it.
    """
    text = (url.get_secret_value() if isinstance(url, SecretStr) else url).strip()
    match = _URL.fullmatch(text)
    if match is None or any(ord(character) < 32 for character in text):
        raise ServerUnavailable(_FORM)
    if match["scheme"].lower() not in SCHEMES:
        raise ServerUnavailable(
            "supersede needs PostgreSQL through psycopg 3: the URL must start with postgresql://"
        )
    if _BAD_ESCAPE.search(text):
        raise ServerUnavailable(f"A % in the URL does not stand before two hex digits. {_FORM}")

    options = _options(match["query"])
    if ports := options.get("port"):
        options["port"] = ",".join(_port(port) for port in ports.split(","))
    user, password = _decoded(match["user"]), _decoded(match["password"])
    database = _decoded(match["database"])
    hosts, hosts_ports = _hosts(match["hosts"])
    if len(hosts) > 1:
        options = {"host": ",".join(hosts), "port": ",".join(hosts_ports)} | options
        hosts, hosts_ports = [], []

    from sqlalchemy.engine import URL  # here, since importing the package must not load it

    return URL.create(
        "postgresql+psycopg",
        username=options.pop("user", user),
        password=options.pop("password", password),
        host="".join(hosts) or None,
        port=int("".join(hosts_ports) or 0) or None,
        database=options.pop("dbname", database) or None,
        query=options,
    )


def display_url(url: URL) -> str:
    """The URL for messages and logs: neither the password nor the options, whatever they are."""
    host, port = url.query.get("host"), url.query.get("port")
    kept = {name: value for name, value in (("host", host), ("port", port)) if value}
    bare = url.set(drivername="postgresql", query=kept)
    return bare.render_as_string(hide_password=True)


def _options(query: str | None) -> dict[str, str]:
    """The query string as libpq reads it: a ``+`` is a plus, and only options it knows."""
    options: dict[str, str] = {}
    for part in (query or "").split("&"):
        if not part:
            continue
        name, equals, value = part.partition("=")
        if not equals:
            raise ServerUnavailable("An option in the URL has no value: write ?name=value")
        options[_decoded(name) or ""] = _decoded(value) or ""
    if secret := sorted(options.keys() & _SECRET_OPTIONS):
        raise ServerUnavailable(
            f"{secret[0]} must not stand in a URL, which shows up in logs: put it into a"
            " connection service file and give ?service=NAME"
        )

    from psycopg import pq

    known = {option.keyword.decode() for option in pq.Conninfo.get_defaults()}
    if options.keys() - known:
        raise ServerUnavailable(
            "An option in the URL is unknown to libpq; the PostgreSQL manual lists them under"
            " 'Parameter Key Words'"
        )
    return options


def _hosts(text: str) -> tuple[list[str], list[str]]:
    """The hosts and, at the same places, their ports (empty where none is given)."""
    hosts, ports = [], []
    for one in text.split(","):
        match = _HOST.fullmatch(one)
        if match is None:
            raise ServerUnavailable(_FORM)
        hosts.append(_decoded(match["v6"] or match["name"]) or "")
        ports.append(_port(match["port"] or ""))
    return hosts, ports


def _port(text: str) -> str:
    if text and not (text.isascii() and text.isdigit() and 0 < int(text) < 65536):
        raise ServerUnavailable("The port in the URL must be a number from 1 to 65535")
    return text


def _decoded(text: str | None) -> str | None:
    if text is None:
        return None
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        # "from None": the decoder's error repeats the text.
        raise ServerUnavailable(f"The URL's %-escapes are not UTF-8. {_FORM}") from None
