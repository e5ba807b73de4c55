"""An answer as text: a table where there is room for one, else the same in lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich import box
from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from supersede.cli.ending import in_options
from supersede.cli.printing import console, line, moment, name, paragraph, plain, span
from supersede.models import Answer, Edge, Fact, WithheldFact
from supersede.periods import Period

# A table in which a claim has less room than this is hard to read: its parts stand in lines instead.
_CLAIM = 30
# As much of a source as has room of its own in a table; a longer one is broken.
_SOURCE = 44
# What the table's six columns have around them.
_FRAME = 17


def print_answer(found: Answer, *, title: str, hint: bool = True) -> None:
    """An answer: its facts, what was withheld and why, and the notice.

    :param title: the question, or what else was asked.
    :param hint: whether to say how to see what was withheld.
    """
    out = console()
    paragraph(out, Text.assemble((line(title), "bold"), ("  " + _point(found), "cyan")))
    if found.facts:
        widths = _widths(found.facts, out.width)
        out.print(_table(found.facts, widths) if widths else _lines(found.facts))
    elif found.outcome == "nothing_matched":
        out.print("Nothing matched.")
    if found.withheld.total:
        more = "; --explain lists them" if hint and not found.withheld_facts else ""
        out.print(Text(f"withheld: {_counts(found)}{more}", style="yellow"))
    if found.withheld_facts:
        out.print(_withheld(found.withheld_facts))
    if found.notice:
        paragraph(out, Text(in_options(plain(found.notice)), style="magenta"))


def _point(found: Answer) -> str:
    if found.valid_at is None:
        known = f"known at {moment(found.known_at)}" if found.basis.known_at_said else "as known now"
        return f"valid during {span(found.valid_during or Period(None, None))}, {known}"
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


class _Widths(NamedTuple):
    """The columns of an answer's table, in characters."""

    number: int
    claim: int
    asserted: int
    valid: int
    source: int
    supersedes: int


def _widths(facts: Sequence[Fact], width: int) -> _Widths | None:
    """Columns that show everything in a table of this width; None where that would be hard to read.

    A claim and a URI may be broken; dates and refs keep whole.
    """

    def longest(texts: Iterable[str], heading: str) -> int:
        lines = [part for text in texts for part in text.split("\n")]
        return max(cell_len(part) for part in [heading, *lines])

    number = len(str(len(facts)))
    asserted = longest((moment(fact.asserted) for fact in facts), "asserted")
    valid = longest((_held(fact) for fact in facts), "valid")
    supersedes = longest((_edges(fact.supersedes) for fact in facts), "supersedes")
    source = min(longest((_source(fact) for fact in facts), "source"), _SOURCE)
    claim = width - _FRAME - number - asserted - valid - supersedes - source
    enough = claim >= max(_CLAIM, *(cell_len(name(fact)) for fact in facts))
    return _Widths(number, claim, asserted, valid, source, supersedes) if enough else None


def _table(facts: Sequence[Fact], widths: _Widths) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), header_style="dim", leading=1)
    table.add_column("", justify="right", style="dim", min_width=widths.number)
    table.add_column("claim", overflow="fold", max_width=widths.claim)
    table.add_column("asserted", min_width=widths.asserted)
    table.add_column("valid", min_width=widths.valid)
    table.add_column("source", overflow="fold", width=widths.source)
    table.add_column("supersedes", overflow="fold", min_width=widths.supersedes)
    for number, fact in enumerate(facts, 1):
        table.add_row(
            str(number),
            Text.assemble(plain(fact.claim), "\n", (_aside(fact), "dim")),
            moment(fact.asserted),
            _held(fact),
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
        valid = ", ".join(_valid(period).replace("\n", " ") for period in fact.periods or (fact.valid,))
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


def _held(fact: Fact) -> str:
    return "\n".join(map(_valid, fact.periods or (fact.valid,)))


def _valid(period: Period | None) -> str:
    if period is None:
        return ""
    start = moment(period.start) or "?"
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
