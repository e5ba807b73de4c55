"""From ranked rows to an answer: groups of near-duplicates, counts, outcome, notice. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
import numpy.typing as npt

from supersede.contrast import contrast, fold_claim
from supersede.models import Basis, Fact, Outcome, Related, Restatement, Trust, Withheld, WithheldFact
from supersede.periods import format_short

Vector = npt.NDArray[np.float32]

_TRUST_ORDER = {"verbatim": 2, "extracted": 1, "summary": 0}


@dataclass(frozen=True)
class Candidate:
    """A current fact in the order of its score, with its folded parts and its unit vector."""

    fact: Fact
    subject_key: str | None
    predicate_key: str | None
    object_key: str | None
    vector: Vector | None


@dataclass
class Group:
    """Facts that say the same; the first leads."""

    members: list[Candidate] = field(default_factory=list)

    @property
    def leader(self) -> Candidate:
        """The one with the best score, at whose place the group stands."""
        return self.members[0]


def trusted(trust: Trust, at_least: Trust | None) -> bool:
    """Whether a fact's trust reaches the least that a question asks for."""
    return at_least is None or _TRUST_ORDER[trust] >= _TRUST_ORDER[at_least]


def cosine(a: Vector | None, b: Vector | None) -> float | None:
    """Cosine of two vectors, to six digits: more differs between machines. None where one is missing."""
    if a is None or b is None:
        return None
    return round(float(np.dot(a, b) / (np.linalg.norm(a) * np.linalg.norm(b))), 6)


def join_groups(groups: list[Group], candidate: Candidate, *, limit: int, threshold: float) -> bool:
    """Put a candidate into the groups that say the same, else let it lead one of its own.

    It joins where it repeats some member and contradicts none: one wording may lie too far from the
    leader's while it lies near another's, and no chain of small steps may end in a contradiction. Groups
    that it joins become one, where they do not contradict each other.

    :param threshold: the cosine from which two claims may be one.
    :returns: False where it would be leader ``limit + 1``: the answer is complete before it.
    """
    joined: Group | None = None
    for group in list(groups):
        if any(apart(member, candidate) for member in group.members) or not any(
            alike(member, candidate, threshold=threshold) for member in group.members
        ):
            continue
        if joined is None:
            joined = group
        elif not any(apart(a, b) for a in joined.members for b in group.members):
            joined.members.extend(group.members)
            groups.remove(group)
    if joined is not None:
        joined.members.append(candidate)
        return True
    if len(groups) == limit:
        return False
    groups.append(Group([candidate]))
    return True


def same_statement(a: Candidate, b: Candidate) -> bool:
    """Whether subject, predicate and object are all given and equal."""
    return None not in (a.subject_key, a.predicate_key, a.object_key) and (
        a.subject_key,
        a.predicate_key,
        a.object_key,
    ) == (b.subject_key, b.predicate_key, b.object_key)


def apart(a: Candidate, b: Candidate) -> bool:
    """Whether two facts say different things, however close their vectors.

    Given subjects that differ; one subject and predicate with different objects; or words in contrast.
    """
    if a.subject_key is not None and b.subject_key is not None:
        if a.subject_key != b.subject_key:
            return True
        if (
            a.predicate_key is not None
            and a.predicate_key == b.predicate_key
            and a.object_key is not None
            and b.object_key is not None
            and a.object_key != b.object_key
        ):
            return True
    return not same_statement(a, b) and contrast(a.fact.claim, b.fact.claim)


def alike(a: Candidate, b: Candidate, *, threshold: float) -> bool:
    """Whether two facts that are not :func:`apart` say the same.

    Their claims are equal after folding; or subject, predicate and object are; or their cosine reaches
    the threshold.
    """
    if same_statement(a, b) or fold_claim(a.fact.claim) == fold_claim(b.fact.claim):
        return True
    similarity = cosine(a.vector, b.vector)
    return similarity is not None and similarity >= threshold


def shown(group: Group) -> Candidate:
    """The member that stands for its group.

    One that supersedes something (a decision, not its echo), then the most trusted, then the one with
    most sources, the newest, the smallest id.
    """
    return min(
        group.members,
        key=lambda c: (
            not c.fact.supersedes,
            -_TRUST_ORDER[c.fact.trust],
            -len(c.fact.sources),
            -c.fact.recorded.timestamp(),
            c.fact.id,
        ),
    )


def entry(group: Group) -> Fact:
    """The shown member, saying how often and where it was restated."""
    chosen = shown(group)
    others = tuple(
        Restatement(id=c.fact.id, ref=c.fact.ref, source=c.fact.source)
        for c in group.members
        if c is not chosen
    )
    return chosen.fact.model_copy(update={"restated": others})


def duplicates_of(group: Group) -> list[WithheldFact]:
    """The members that stand behind the shown one."""
    chosen = shown(group)
    return [
        WithheldFact(
            id=c.fact.id,
            ref=c.fact.ref,
            claim=c.fact.claim,
            reason="near_duplicate",
            score=c.fact.score,
            duplicate_of=Related(id=chosen.fact.id, ref=chosen.fact.ref),
        )
        for c in group.members
        if c is not chosen
    ]


def count(reasons: Iterable[str]) -> Withheld:
    """Withheld facts by reason."""
    return Withheld(**Counter(reasons))


def outcome(*, answered: bool, withheld: Withheld, recorded: bool) -> Outcome:
    """Which of the four endings a question came to; a failure is an exception, never one of these."""
    if answered:
        return "answered"
    if not recorded:
        return "nothing_recorded"
    return "all_withheld" if withheld.total else "nothing_matched"


def notice(
    basis: Basis,
    *,
    outcome: Outcome,
    withheld: Withheld,
    firsts: Mapping[str, datetime | None],
    more: int = 0,
) -> str | None:
    """What a person needs to know about an answer, in a sentence or a few; None where it is plain.

    :param firsts: per namespace the stamp of its first fact.
    :param more: how many facts a limit left out.
    """
    said: list[str] = []
    if outcome == "nothing_recorded":
        said.extend(_nothing_recorded(basis, firsts))
    elif outcome == "all_withheld":
        reasons = ", ".join(f"{n} {reason}" for reason, n in withheld.nonzero().items())
        said.append(f"Everything that matched is withheld: {reasons}.")
    elif basis.known_at_said:
        newest = [head for head in basis.heads.values() if head is not None]
        if newest and basis.known_at > max(newest):
            said.append(
                f"Nothing was recorded between {format_short(max(newest))} and "
                f"{format_short(basis.known_at)}; answered as of the former."
            )
    if basis.question == "ask" and basis.no_vector:
        said.append(f"Words alone ranked this answer: {basis.no_vector}.")
    if withheld.unembedded:
        said.append(
            f"{withheld.unembedded} current fact(s) have no vector and no word in common with the "
            "question, so they could not be compared; fill_embeddings() computes what is missing."
        )
    if more:
        said.append(f"{more} more fact(s) follow; pass after= the last id for the next page.")
    return " ".join(said) or None


def _today(basis: Basis) -> str:
    if basis.valid_at is None:
        return "To ask what held in that period as it is known today, leave out known_at"
    at = format_short(basis.valid_at)
    return f'To ask what held at {at} as it is known today, pass valid_at="{at}"'


def _nothing_recorded(basis: Basis, firsts: Mapping[str, datetime | None]) -> list[str]:
    said = []
    for name, first in firsts.items():
        head = basis.heads.get(name)
        if first is None or head is None or first > head:
            said.append(f"Nothing has been recorded in namespace {name!r} yet.")
        else:
            said.append(
                f"Nothing was recorded in namespace {name!r} before {format_short(first)}. {_today(basis)}; "
                "to bring a history with its own recording times, use replay()."
            )
    return said
