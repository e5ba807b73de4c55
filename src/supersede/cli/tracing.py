"""One fact through time, as text: its history, and where it came from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from rich import box
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from supersede.cli.printing import console, line, name, plain, span
from supersede.models import Fact, History, HistoryEdge, Lineage, LineageFact
from supersede.periods import format_short

# A chain can be dozens of facts long; further in, a claim would have no room left.
_DEEPEST_INDENT = 8


def history(found: History) -> None:
    """The fact, its versions as rectangles of the two times, its sources and its edges."""
    out = console()
    out.print(_head(found.fact))
    versions = _table("valid", "known", "opened by", "closed by")
    for version in found.versions:
        versions.add_row(
            span(version.valid), span(version.known), version.opened_by or "", version.closed_by or ""
        )
    out.print(versions)
    if found.evidence:
        sources = _table("source", "asserted", "recorded", "taken over from")
        for each in found.evidence:
            sources.add_row(
                line(each.source),
                format_short(each.asserted) if each.asserted else "",
                format_short(each.recorded),
                name(each.inherited_from) if each.inherited_from else "",
            )
        out.print(sources)
    for label, edges in (("supersedes", found.supersedes), ("superseded by", found.superseded_by)):
        if edges:
            out.print(_edges(label, edges))


def lineage(found: Lineage) -> None:
    """The facts up and down the chain, each below the one it is next to."""
    out = console()
    out.print(_head(found.fact))
    for label, facts in (("superseded by", found.descendants), ("supersedes", found.ancestors)):
        if facts:
            out.print(Text(f"\n{label}", style="bold"))
            for row in _rows(facts, found.fact.id):
                out.print(row)
    if not found.ancestors and not found.descendants:
        out.print("It supersedes nothing, and nothing supersedes it.")


def _head(fact: Fact) -> RenderableType:
    now = f"valid {span(fact.valid)}" if fact.valid else "not valid now"
    return Text.assemble((name(fact), "bold"), f"  {plain(fact.claim)}  ", (now, "cyan"))


def _rows(facts: Sequence[LineageFact], root: str) -> Iterator[RenderableType]:
    """One row a fact, those next to it indented below it.

    Without recursion: a chain may be longer than Python's stack.
    """
    below = defaultdict(list)
    for fact in facts:
        below[fact.next_to.id].append(fact)
    waiting = list(reversed(below[root]))
    while waiting:
        fact = waiting.pop()
        waiting.extend(reversed(below[fact.id]))
        row = Table.grid(padding=(0, 1))
        row.add_column(no_wrap=True, style="dim", justify="right", min_width=3)
        row.add_column(no_wrap=True)
        row.add_column(overflow="fold")
        row.add_row(
            str(fact.depth),
            f"{name(fact)} ({fact.reason})",
            line(fact.claim or ""),
        )
        yield Padding(row, (0, 0, 0, 2 * min(fact.depth - 1, _DEEPEST_INDENT)))


def _edges(label: str, edges: Sequence[HistoryEdge]) -> Table:
    table = _table(label, "reason", "validity taken", "recorded")
    for edge in edges:
        taken = ", ".join(span(period) for period in edge.taken) or "none"
        table.add_row(name(edge), edge.reason, taken, format_short(edge.recorded))
    return table


def _table(*headings: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), header_style="dim")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table
