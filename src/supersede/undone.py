"""What comes out of an undo: per operation what was withdrawn, what was given back, what was left alone."""

from __future__ import annotations

from typing import Literal

from supersede.models import Frozen
from supersede.periods import Instant
from supersede.results import Given, LeftAlone

Skipped = Literal["history", "already_undone", "undo_of_selected"]


class UndoneOperation(Frozen):
    """One operation, by its stamp, and what undoing it does.

    ``undone_at``: the stamp of its undo, which can be undone in its turn; None in a plan. ``skipped``: why
    it is not undone at all: ``history``, it took and gave no validity (sources, declarations, vectors),
    or is an erasure; ``already_undone``; ``undo_of_selected``, it is the undo of the operation selected
    before it, which therefore stays undone.
    """

    stamp: Instant
    verb: str
    actor: str | None = None
    run: str | None = None
    note: str | None = None
    undone_at: Instant | None = None
    skipped: Skipped | None = None
    withdrawn: tuple[Given, ...] = ()
    given_back: tuple[Given, ...] = ()
    left_alone: tuple[LeftAlone, ...] = ()


class Selection(Frozen):
    """Whose operations were selected; None means any. ``since`` is inclusive, ``until`` is not."""

    actor: str | None = None
    run: str | None = None
    source: str | None = None
    stamp: Instant | None = None
    since: Instant | None = None
    until: Instant | None = None


class Undoing(Frozen):
    """What an undo did or, as a plan (``dry_run``), would do; operations from the newest to the oldest.

    ``head`` is the last stamp that it saw (None: nothing was recorded); ``plan`` tells whether two of them
    do the same. ``repeated`` marks a retry, whose recorded result this is. ``notice`` says what a person
    should know, such as that nothing was selected.
    """

    namespace: str
    dry_run: bool
    selection: Selection
    head: Instant | None = None
    plan: str | None = None
    repeated: bool = False
    notice: str | None = None
    operations: tuple[UndoneOperation, ...] = ()
