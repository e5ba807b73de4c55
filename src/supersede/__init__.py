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
        FactNotCurrent,
        FactNotFound,
        InvalidInput,
        InvalidInstant,
        InvalidLedger,
        InvalidPeriod,
        LedgerMismatch,
        NamespaceExists,
        NamespaceNotFound,
        OutOfOrder,
        OutOfSync,
        ParquetMissing,
        PrivilegeMissing,
        RefConflict,
        SchemaOutOfDate,
        ServerUnavailable,
        ServerUnsupported,
        SlotOverlap,
        SlotTaken,
        SpaceGone,
        SupersedeError,
        SupersessionCycle,
        TrustConflict,
        UnsafeIsolation,
    )
    from supersede.ledger import LedgerSummary
    from supersede.models import Answer, Basis, Fact, Recorded, Verification
    from supersede.periods import NO_END, NO_START, Period
    from supersede.store import FactStore
    from supersede.timelines import Diff, History, Lineage

__version__ = "0.1.0"

_HOMES = {
    "store": ["FactStore"],
    "aio": ["AsyncFactStore"],
    "periods": ["NO_END", "NO_START", "Period"],
    "models": ["Answer", "Basis", "Fact", "Recorded", "Verification"],
    "ledger": ["LedgerSummary"],
    "timelines": ["Diff", "History", "Lineage"],
    "errors": [
        "Conflict",
        "DimensionMismatch",
        "EmbedderError",
        "EmbedderUnavailable",
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
        "ParquetMissing",
        "PrivilegeMissing",
        "RefConflict",
        "SchemaOutOfDate",
        "ServerUnavailable",
        "ServerUnsupported",
        "SlotOverlap",
        "SlotTaken",
        "SpaceGone",
        "SupersedeError",
        "SupersessionCycle",
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
    "Conflict",
    "Diff",
    "DimensionMismatch",
    "EmbedderError",
    "EmbedderUnavailable",
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
    "NamespaceExists",
    "NamespaceNotFound",
    "OutOfOrder",
    "OutOfSync",
    "ParquetMissing",
    "Period",
    "PrivilegeMissing",
    "Recorded",
    "RefConflict",
    "SchemaOutOfDate",
    "ServerUnavailable",
    "ServerUnsupported",
    "SlotOverlap",
    "SlotTaken",
    "SpaceGone",
    "SupersedeError",
    "SupersessionCycle",
    "TrustConflict",
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
