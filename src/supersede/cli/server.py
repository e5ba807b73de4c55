"""The commands about the database itself: prepare it, and run the embedded server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from supersede.cli.app import app, command
from supersede.cli.ending import NOTHING
from supersede.cli.progress import waiting
from supersede.cli.session import Session

db = typer.Typer(help="The embedded PostgreSQL server; $SUPERSEDE_DATA_DIR is where it keeps its data.")
app.add_typer(db, name="db", rich_help_panel="Start")


@command(app, "init", panel="Start")
def init(
    session: Session,
    text_search: Annotated[
        str,
        typer.Option(metavar="NAME", help="PostgreSQL text search configuration; fixed at the first init."),
    ] = "english",
    min_similarity: Annotated[
        float | None,
        typer.Option(
            metavar="COSINE",
            min=0,
            max=1,
            help="Least of a match from now on, else the model's.",
            show_default=False,
        ),
    ] = None,
    near_duplicate: Annotated[
        float | None,
        typer.Option(
            metavar="COSINE",
            min=0,
            max=1,
            help="From where two claims may be one, else the model's.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Prepare a database, or upgrade it: extensions, schema, embedding space. Safe to repeat."""
    from supersede.settings import Settings, display_url, normalise_url
    from supersede.store import FactStore

    session.set_up_log()
    given = session.url or Settings().url
    with waiting("preparing the database"):
        if given is None:
            from supersede import embedded

            given = embedded.url(Settings().data_dir)
        url = normalise_url(given)
        roles = FactStore.init(
            url.render_as_string(hide_password=False),
            text_search=text_search,
            min_similarity=min_similarity,
            near_duplicate=near_duplicate,
        )
    text = f"ready: {display_url(url)}"
    if roles:
        text += "\nThis user may not create roles; have one who may run this, then run init again:\n"
        text += "\n".join(roles)
    _print(session, {"ready": display_url(url), "missing_roles": list(roles)}, text)


@command(db, "start")
def start(session: Session) -> None:
    """Start the server, unless it runs."""
    from supersede import embedded

    with waiting("starting PostgreSQL"):
        found = embedded.start()
    _print(session, _plain(found), f"PostgreSQL {found.version} runs in {found.data_dir}")


@command(db, "stop")
def stop(session: Session) -> None:
    """Stop the server, and cut its clients off."""
    from supersede import embedded

    with waiting("stopping PostgreSQL"):
        stopped = embedded.stop()
    _print(session, {"stopped": stopped}, "stopped" if stopped else "it was not running")


@command(db, "status")
def status(session: Session) -> int:
    """Say whether the server runs, and where. The exit status is 3 if it does not."""
    from supersede import embedded

    found = embedded.status()
    if not found.running:
        text = f"not running; data folder: {found.data_dir}"
    elif found.url is None:
        text = f"running as process {found.pid}, and does not answer yet; log: {found.log}"
    else:
        text = (
            f"PostgreSQL {found.version} runs as process {found.pid}; data folder: {found.data_dir}; "
            f"log: {found.log}"
        )
    _print(session, _plain(found), text)
    return 0 if found.running else NOTHING


@command(db, "url")
def url(session: Session) -> None:
    """Print the server's URL, for psql and other programs; starts it unless it runs."""
    from supersede import embedded

    with waiting("starting PostgreSQL"):
        found = embedded.url()
    _print(session, {"url": found}, found)


def _plain(found: Any) -> dict[str, Any]:  # noqa: ANN401 - embedded.ServerInfo
    fields = ("running", "pid", "version", "url", "data_dir", "log")
    values = {field: getattr(found, field) for field in fields}
    return {field: str(value) if isinstance(value, Path) else value for field, value in values.items()}


def _print(session: Session, plain: dict[str, Any], text: str) -> None:
    if session.json:
        from supersede.cli import printing

        printing.as_json(plain)
    else:
        print(text)
