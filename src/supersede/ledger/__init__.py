"""The ledger as a file: its lines, and how they are written and read. Pure."""

from __future__ import annotations

from supersede.ledger.files import Batch, LedgerFile, Reader, Writer, history, is_header, opened
from supersede.ledger.lines import Header, LedgerSummary, NamespaceEntry, Operation, SpaceEntry

__all__ = [
    "Batch",
    "Header",
    "LedgerFile",
    "LedgerSummary",
    "NamespaceEntry",
    "Operation",
    "Reader",
    "SpaceEntry",
    "Writer",
    "history",
    "is_header",
    "opened",
]
