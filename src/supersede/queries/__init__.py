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
from supersede.queries.erasing import (
    erased_current,
    erased_since,
    is_erased,
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
    has_seen,
    heads,
    is_active,
    namespaces,
    space_counts,
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
    "erased_current",
    "erased_since",
    "exported",
    "has_seen",
    "heads",
    "is_active",
    "is_erased",
    "known_facts",
    "ledger_rows",
    "namespaces",
    "ranked",
    "reasons",
    "refs",
    "resolve",
    "sources",
    "space_counts",
    "state",
    "table",
    "these",
    "unembedded",
    "unfilled",
    "vectors",
    "versions",
    "walk",
]
