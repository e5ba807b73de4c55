"""Executes the statements: the only package that reads and writes facts over a connection."""

from __future__ import annotations

from supersede.facts.erasing import (
    erased_at,
    erased_current,
    erased_since,
    refuse_erased,
)
from supersede.facts.loading import (
    any_known,
    as_period,
    folded,
    known_facts,
    load,
    ranked,
    reasons,
    refs,
    resolve,
    taken_by,
    titles,
    unembedded,
    vectors,
)
from supersede.facts.registry import (
    heads,
    register_space,
    space_of,
    spaces,
    state,
)
from supersede.facts.rows import (
    NO_VECTOR,
    Head,
    Key,
    KnownRow,
    RankedRow,
    ReasonRow,
    Space,
    Vector,
    vector_text,
)
from supersede.facts.writing import (
    fill_embeddings,
    recorded,
    replay,
    unfilled,
    write,
)

__all__ = [
    "NO_VECTOR",
    "Head",
    "Key",
    "KnownRow",
    "RankedRow",
    "ReasonRow",
    "Space",
    "Vector",
    "any_known",
    "as_period",
    "erased_at",
    "erased_current",
    "erased_since",
    "fill_embeddings",
    "folded",
    "heads",
    "known_facts",
    "load",
    "ranked",
    "reasons",
    "recorded",
    "refs",
    "refuse_erased",
    "register_space",
    "replay",
    "resolve",
    "space_of",
    "spaces",
    "state",
    "taken_by",
    "titles",
    "unembedded",
    "unfilled",
    "vector_text",
    "vectors",
    "write",
]
