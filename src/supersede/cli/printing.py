"""Results as text for people; programs take ``--json``.

Every text that comes from the store is printed as text: it can neither colour nor move the cursor.
"""

from __future__ import annotations

import json
import os
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from supersede.models import Answer, Edge, Fact, Recorded, Related, WithheldFact
from supersede.periods import Period, format_short

if TYPE_CHECKING:
    from pydantic import BaseModel

# Where nobody looks on, a line may be long: grep finds a ref that is not broken in two.
PIPE_WIDTH = 200
# Below this, the five columns of an answer are too narrow to read, and its parts stand in lines.
TABLE_WIDTH = 100
_BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def console() -> Console:
    """Where results go: as wide as the terminal, or as ``COLUMNS`` says."""
    width = None if sys.stdout.isatty() or os.environ.get("COLUMNS") else PIPE_WIDTH
    return Console(file=sys.stdout, highlight=False, markup=False, emoji=False, width=width)


def as_json(value: BaseModel | dict[str, Any] | list[Any]) -> None:
    """One JSON document: on one line for a program, indented for a person."""
    plain = value if isinstance(value, dict | list) else value.model_dump(mode="json")
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    indent = 2 if sys.stdout.isatty() else None
    print(json.dumps(plain, ensure_ascii=not utf8, indent=indent, allow_nan=False))


def plain(text: str) -> str:
    """A text without what would steer the terminal; line breaks stay."""
    return "".join(
        "\N{REPLACEMENT CHARACTER}"
        if (unicodedata.category(c) in {"Cc", "Cs"} and c != "\n") or c in _BIDI
        else c
        for c in text.expandtabs(4)
    )


def line(text: str) -> str:
    """A text in one line."""
    return " ".join(plain(text).split())


def name(fact: Related | Fact | Recorded) -> str:
    """What a person calls a fact by: its ref, else its id."""
    return plain(fact.ref or fact.id or "?")


def span(period: Period) -> str:
    """A period in words: from 2024-01-01, 2024-01-01 to 2024-03-01, until 2024-01-01, always."""
    start, end = (format_short(bound) if bound else None for bound in period)
    if start and end:
        return f"{start} to {end}"
    if start:
        return f"from {start}"
    return f"until {end}" if end else "always"


def moment(at: datetime | None) -> str:
    """An instant for a table: a date where it is midnight, else to the second."""
    return format_short(at.replace(microsecond=0)) if at is not None else ""


def answer(found: Answer, *, title: str, hint: bool = True) -> None:
    """An answer: its facts, what was withheld and why, and the notice.

    :param title: the question, or what else was asked.
    :param hint: whether to say how to see what was withheld.
    """
    out = console()
    parts: list[RenderableType] = [Text.assemble((line(title), "bold"), ("  " + _point(found), "cyan"))]
    if found.facts:
        parts.append(_table(found.facts) if out.width >= TABLE_WIDTH else _lines(found.facts))
    elif found.outcome == "nothing_matched":
        parts.append(Text("Nothing matched."))
    if found.withheld.total:
        more = "; --explain lists them" if hint and not found.withheld_facts else ""
        parts.append(Text(f"withheld: {_counts(found)}{more}", style="yellow"))
    if found.withheld_facts:
        parts.append(_withheld(found.withheld_facts))
    if found.notice:
        parts.append(Text(plain(found.notice), style="magenta"))
    out.print(Group(*parts))


def _point(found: Answer) -> str:
    if found.basis.known_at_said:
        if found.valid_at == found.known_at:
            return f"as of {moment(found.valid_at)}"
        return f"valid at {moment(found.valid_at)}, known at {moment(found.known_at)}"
    if found.valid_at == found.known_at:
        return "now"
    return f"valid at {moment(found.valid_at)}, as known now"


def _counts(found: Answer) -> str:
    counts = [f"{n:,} {reason.replace('_', ' ')}" for reason, n in found.withheld.nonzero().items()]
    return ", ".join(counts) + ("" if found.withheld_exact else ", or more")


def _table(facts: Sequence[Fact]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), header_style="dim", leading=1)
    table.add_column("", justify="right", style="dim", no_wrap=True)
    table.add_column("claim", overflow="fold", ratio=5)
    table.add_column("asserted", no_wrap=True)
    table.add_column("valid", no_wrap=True)
    table.add_column("source", overflow="fold", ratio=4)
    table.add_column("supersedes", overflow="fold", ratio=2, min_width=10)
    for number, fact in enumerate(facts, 1):
        table.add_row(
            str(number),
            Text.assemble(plain(fact.claim), "\n", (_aside(fact), "dim")),
            moment(fact.asserted),
            _valid(fact.valid),
            _source(fact),
            _edges(fact.supersedes),
        )
    return table


def _lines(facts: Sequence[Fact]) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(justify="right", style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for number, fact in enumerate(facts, 1):
        entry = Text(plain(fact.claim))
        entry.append(f"\n{_aside(fact)}", style="dim")
        valid = _valid(fact.valid).replace("\n", " ")
        entry.append(f"\nasserted {moment(fact.asserted)}, valid {valid}")
        if fact.source:
            entry.append(f"\n{_source(fact)}")
        if fact.supersedes:
            entry.append("\nsupersedes " + _edges(fact.supersedes).replace("\n", ", "))
        table.add_row(str(number), entry)
        table.add_row("", "")
    return table


def _aside(fact: Fact) -> str:
    said = [name(fact)]
    if fact.trust != "extracted":
        said.append(fact.trust)
    for label, others in (("amends", fact.amends), ("amended by", fact.amended_by)):
        if others:
            said.append(f"{label} {_few([name(other) for other in others], ', ')}")
    if fact.restated:
        said.append(f"restated {len(fact.restated)} times" if len(fact.restated) > 1 else "restated once")
    return " · ".join(said)


def _valid(period: Period | None) -> str:
    if period is None:
        return ""
    start = moment(period.start) if period.start else "?"
    return f"{start} –" + (f"\n{moment(period.end)}" if period.end else "")


def _source(fact: Fact) -> str:
    others = [source for source in fact.sources if source != fact.source]
    return line(fact.source or "") + (f" (+{len(others)})" if others else "")


def _edges(edges: Iterable[Edge]) -> str:
    return _few([_edge(edge) for edge in edges], "\n")


def _edge(edge: Edge) -> str:
    return name(edge) if edge.reason == "change" else f"{name(edge)} ({edge.reason})"


def _few(texts: Sequence[str], separator: str, most: int = 6) -> str:
    shown = texts if len(texts) <= most else [*texts[: most - 1], f"+{len(texts) - most + 1}"]
    return separator.join(shown)


def _withheld(facts: Sequence[WithheldFact]) -> RenderableType:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), header_style="dim")
    table.add_column("withheld", overflow="fold", ratio=5)
    table.add_column("because", overflow="fold", ratio=2)
    table.add_column("instead", overflow="fold", ratio=2)
    for fact in facts:
        instead = [_edge(edge) for edge in fact.superseded_by]
        if fact.duplicate_of is not None:
            instead.append(name(fact.duplicate_of))
        table.add_row(
            Text.assemble((name(fact), "dim"), f"  {line(fact.claim)}" if fact.claim else ""),
            fact.reason.replace("_", " "),
            _few(instead, ", "),
        )
    return table


def recorded(result: Recorded) -> None:
    """What a write did, in a few lines."""
    out = console()
    out.print(Text(_deed(result)))
    for cut in result.supersedes:
        taken = ", ".join(span(period) for period in cut.taken)
        loses = f"which loses {taken}" if taken else "which had nothing left to lose"
        out.print(Text(f"  supersedes {name(cut)} ({cut.reason}), {loses}"))
    for other in result.amends:
        out.print(Text(f"  amends {name(other)}"))
    if result.embedded is False:
        out.print(Text("  without a vector: words alone will find it", style="yellow"))
    if result.truncated:
        out.print(Text("  longer than its model reads: its vector knows the beginning", style="yellow"))


def _deed(result: Recorded) -> str:
    if result.repeated:
        now = "" if result.believed is None or result.id is None else (
            ", and is believed now" if result.believed else ", and is not believed now"
        )
        return f"{_what(result)} was recorded before by this call{now}; nothing written"
    if result.verb == "declare_predicate":
        return f"predicate {plain(result.name or '')} holds {result.cardinality}"
    if result.verb in ("end", "retract"):
        taken = ", ".join(span(period) for period in result.taken)
        done = "ended" if result.verb == "end" else "retracted"
        return f"{done} {name(result)}, which loses {taken}"
    if result.verb == "cite":
        return f"sources added to {name(result)}"
    held = ", ".join(span(period) for period in result.valid)
    if not result.created:
        return f"{name(result)} says so already" + (f"; it now also holds {held}" if held else "")
    return f"recorded {name(result)}" + (f", valid {held}" if held else ", valid at no time")


def _what(result: Recorded) -> str:
    return plain(result.name or "") if result.id is None else name(result)


def imported(counts: dict[str, int], source: str) -> None:
    """What an import did."""
    said = f"{source}: {counts['recorded']:,} events recorded"
    if counts["repeated"]:
        said += f", {counts['repeated']:,} were there already"
    if counts["unembedded"]:
        said += f", {counts['unembedded']:,} without a vector"
    console().print(Text(said))
