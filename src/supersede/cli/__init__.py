"""The command line: arguments in, the store's own words out. ``main`` is the program ``supersede``."""

from __future__ import annotations

# Each of these adds its commands to the app, in the order of the help.
from supersede.cli import server  # isort: skip
from supersede.cli import showing  # isort: skip
from supersede.cli import writing  # isort: skip
from supersede.cli import undoing  # isort: skip
from supersede.cli import erasing  # isort: skip
from supersede.cli import loading  # isort: skip
from supersede.cli import ledgers  # isort: skip
from supersede.cli import reading  # isort: skip
from supersede.cli import checking  # isort: skip
from supersede.cli.app import app, main

__all__ = [
    "app",
    "checking",
    "erasing",
    "ledgers",
    "loading",
    "main",
    "reading",
    "server",
    "showing",
    "undoing",
    "writing",
]
