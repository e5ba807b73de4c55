"""One fact through time, as text: its history, and where it came from."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence

from rich import box
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from supersede.cli.printing import console, line, name, paragraph, plain, span
from supersede.models import Fact
from supersede.periods import Period, format_short
from supersede.timelines import Change, Diff, Evidence, History, HistoryEdge, Lineage, LineageFact

# A chain can be dozens of facts long; further in, a claim would have no room left.
_DEEPEST_INDENT = 8


def print_fact(fact: Fact) -> None:
    """One fact, each thing that was said of it on a line."""
    out = console()
    paragraph(out, _headline(fact))
    said = {
        "id": fact.id,
        "also known as": ", ".join(ref for ref in fact.refs if ref != fact.ref),
        "namespace": fact.namespace,
        "kind": fact.kind,
        "trust": fact.trust,
        "subject": fact.subject,
        "predicate": fact.predicate,
        "object": fact.object,
        "data": json.dumps(fact.data, ensure_ascii=False) if fact.data else None,
        "asserted": format_short(fact.asserted) if fact.asserted else None,
        "recorded": format_short(fact.recorded),
        "sources": ", ".join(fact.sources),
        "supersedes": ", ".join(f"{name(edge)} ({edge.reason})" for edge in fact.supersedes),
        "amends": ", ".join(map(name, fact.amends)),
        "amended by": ", ".join(map(name, fact.amended_by)),
    }
    for label, value in said.items():
        if value:
            out.print(Padding(Text(f"{label}: {line(value)}"), (0, 0, 0, 2), expand=False))


def print_history(found: History) -> None:
    """The fact, its versions as rectangles of the two times, its sources and its edges."""
    out = console()
    paragraph(out, _head(found))
    versions = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), header_style="dim", leading=1)
    for heading in ("valid", "known", "opened by", "closed by"):
        versions.add_column(heading, overflow="fold")
    for version in found.versions:
        versions.add_row(
            _bounds(version.valid), _bounds(version.known), version.opened_by or "", version.closed_by or ""
        )
    out.print(versions)
    for label, lines in (
        ("sources", [_evidence(each) for each in found.evidence]),
        ("supersedes", [_edge(each) for each in found.supersedes]),
        ("superseded by", [_edge(each) + _again(each, found) for each in found.superseded_by]),
        ("amends", [_amendment(each) for each in found.amends]),
        ("amended by", [_amendment(each) for each in found.amended_by]),
    ):
        if lines:
            out.print(Text(label, style="bold"))
            for each in lines:
                out.print(Padding(Text(each), (0, 0, 0, 2), expand=False))


def print_lineage(found: Lineage) -> None:
    """The facts up and down the chain, each below the one it is next to."""
    out = console()
    paragraph(out, _head(found))
    for label, facts in (("superseded by", found.descendants), ("supersedes", found.ancestors)):
        if facts:
            out.print(Text(f"\n{label}", style="bold"))
            for row in _rows(facts, found.fact.id):
                out.print(row)
    if not found.ancestors and not found.descendants:
        out.print("It supersedes nothing, and nothing supersedes it.")


def print_diff(found: Diff) -> None:
    """Per fact what it gained and lost between the two instants, in the order of the first change."""
    out = console()
    at = f", about {format_short(found.valid_at)}" if found.valid_at else ""
    between = f"from {format_short(found.known_from)} to {format_short(found.known_to)}"
    out.print(Text(f"what was believed otherwise, {between}{at}", style="bold"))
    if not found.changes:
        out.print("nothing")
    for change in found.changes:
        claim = line(change.claim) if change.claim is not None else "(erased)"
        paragraph(out, Text.assemble("\n", (name(change), "bold"), f"  {claim}"))
        for each in _differences(change):
            out.print(Padding(each, (0, 0, 0, 2), expand=False))


def _differences(change: Change) -> Iterator[Text]:
    for sign, periods, style in (("+", change.gained, "green"), ("-", change.lost, "red")):
        for period in periods:
            yield Text(f"{sign} {span(period)}", style=style)
    for edge in change.superseded_by:
        yield Text(f"superseded by {name(edge)} ({edge.reason})")


def _head(found: History | Lineage) -> Text:
    fact = found.fact
    if found.erased:
        return Text.assemble((name(fact), "bold"), (f"  erased {format_short(found.erased)}", "cyan"))
    return _headline(fact)


def _headline(fact: Fact) -> Text:
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
            line(fact.claim or "(erased)"),
        )
        yield Padding(row, (0, 0, 0, 2 * min(fact.depth - 1, _DEEPEST_INDENT)), expand=False)


def _bounds(period: Period) -> str:
    start, end = (format_short(bound) if bound else None for bound in period)
    return f"{start or '?'} –" + (f"\n{end}" if end else "")


def _evidence(each: Evidence) -> str:
    asserted = f" asserted {format_short(each.asserted)}," if each.asserted else ""
    inherited = f", taken over from {name(each.inherited_from)}" if each.inherited_from else ""
    return f"{line(each.source)} {asserted} recorded {format_short(each.recorded)}{inherited}"


def _edge(edge: HistoryEdge) -> str:
    taken = ", ".join(span(period) for period in edge.taken)
    lost = f"took {taken}, " if taken else ""
    return f"{name(edge)} ({edge.reason}): {lost}recorded {format_short(edge.recorded)}"


def _again(edge: HistoryEdge, found: History) -> str:
    """What the edge took and the fact holds once more."""
    held = [
        Period(max(starts, default=None), min(ends, default=None))
        for taken in edge.taken
        for version in found.versions
        if version.known.end is None and version.known.start and version.known.start > edge.recorded
        for starts in [[bound for bound in (taken.start, version.valid.start) if bound]]
        for ends in [[bound for bound in (taken.end, version.valid.end) if bound]]
        if not starts or not ends or max(starts) < min(ends)
    ]
    return f"; believed again: {', '.join(map(span, held))}" if held else ""


def _amendment(edge: HistoryEdge) -> str:
    return f"{name(edge)}, recorded {format_short(edge.recorded)}"
