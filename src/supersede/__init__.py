"""A bitemporal fact store on PostgreSQL and pgvector.

``from supersede import FactStore`` is where to begin. Names load on first use: importing the package
loads no database driver and no model.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from supersede.aio import AsyncFactStore
    from supersede.errors import (
        Conflict,
        DimensionMismatch,
        EmbedderError,
        EmbedderUnavailable,
        Erased,
        FactNotCurrent,
        FactNotFound,
        InvalidInput,
        InvalidInstant,
        InvalidLedger,
        InvalidPeriod,
        LedgerMismatch,
        NamespaceExists,
        NamespaceNotFound,
        OutcomeUnknown,
        OutOfOrder,
        OutOfSync,
        ParquetMissing,
        PrivilegeMissing,
        RefConflict,
        SchemaOutOfDate,
        ServerFull,
        ServerReadOnly,
        ServerUnavailable,
        ServerUnsupported,
        SlotOverlap,
        SlotTaken,
        SpaceGone,
        SupersedeError,
        SupersessionCycle,
        TimedOut,
        TrustConflict,
        UnsafeIsolation,
    )
    from supersede.ledger import LedgerSummary
    from supersede.models import Answer, Basis, Fact, Verification
    from supersede.periods import NO_END, NO_START, Period
    from supersede.results import Certificate, Recorded
    from supersede.spaces import EmbeddingSpace, Moved
    from supersede.store import FactStore
    from supersede.timelines import Diff, History, Lineage
    from supersede.undone import Undoing

__version__ = "0.1.0"

_HOMES = {
    "store": ["FactStore"],
    "aio": ["AsyncFactStore"],
    "periods": ["NO_END", "NO_START", "Period"],
    "models": ["Answer", "Basis", "Fact", "Verification"],
    "results": ["Certificate", "Recorded"],
    "spaces": ["EmbeddingSpace", "Moved"],
    "ledger": ["LedgerSummary"],
    "timelines": ["Diff", "History", "Lineage"],
    "undone": ["Undoing"],
    "errors": [
        "Conflict",
        "DimensionMismatch",
        "EmbedderError",
        "EmbedderUnavailable",
        "Erased",
        "FactNotCurrent",
        "FactNotFound",
        "InvalidInput",
        "InvalidInstant",
        "InvalidLedger",
        "InvalidPeriod",
        "LedgerMismatch",
        "NamespaceExists",
        "NamespaceNotFound",
        "OutOfOrder",
        "OutOfSync",
        "OutcomeUnknown",
        "ParquetMissing",
        "PrivilegeMissing",
        "RefConflict",
        "SchemaOutOfDate",
        "ServerFull",
        "ServerReadOnly",
        "ServerUnavailable",
        "ServerUnsupported",
        "SlotOverlap",
        "SlotTaken",
        "SpaceGone",
        "SupersedeError",
        "SupersessionCycle",
        "TimedOut",
        "TrustConflict",
        "UnsafeIsolation",
    ],
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "NO_END",
    "NO_START",
    "Answer",
    "AsyncFactStore",
    "Basis",
    "Certificate",
    "Conflict",
    "Diff",
    "DimensionMismatch",
    "EmbedderError",
    "EmbedderUnavailable",
    "EmbeddingSpace",
    "Erased",
    "Fact",
    "FactNotCurrent",
    "FactNotFound",
    "FactStore",
    "History",
    "InvalidInput",
    "InvalidInstant",
    "InvalidLedger",
    "InvalidPeriod",
    "LedgerMismatch",
    "LedgerSummary",
    "Lineage",
    "Moved",
    "NamespaceExists",
    "NamespaceNotFound",
    "OutOfOrder",
    "OutOfSync",
    "OutcomeUnknown",
    "ParquetMissing",
    "Period",
    "PrivilegeMissing",
    "Recorded",
    "RefConflict",
    "SchemaOutOfDate",
    "ServerFull",
    "ServerReadOnly",
    "ServerUnavailable",
    "ServerUnsupported",
    "SlotOverlap",
    "SlotTaken",
    "SpaceGone",
    "SupersedeError",
    "SupersessionCycle",
    "TimedOut",
    "TrustConflict",
    "Undoing",
    "UnsafeIsolation",
    "Verification",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the name stands for
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
