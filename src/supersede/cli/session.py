"""What every command shares: what its options said, and the store they mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from supersede.store import FactStore

_PANEL = "Everywhere"

Url = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="PostgreSQL server, else $SUPERSEDE_URL, else the embedded one.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
Namespace = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Namespace to write to and read, else $SUPERSEDE_NAMESPACE, else default.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
Actor = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Who is writing, for the ledger, else $SUPERSEDE_ACTOR.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
Run = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The run that writes belong to, to be undone as a whole, else $SUPERSEDE_RUN.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.", rich_help_panel=_PANEL)]
Debug = Annotated[
    bool,
    typer.Option("--debug", help="Log to stderr; show where an error arose.", rich_help_panel=_PANEL),
]

Options = Mapping[str, tuple[Any, Any]]
"""Options of commands by name: the annotation that typer reads, and the default."""

SHARED: Options = {
    "url": (Url, None),
    "namespace": (Namespace, None),
    "actor": (Actor, None),
    "run": (Run, None),
    "json": (Json, False),
    "debug": (Debug, False),
}
"""The options that may stand before or after a command."""


class Session:
    """What the shared options said, before or after the command."""

    url: str | None = None
    namespace: str | None = None
    actor: str | None = None
    run: str | None = None
    json: bool = False
    debug: bool = False

    def take(self, said: dict[str, Any]) -> None:
        """Take the shared options out of what was said; the later one counts."""
        for name in SHARED:
            if value := said.pop(name, None):
                setattr(self, name, value)

    def open(self) -> FactStore:
        """The store that the options mean; to be closed.

        :raises SupersedeError: as ``FactStore.open`` does.
        """
        from supersede.cli.progress import waiting
        from supersede.store import FactStore

        self.set_up_log()
        with waiting("opening the store"):
            return FactStore.open(self.url, namespace=self.namespace, actor=self.actor, run=self.run)

    def set_up_log(self) -> None:
        """Send the package's log to stderr, and only with ``--debug``: results say what matters."""
        import logging

        log = logging.getLogger("supersede")
        log.setLevel(logging.DEBUG if self.debug else logging.CRITICAL)
        if self.debug and not log.handlers:
            log.addHandler(logging.StreamHandler())
