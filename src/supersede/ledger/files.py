"""The ledger as a file: JSON Lines, one line a header, one per operation, one to close it. Pure.

Lines are checked here and passed on as they stand: what PostgreSQL wrote into them, such as numbers longer
than a float, comes back as it was. docs/export.md describes the form.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, TypeVar, cast
from uuid import uuid4

from pydantic import ValidationError

from supersede.errors import InvalidInput, InvalidLedger
from supersede.ledger.lines import Closing, Header, LedgerSummary, Operation
from supersede.models import Frozen
from supersede.periods import format_instant

FORMAT = 1
LedgerFile = str | os.PathLike[str] | BinaryIO
"""A path, or a file open for bytes."""

_BATCH_LINES = 500
_BATCH_BYTES = 4 << 20
_LONGEST_LINE = 256 << 20
_M = TypeVar("_M", bound=Frozen)


class Batch(NamedTuple):
    """Lines of one namespace as they stand in the file, with the numbers of the first and the last."""

    namespace: str
    first: int
    last: int
    lines: list[str]


@contextmanager
def opened(file: LedgerFile, mode: Literal["rb", "wb"]) -> Iterator[BinaryIO]:
    """A ledger file, packed where its name ends in ``.gz``. One that is written appears whole or not at all.

    :raises InvalidInput: if it cannot be read or written.
    """
    if not isinstance(file, str | os.PathLike):
        with nullcontext(file) as given:
            yield given
        return
    path = _checked(file)
    part = _part_of(path) if mode == "wb" else path
    try:
        with part.open(mode) as raw:
            if path.suffix == ".gz":
                # No name and no time in it: the same ledger gives the same bytes.
                with gzip.GzipFile("", mode, 6, raw, mtime=0) as packed:
                    yield cast("BinaryIO", packed)
            else:
                yield raw
        if part != path:
            part.replace(path)
    except (OSError, EOFError, zlib.error) as error:
        if not isinstance(error, OSError) or isinstance(error, gzip.BadGzipFile):
            raise InvalidLedger(f"{path} is cut off, or not packed by gzip") from error
        raise InvalidInput(f"{path}: {error.strerror}") from error
    finally:
        if part != path:
            with suppress(OSError):
                part.unlink(missing_ok=True)


def _checked(file: str | os.PathLike[str]) -> Path:
    """The path, a symbolic link followed: what it points to is read or replaced, and the link stays.

    :raises InvalidInput: if it can be no path.
    """
    text = os.fspath(file)
    if not isinstance(text, str) or not text or "\x00" in text:
        raise InvalidInput(f"{text!r} is no path of a file")
    try:
        return Path(text).resolve()
    except (OSError, ValueError, RuntimeError) as error:
        raise InvalidInput(f"{text!r} is no path of a file") from error


def _part_of(path: Path) -> Path:
    """Where a file is written before it appears: of its own, since two may be written at once.

    What is there and is no regular file, such as a pipe, is written to as it stands.
    """
    try:
        if path.exists() and not path.is_file():
            return path
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} cannot be written") from error
    return path.with_name(f".{uuid4().hex}.part")


class Writer:
    """Writes the lines of a ledger and keeps count."""

    def __init__(self, out: BinaryIO, header: Header) -> None:
        self._out = out
        self._sum = hashlib.sha256()
        self.header = header
        self.operations = 0
        self.facts = 0
        self._write(header.model_dump_json(exclude_none=True))

    def operation(self, row: Mapping[str, Any], event: str | None, result: str | None, wrote: str) -> None:
        """Add a line.

        :param row: the operation's own columns; the rest is JSON text, which is not looked at.
        """
        line = json.dumps({k: v for k, v in row.items() if v is not None}, ensure_ascii=False)[:-1]
        for key, text in (("event", event), ("result", result), ("wrote", wrote)):
            line += f', "{key}": {text}' if text else ""
        self._write(line + "}")
        self.operations += 1

    def close(self) -> LedgerSummary:
        """Add the last line."""
        digest = self._sum.hexdigest()
        self._write(Closing(operations=self.operations, facts=self.facts, sha256=digest).model_dump_json())
        return summary(self.header, self.operations, self.facts)

    def _write(self, line: str) -> None:
        data = line.encode() + b"\n"
        self._sum.update(data)
        self._out.write(data)


class Reader:
    """Reads a ledger file once, from its first line to its last, and checks every line.

    :raises InvalidLedger: at once, if the first line is no header of a known format.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._sum = hashlib.sha256()
        self._number = 0
        self._facts = 0
        self._operations = 0
        self._spaces: dict[str, int] = {}
        self.header = self._read_header()

    def batches(self) -> Iterator[Batch]:
        """The operations, a few hundred at a time, each batch of one namespace.

        :raises InvalidLedger: naming the line that is wrong; at the end, if the file is not whole.
        """
        lines: list[str] = []
        size, name, first = 0, "", self._number + 1
        seen: set[str] = set()
        stamp: datetime | None = None
        for text, operation in self._operations_in_order():
            if operation.namespace != name:
                if operation.namespace in seen or operation.namespace not in self.header.namespaces:
                    raise self._wrong(f"namespace {operation.namespace!r} is not due here")
                stamp = None
            elif stamp is not None and operation.stamp <= stamp:
                raise self._wrong("its stamp does not come after the one before")
            if lines and (operation.namespace != name or len(lines) >= _BATCH_LINES or size >= _BATCH_BYTES):
                yield Batch(name, first, self._number - 1, lines)
                lines, size, first = [], 0, self._number
            name, stamp = operation.namespace, operation.stamp
            seen.add(name)
            lines.append(text)
            size += len(text)
        if lines:
            yield Batch(name, first, self._number - 1, lines)

    def summary(self) -> LedgerSummary:
        """What was read so far."""
        return summary(self.header, self._operations, self._facts)

    def _operations_in_order(self) -> Iterator[tuple[str, Operation]]:
        while True:
            before = self._sum.copy()
            text = self._line()
            if text is None:
                raise InvalidLedger("the file ends without its last line: it is cut off")
            if text.startswith('{"operations"'):
                self._check_closing(text, before.hexdigest())
                return
            operation = self._parsed(Operation, text)
            for vector in operation.wrote.vectors:
                if self._spaces.get(vector.space) != vector.vector.count(",") + 1:
                    raise self._wrong(f"a vector does not belong to a space of the header: {vector.space!r}")
            self._operations += 1
            self._facts += len(operation.wrote.facts)
            yield text, operation

    def _read_header(self) -> Header:
        text = self._line()
        if text is None or not is_header(text.encode()):
            raise InvalidLedger('this is no ledger: its first line does not begin with {"supersede":"ledger"')
        if (found := json.loads(text).get("format")) != FORMAT:
            raise InvalidLedger(
                f"this ledger has format {found!r}; this release reads format {FORMAT}: upgrade the package"
            )
        header = self._parsed(Header, text)
        self._spaces = {space.model: space.dimensions for space in header.spaces}
        return header

    def _check_closing(self, text: str, digest: str) -> None:
        closing = self._parsed(Closing, text)
        if (closing.operations, closing.facts) != (self._operations, self._facts):
            raise self._wrong(
                f"it counts {closing.operations} operations and {closing.facts} facts, the file holds "
                f"{self._operations} and {self._facts}"
            )
        if closing.sha256 != digest:
            raise self._wrong("the lines before it are not those that were exported: their sum differs")
        if self._line() is not None:
            raise self._wrong("there is more after the last line")

    def _line(self) -> str | None:
        try:
            data = self._file.readline(_LONGEST_LINE)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise InvalidLedger("the file is cut off, or not packed by gzip") from error
        if not data:
            return None
        self._number += 1
        self._sum.update(data)
        if not data.endswith(b"\n"):
            raise self._wrong("it is cut off")
        try:
            return data[:-1].decode()
        except UnicodeDecodeError as error:
            raise self._wrong("not UTF-8") from error

    def _parsed(self, model: type[_M], text: str) -> _M:
        try:
            return model.model_validate_json(text)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            raise self._wrong(f"{place}: {first['msg']}" if place else first["msg"]) from None
        except InvalidInput as error:
            raise self._wrong(error.message) from error

    def _wrong(self, what: str) -> InvalidLedger:
        error = InvalidLedger(f"line {self._number}: {what}")
        error.details["position"] = self._number
        return error


def is_header(line: bytes) -> bool:
    """Whether a line is the first one of a ledger."""
    if b'"ledger"' not in line[:200]:
        return False
    try:
        found = json.loads(line)
    except ValueError:
        return False
    return isinstance(found, dict) and found.get("supersede") == "ledger"


def summary(header: Header, operations: int, facts: int) -> LedgerSummary:
    """The figures of a ledger."""
    return LedgerSummary(
        heads={name: entry.head for name, entry in header.namespaces.items()},
        operations=operations,
        facts=facts,
        erasures=header.erasures,
        erasure_key=header.erasure_key is not None,
    )


def history(file: LedgerFile) -> Iterator[tuple[str, dict[str, Any]]]:
    """The operations of a ledger file as events for ``replay``, each with its namespace.

    For those who want the verbs to run again, under today's rules, rather than the past as it was. Facts
    keep their ids. Operations that are no event (vectors filled later) are left out. The latest recording
    time may come before an event's own: replay with ``out_of_order="next_stamp"``.

    :raises InvalidLedger: as soon as a line is wrong; at the first event whose content was erased, since
        what came after it cannot be told without it; at the end, if the file is not whole.
    """
    with opened(file, "rb") as lines:
        for batch in Reader(lines).batches():
            for text in batch.lines:
                operation = Operation.model_validate_json(text)
                if operation.event is not None and operation.op != "fill_embeddings":
                    if operation.event.get("erased"):
                        raise InvalidLedger(
                            f"the event of {operation.op} at {format_instant(operation.stamp)} was erased, "
                            "so this history cannot run again; import the ledger instead"
                        )
                    yield batch.namespace, _event(operation)


def _event(operation: Operation) -> dict[str, Any]:
    event: dict[str, Any] = {"recorded_at": operation.stamp, **(operation.event or {})}
    result = operation.result or {}
    if result.get("created") and operation.wrote.facts:
        event["id"] = result["id"]
    return event
