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

from rich.console import Console
from rich.text import Text

from supersede.cli.ending import in_options
from supersede.models import Fact, Related
from supersede.periods import Period, format_instant, format_short
from supersede.results import Recorded

if TYPE_CHECKING:
    from pydantic import BaseModel

    from supersede.doctor import Finding
    from supersede.models import Verification
    from supersede.scrubbing import Scrubbed
    from supersede.spaces import EmbeddingSpace, Moved

# Where nobody looks on, a line may be long: grep finds a ref that is not broken in two.
PIPE_WIDTH = 200
_BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Leave it to the command, whose exit status tells of it; rich would exit by itself."""
        raise BrokenPipeError


def console() -> Console:
    """Where results go: as wide as the terminal, or as ``COLUMNS`` says."""
    width = None if sys.stdout.isatty() or os.environ.get("COLUMNS") else PIPE_WIDTH
    return _Console(file=sys.stdout, highlight=False, markup=False, emoji=False, width=width)


def paragraph(out: Console, text: Text) -> None:
    """Print a text, in lines as wide as the terminal, or in one where nobody looks on."""
    out.print(text, soft_wrap=not out.is_terminal and not os.environ.get("COLUMNS"))


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


def recorded(result: Recorded) -> None:
    """What a write did, in a few lines."""
    out = console()
    out.print(Text(_deed(result)))
    for cut in result.supersedes:
        out.print(
            Text(f"  supersedes {name(cut)} ({cut.reason}), which loses {_spans(cut.taken) or 'nothing'}")
        )
    for other in result.amends:
        out.print(Text(f"  amends {name(other)}"))
    for given in result.given_back:
        out.print(Text(f"  gives back to {name(given)}: {_spans(given.valid)}"))
    if result.created and result.embedded is False and not result.repeated:
        out.print(Text("  without a vector: words alone will find it", style="yellow"))
    if result.truncated:
        out.print(Text("  longer than its model reads: its vector knows the beginning", style="yellow"))
    if result.notice:
        out.print(Text(f"  {plain(result.notice)}", style="magenta"))


def erased(result: Recorded) -> None:
    """What an erasure did, with its certificate."""
    recorded(result)
    out, certificate = console(), result.certificate
    if certificate is None:
        return
    out.print(Text("certificate", style="bold"))
    for label, value in (
        ("namespace", certificate.namespace),
        ("fact", certificate.fact_id),
        ("erased at", format_instant(certificate.erased_at)),
        ("digest", certificate.digest),
    ):
        out.print(Text(f"  {label}: {plain(value)}"))
    counts = ", ".join(
        f"{count} {kind.replace('_', ' ')}" for kind, count in certificate.destroyed.items() if count
    )
    paragraph(out, Text(f"  destroyed: {counts}"))
    out.print(Text("what remains", style="bold"))
    for sentence in certificate.remains:
        paragraph(out, Text(f"  {sentence}"))


def scrubbed(result: Scrubbed) -> None:
    """What a scrub rewrote, and what it could not."""
    out = console()
    out.print(Text(f"rewritten: {', '.join(result.tables)}"))
    if not result.statistics:
        paragraph(
            out,
            Text(
                "The planner's statistics may hold values still: this user may not clear them. Have the "
                "database's owner, or a superuser, run it.",
                style="yellow",
            ),
        )
    if not result.checkpointed:
        out.print(Text("The old files go with the next checkpoint.", style="yellow"))


def _deed(result: Recorded) -> str:
    what = plain(result.name or "") if result.id is None else name(result)
    if result.repeated:
        now = {True: ", and is believed now", False: ", and is not believed now", None: ""}
        state = now[result.believed] if result.id else ""
        return f"{what} was recorded by this call before{state}; nothing written"
    if result.verb == "declare_predicate":
        return f"predicate {what} holds {result.cardinality}"
    if result.verb in ("end", "retract"):
        done = "ended" if result.verb == "end" else "retracted"
        return f"{done} {what}, which loses {_spans(result.taken) or 'nothing'}"
    if result.verb == "erase":
        return f"erased {what}, which loses {_spans(result.taken) or 'no validity'}"
    if result.verb == "lift_erasure":
        return f"what {what} said may be recorded anew"
    if result.verb == "cite":
        return f"sources added to {what}"
    held = _spans(result.valid)
    if result.verb == "reinstate":
        return f"reinstated {what}, valid {held}" if held else f"{what} is believed there already"
    if not result.created:
        return f"{what} is there already" + (f", and now also valid {held}" if held else "")
    return f"recorded {what}, valid {held or 'at no time'}"


def _spans(periods: Iterable[Period]) -> str:
    return ", ".join(span(period) for period in periods)


def embedded(count: int) -> None:
    """How many vectors were computed."""
    console().print(f"{count:,} vectors computed" if count else "no fact lacks its vector")


def spaces(found: Sequence[EmbeddingSpace]) -> None:
    """The embedding spaces, the active one marked, each with its counts."""
    out = console()
    if not found:
        out.print("no embedding space: words alone rank")
    for space in found:
        state = "  active" if space.active else ""
        paragraph(out, Text.assemble((plain(space.model), "bold"), (state, "green")))
        thresholds = f"min-similarity {space.min_similarity:g}, near-duplicate {space.near_duplicate:g}"
        out.print(Text(f"  {space.dimensions} dimensions, {thresholds}"))
        for namespace, filled in space.namespaces.items():
            lacking = f", {filled.missing:,} without" if filled.missing else ""
            out.print(Text(f"  {plain(namespace)}: {filled.embedded:,} facts with a vector{lacking}"))


def moved(done: Moved) -> None:
    """What a move of embeddings did."""
    if done.switched:
        said = f"{plain(done.model)} is the active space now"
        said += f" (before: {plain(done.previous)})" if done.previous else ""
        said += f"; {done.filled:,} vectors computed"
        console().print(Text(said))
    if done.notice:
        console().print(Text(in_options(done.notice)))


def imported(counts: dict[str, int], source: str) -> None:
    """What an import did."""
    said = f"{source}: {counts['recorded']:,} event{'' if counts['recorded'] == 1 else 's'} recorded"
    if counts["repeated"]:
        said += f", {counts['repeated']:,} were there already"
    if counts["unembedded"]:
        said += f", {counts['unembedded']:,} without a vector"
    console().print(Text(said))


_VERDICTS = {
    "equal": "the same answer",
    "erased": "the same but for facts erased since",
    "approximate": "ranked approximately then; asked exactly now",
    "space_gone": "its embedding space is not registered here, so it cannot be asked again",
    "rules_changed": "another answer: the rules of this package changed since",
    "different": "ANOTHER ANSWER, which must not happen",
}
_STYLES = {"equal": "green", "erased": "yellow", "approximate": "yellow", "different": "bold red"}


def verified(results: Iterable[tuple[str, str | None, Verification]]) -> None:
    """Per answer whether it still stands."""
    out = console()
    for where, query, result in results:
        said = Text.assemble((f"{result.outcome:15}", _STYLES.get(result.outcome, "red")), plain(where))
        if query:
            said.append(f"  {line(query)}", style="dim")
        paragraph(out, said)
        if result.outcome != "equal":
            out.print(Text(f"{'':15}{_VERDICTS[result.outcome]}"))
        if result.differences:
            out.print(Text(f"{'':15}differs in: {', '.join(result.differences)}"))


_MARKS = {"ok": "green", "warn": "yellow", "fail": "bold red", "unknown": "dim"}


def findings(found: Iterable[Finding]) -> None:
    """What a look at the database found, and what to do about it."""
    out = console()
    for finding in found:
        paragraph(
            out,
            Text.assemble(
                (f"{finding.state:8}", _MARKS[finding.state]),
                (f"{finding.name:12}", "bold"),
                plain(finding.said),
            ),
        )
        if finding.advice:
            paragraph(out, Text(f"{'':20}{plain(finding.advice)}"))
