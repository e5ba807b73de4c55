"""Whether an answer that was asked again differs only by facts erased since. Pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from supersede.models import Answer, Fact, Withheld

_SAME = ("valid_at", "known_at", "ranking", "withheld_exact", "basis")


def explained_by_erasure(given: Answer, again: Answer, erased: Collection[str]) -> bool:
    """Whether erasing these facts, and nothing else, made one answer of another.

    What was shown and is not erased still stands, in its order and with its content, but for names and
    evidence of erased facts. Places that became free may be filled by what stood behind. A fact that leant
    on an erased one (for its score, or as one of its group) may stand elsewhere.

    :param erased: ids of facts that ``given`` could see and that were erased after it.
    """
    if not erased or any(getattr(given, name) != getattr(again, name) for name in _SAME):
        return False
    there = {fact.id: fact for fact in again.facts}
    stays = [fact for fact in given.facts if fact.id not in erased]
    loose = {fact.id for fact in stays if _leans(fact, erased)}
    # A group that lost a member may take in others, or fall apart; a full answer stopped before a fact that
    # may have been erased, and then looks on, where more is withheld and more joins the groups.
    full = given.basis.question == "ask" and given.short_by == 0
    touched = full or bool(loose) or len(stays) < len(given.facts)
    if touched:
        loose |= {
            f.id
            for f in stays
            if f.id in there and _names(f.restated) - set(erased) != _names(there[f.id].restated)
        }
    if any(
        _shape(fact, erased, loose=fact.id in loose) != _shape(there[fact.id], erased, loose=fact.id in loose)
        for fact in stays
        if fact.id in there
    ):
        return False
    firm = [fact.id for fact in stays if fact.id not in loose]
    standing = [fact.id for fact in again.facts if fact.id in set(firm)]
    return (
        standing == [fact_id for fact_id in firm if fact_id in there]
        and _filled(given, again, erased, loose)
        and _counted(given.withheld, again.withheld, erased, touched=touched)
    )


def _leans(fact: Fact, erased: Collection[str]) -> bool:
    return (fact.via is not None and fact.via.id in erased) or bool(_names(fact.restated) & set(erased))


def _names(facts: Collection[Any]) -> set[str]:
    return {fact.id for fact in facts}


def _shape(fact: Fact, erased: Collection[str], *, loose: bool) -> Fact:
    """A fact without the names and the evidence of erased ones; a loose one without its place."""

    def bare(others: Collection[Any]) -> tuple[Any, ...]:
        gone: dict[str, Any] = {"ref": None}
        return tuple(
            other.model_copy(update={**gone, "source": None} if hasattr(other, "source") else gone)
            if other.id in erased
            else other
            for other in others
        )

    place = {"score": None, "via": None, "restated": ()} if loose else {}
    return fact.model_copy(
        update={
            "supersedes": bare(fact.supersedes),
            "amends": bare(fact.amends),
            "amended_by": bare(fact.amended_by),
            **place,
        }
    )


def _filled(given: Answer, again: Answer, erased: Collection[str], loose: set[str]) -> bool:
    """Whether what is new stands in places that became free, and what is missing had to make room.

    A group of which the erased fact was the bond may need more places than it had.
    """
    there, before = _names(again.facts), _names(given.facts)
    taken_in = {other.id for fact in again.facts for other in fact.restated}
    new = [fact for fact in again.facts if fact.id not in before]
    freed = [fact for fact in given.facts if fact.id in erased or (fact.id in loose and fact.id not in there)]
    behind = {
        other.id
        for fact in given.facts
        if fact.id in erased or fact.id in loose
        for other in fact.restated
        if other.id not in erased
    }
    missing = [
        fact.id
        for fact in given.facts
        if fact.id not in erased and fact.id not in loose and fact.id not in there and fact.id not in taken_in
    ]
    gone_in = sum(fact.id in taken_in for fact in given.facts if fact.id not in there)
    if missing:
        firm = [fact.id for fact in given.facts if fact.id not in erased and fact.id not in loose]
        if again.short_by > 0 or len(missing) > len(new) or firm[-len(missing) :] != missing:
            return False
    return sum(fact.id not in behind for fact in new) <= len(freed) + gone_in


def _counted(given: Withheld, again: Withheld, erased: Collection[str], *, touched: bool) -> bool:
    """Whether the counts of what was withheld tell of no more than the erased facts."""
    more = {name: getattr(again, name) - getattr(given, name) for name in Withheld.model_fields}
    if not 0 <= more.pop("erased") <= len(erased):
        return False
    return touched or all(difference <= 0 for difference in more.values())
