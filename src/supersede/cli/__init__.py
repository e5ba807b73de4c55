"""The command line: arguments in, the store's own words out. ``main`` is the program ``supersede``."""

from __future__ import annotations

# Each of these adds its commands to the app.
from supersede.cli import loading, reading, server, writing
from supersede.cli.app import app, main

__all__ = ["app", "loading", "main", "reading", "server", "writing"]
