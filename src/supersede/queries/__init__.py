"""Builders of statements: pure, they never execute.

Every read first fixes a :class:`Scope`: per namespace, what is known (``known_at``, clamped to the head) and
the head itself. It enters each statement as rows, so one plan serves any number of namespaces.
"""

from __future__ import annotations

from supersede.queries.detail import (
    changes,
    details,
    edges,
    refs,
    resolve,
    sources,
    vectors,
    versions,
    walk,
)
from supersede.queries.ledger import (
    KINDS,
    exported,
    ledger_rows,
)
from supersede.queries.ranking import (
    FULL_MATCH,
    Question,
    any_known,
    known_facts,
    ranked,
    reasons,
    unembedded,
)
from supersede.queries.registry import (
    heads,
    state,
    unfilled,
)
from supersede.queries.scope import (
    Scope,
    among,
    these,
)
from supersede.queries.tables import TABLES, table

__all__ = [
    "FULL_MATCH",
    "KINDS",
    "TABLES",
    "Question",
    "Scope",
    "among",
    "any_known",
    "changes",
    "details",
    "edges",
    "exported",
    "heads",
    "known_facts",
    "ledger_rows",
    "ranked",
    "reasons",
    "refs",
    "resolve",
    "sources",
    "state",
    "table",
    "these",
    "unembedded",
    "unfilled",
    "vectors",
    "versions",
    "walk",
]
