"""Every error this package raises on purpose.

One base class, so that ``except SupersedeError`` is enough. The docstring of a class is its default
message. Errors that come from the database keep the driver's error as ``__cause__``; ``sqlstate`` is
the code that the SQL functions raise for the same condition.
"""

from __future__ import annotations

from typing import Any, ClassVar


class SupersedeError(Exception):
    """The operation failed and changed nothing (:class:`OutcomeUnknown` alone cannot tell)."""

    sqlstate: ClassVar[str | None] = None

    def __init__(self, message: str | None = None, *, details: dict[str, Any] | None = None) -> None:
        self.message = message or (self.__doc__ or "").strip().splitlines()[0]
        self.details: dict[str, Any] = details or {}
        super().__init__(self.message)

    def located(self, place: str, position: int) -> None:
        """Say in the message, and in ``details["position"]``, which of many records failed."""
        self.message = f"{place}: {self.message}"
        self.args = (self.message,)
        self.details["position"] = position


class InvalidInput(SupersedeError, ValueError):
    """An argument cannot be accepted as given."""

    sqlstate = "SU013"


class InvalidPeriod(InvalidInput):
    """A period must not be empty or reversed: its end must lie after its start."""

    sqlstate = "SU001"


class InvalidInstant(InvalidInput):
    """An instant must be an aware datetime, a date, or ISO 8601 with an offset, in years 1 to 9999."""

    sqlstate = "SU002"


class OutOfOrder(SupersedeError):
    """An event was recorded before the newest event in the ledger, or in the future."""

    sqlstate = "SU003"


class FactNotFound(SupersedeError, LookupError):
    """No fact has this id or ref in the namespace."""

    sqlstate = "SU004"


class FactNotCurrent(SupersedeError):
    """A fact that the call needs is not believed in the period in question."""

    sqlstate = "SU005"


class SupersessionCycle(SupersedeError):
    """The edge would make a fact supersede itself, directly or through others."""

    sqlstate = "SU006"


class RefConflict(SupersedeError):
    """The ref or handle already stands for something else."""

    sqlstate = "SU007"


class TrustConflict(SupersedeError):
    """A fact of lower trust may not take this fact's validity away."""

    sqlstate = "SU008"


class Conflict(SupersedeError):
    """Another writer was in the way; nothing was changed, and the call may be repeated."""

    sqlstate = "SU009"


class NamespaceNotFound(SupersedeError, LookupError):
    """The namespace does not exist; its first write creates it."""

    sqlstate = "SU010"


class DimensionMismatch(SupersedeError, ValueError):
    """A vector does not have the number of dimensions of its embedding space."""

    sqlstate = "SU011"


class UnsafeIsolation(SupersedeError):
    """Writes need READ COMMITTED: under a snapshot, the lock would show the past."""

    sqlstate = "SU012"


class SlotOverlap(SupersedeError):
    """A predicate cannot be declared one-valued while its values overlap."""

    sqlstate = "SU014"


class SlotTaken(SupersedeError):
    """Another value holds the slot in that period."""

    sqlstate = "SU017"


class Erased(SupersedeError):
    """The fact's content was destroyed; the same is recorded again only after its erasure is lifted."""

    sqlstate = "SU018"


class OutOfSync(SupersedeError):
    """The basis is ahead of this server: it was made where more had been recorded."""

    sqlstate = "SU015"


class SpaceGone(SupersedeError, LookupError):
    """The embedding space that the basis names is not in this database."""

    sqlstate = "SU016"


class NamespaceExists(SupersedeError):
    """A ledger is imported into namespaces that do not exist yet."""

    sqlstate = "SU030"


class LedgerMismatch(SupersedeError):
    """The ledger does not fit this database."""

    sqlstate = "SU031"


class InvalidLedger(InvalidInput):
    """The file is no ledger, or not a whole one; nothing of it was imported."""

    sqlstate = "SU032"


class ParquetMissing(SupersedeError):
    """Parquet files need pyarrow, which is not installed: pip install "supersede[parquet]"."""


class EmbedderError(SupersedeError):
    """The embedder returned something that cannot be ranked (zero vector, NaN, wrong shape)."""


class EmbedderUnavailable(EmbedderError):
    """The embedder could not be loaded or did not answer."""


class SchemaOutOfDate(SupersedeError):
    """The database's schema is not the one this version of supersede needs."""


class PrivilegeMissing(SupersedeError):
    """The database role may not do this."""


class ServerUnavailable(SupersedeError):
    """No usable PostgreSQL server answered."""


class ServerFull(SupersedeError):
    """The server has no room left (disk, memory, or a limit of its own); nothing was changed."""


class ServerReadOnly(SupersedeError):
    """This server only reads: it is a replica, or set to read only. Write to the primary."""


class TimedOut(SupersedeError):
    """A time limit of the server ended the call; nothing was changed, and it may be repeated."""


class OutcomeUnknown(SupersedeError):
    """The connection was lost while the write was being committed: it was recorded in full, or not at all.

    The one error after which something may have changed. The same call with the same handle finds its own
    write, if it is there, and records it otherwise; so does one with a ref.
    """


class ServerUnsupported(ServerUnavailable):
    """The server lacks something supersede needs (version, extension, encoding, privilege)."""
