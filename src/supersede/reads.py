"""The reads, each over one connection that stays on one snapshot: from a basis to an answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime

import sqlalchemy as sa

from supersede import answering, facts, verifying
from supersede.adapters import vectors
from supersede.errors import FactNotFound, InvalidInput, InvalidInstant, SpaceGone
from supersede.facts import Head, Key
from supersede.models import (
    RULES,
    Answer,
    Basis,
    Fact,
    Ranking,
    Related,
    Verification,
    WithheldFact,
    WithheldReason,
)
from supersede.periods import format_instant
from supersede.queries import Question, Scope
from supersede.questions import Asked, Point

DEFAULT_MIN_SIMILARITY = 0.25
DEFAULT_NEAR_DUPLICATE = 0.92


def now(heads: Mapping[str, Head], clock: datetime) -> datetime:
    """The present: the clock, or the newest head where stamps have run ahead of it."""
    return max([clock, *(head.last for head in heads.values() if head.last is not None)])


def points(present: datetime, said: Point) -> tuple[datetime, datetime]:
    """The point of the two times that a question is about; what is not said is the present.

    :raises InvalidInstant: for a ``known_at`` that has not come yet.
    """
    valid_at, known_at = said
    if known_at is not None and known_at > present:
        raise InvalidInstant(
            f"known_at {format_instant(known_at)} lies in the future: what will be known then is not "
            f"known yet (now: {format_instant(present)})"
        )
    return valid_at or present, known_at or present


def scope_of(basis: Basis) -> Scope:
    """What a basis may see: per namespace, known up to its head and never past it."""
    seen = [(name, head) for name, head in sorted(basis.heads.items()) if head is not None]
    return Scope(
        [name for name, _ in seen],
        [min(basis.known_at, head) for _, head in seen],
        [head for _, head in seen],
    )


def ask(
    connection: sa.Connection,
    asked: Asked,
    *,
    point: Point,
    names: Sequence[str],
    own: str,
) -> Answer:
    """Answer a question about a point of the two times (or a period), over some namespaces.

    :param own: the store's namespace, which may not exist yet.
    :raises NamespaceNotFound: if another one does not exist.
    :raises InvalidInstant: for a ``known_at`` that has not come yet.
    """
    heads = facts.heads(connection, names, own=own)
    if asked.get("after") is not None:
        asked = {**asked, "after": _resolve_any(connection, names, asked["after"])}
    clock, text_search = facts.state(connection)
    valid_at, known_at = points(now(heads, clock), point)
    basis = Basis(
        heads={name: head.last for name, head in heads.items()},
        valid_at=None if asked.get("valid_during") else valid_at,
        known_at=known_at,
        known_at_said=point[1] is not None,
        text_search=text_search,
        **asked,
    )
    return answer(connection, basis, {name: head.first for name, head in heads.items()})


def _resolve_any(
    connection: sa.Connection, names: Sequence[str], wanted: tuple[str | None, str]
) -> tuple[str, str]:
    """Namespace and id of a fact that one of the namespaces knows by this name.

    :raises FactNotFound: if none does.
    :raises InvalidInput: if several do.
    """
    namespace, name = wanted
    found = []
    for each in names if namespace is None else [namespace]:
        with suppress(FactNotFound):
            found.append(facts.resolve(connection, each, name))
    if not found:
        raise FactNotFound(f"after: none of the namespaces has a fact with the id or ref {name!r}")
    if len(found) > 1:
        raise InvalidInput(f"after: several namespaces know a fact {name!r}; pass the fact itself")
    return found[0][0], str(found[0][1])


def ask_again(connection: sa.Connection, basis: Basis) -> Answer:
    """The answer of a basis.

    :raises OutOfSync: if this server does not hold what the basis saw.
    :raises SpaceGone: if the space of its vector is not registered here.
    """
    facts.require_seen(connection, basis.heads)
    heads = facts.heads(connection, list(basis.heads), own=None)
    return answer(connection, basis, {name: head.first for name, head in heads.items()})


def answer(connection: sa.Connection, basis: Basis, firsts: Mapping[str, datetime | None]) -> Answer:
    """The answer that a basis stands for; the same basis gives the same answer for ever.

    :param firsts: per namespace the stamp of its first fact.
    :raises SpaceGone: if the space of the basis's vector is not registered here.
    """
    return (_ask if basis.question == "ask" else _facts)(connection, basis, firsts)


def _ask(connection: sa.Connection, basis: Basis, firsts: Mapping[str, datetime | None]) -> Answer:
    scope = scope_of(basis)
    space = facts.space_of(connection, basis.space) if basis.space else None
    question = _question(basis, space)
    groups: list[answering.Group] = []
    dead: dict[Key, float] = {}
    distrusted: dict[Key, float] = {}
    order: dict[str, int] = {}
    for row, candidate in _in_order(connection, scope, question, basis):
        order[str(row.key[1])] = len(order)
        if candidate is None:
            dead[row.key] = row.score
        elif not answering.trusted(row.trust, basis.min_trust):
            distrusted[row.key] = row.score
        elif not answering.join_groups(
            groups,
            candidate,
            limit=basis.limit,
            threshold=(DEFAULT_NEAR_DUPLICATE if basis.near_duplicate is None else basis.near_duplicate),
        ):
            break
    withheld = [
        *_explained(connection, scope, list(dead), basis, scores=dead),
        *_named(connection, scope, list(distrusted), "below_trust", scores=distrusted),
        *(fact for group in groups for fact in answering.duplicates_of(group)),
        *_unembedded(connection, scope, question, basis),
        *_erased(connection, scope, basis),
    ]
    withheld.sort(key=lambda fact: order.get(fact.id, len(order)))
    return _finish(
        connection,
        basis,
        firsts,
        found=tuple(answering.entry(group) for group in groups),
        withheld=withheld,
        ranking="exact" if basis.vector else "words",
        short_by=basis.limit - len(groups),
    )


def _instant(basis: Basis) -> datetime:
    if basis.valid_at is None:
        raise InvalidInput("a ranked question is about an instant, not about a period")
    return basis.valid_at


def _in_order(
    connection: sa.Connection, scope: Scope, question: Question, basis: Basis
) -> Iterator[tuple[facts.RankedRow, answering.Candidate | None]]:
    """The ranking, best first; only what is current comes with its content."""
    for page in facts.ranked(connection, scope, question, filters=basis.filters, valid_at=_instant(basis)):
        current = [row for row in page if row.current]
        candidates = _candidates(connection, scope, current, basis, question.space_id)
        for row in page:
            yield row, candidates.get(row.key)


def _facts(connection: sa.Connection, basis: Basis, firsts: Mapping[str, datetime | None]) -> Answer:
    scope = scope_of(basis)
    known = facts.known_facts(connection, scope, filters=basis.filters, valid_at=basis.when)
    current = [row for row in known if row.current and not row.erased]
    erased = [row.key for row in known if row.current and row.erased]
    distrusted = [row.key for row in current if not answering.trusted(row.trust, basis.min_trust)]
    dead = [row.key for row in known if not row.current]
    hidden = set(distrusted)
    # A page that began behind a fact that was erased since still begins there.
    places = [row for row in known if row.current and (row.erased or row.key not in hidden)]
    start = _start_after([row.key for row in places], basis.after)
    shown = [row.key for row in places[start:] if not row.erased]
    page = shown[: basis.limit]
    loaded = facts.load(connection, scope, page, valid_at=basis.when, space_id=None)
    withheld = [
        *_explained(connection, scope, dead, basis, scores={}),
        *_named(connection, scope, distrusted, "below_trust", scores={}),
        *_named(connection, scope, erased, "erased", scores={}),
    ]
    return _finish(
        connection,
        basis,
        firsts,
        found=tuple(loaded[key] for key in page),
        withheld=withheld,
        ranking="none",
        more=len(shown) - len(page),
    )


def _start_after(keys: Sequence[Key], after: tuple[str, str] | None) -> int:
    if after is None:
        return 0
    return next((n + 1 for n, key in enumerate(keys) if (key[0], str(key[1])) == after), len(keys))


def _finish(
    connection: sa.Connection,
    basis: Basis,
    firsts: Mapping[str, datetime | None],
    *,
    found: tuple[Fact, ...],
    withheld: Sequence[WithheldFact],
    ranking: Ranking,
    short_by: int = 0,
    more: int = 0,
) -> Answer:
    counts = answering.count(fact.reason for fact in withheld)
    outcome = answering.outcome(
        answered=bool(found),
        withheld=counts,
        recorded=bool(found or withheld) or facts.any_known(connection, scope_of(basis)),
    )
    return Answer(
        valid_at=basis.valid_at,
        valid_during=basis.valid_during,
        known_at=basis.known_at,
        outcome=outcome,
        notice=answering.notice(basis, outcome=outcome, withheld=counts, firsts=firsts, more=more),
        facts=found,
        withheld=counts,
        withheld_facts=tuple(withheld) if basis.explain else (),
        ranking=ranking,
        short_by=short_by,
        basis=basis,
    )


def _question(basis: Basis, space: facts.Space | None) -> Question:
    vector = vectors.unpack(basis.vector) if basis.vector else None
    return Question(
        query=basis.query or "",
        text_search=basis.text_search,
        vector=None if vector is None else facts.vector_text(vector),
        space_id=space.id if space else None,
        cosine_weight=basis.cosine_weight,
        coverage_weight=basis.coverage_weight,
        min_similarity=(DEFAULT_MIN_SIMILARITY if basis.min_similarity is None else basis.min_similarity),
        lineage_credit=basis.lineage_credit,
    )


def _candidates(
    connection: sa.Connection,
    scope: Scope,
    rows: Sequence[facts.RankedRow],
    basis: Basis,
    space_id: int | None,
) -> dict[Key, answering.Candidate]:
    keys = [row.key for row in rows]
    loaded = facts.load(connection, scope, keys, valid_at=basis.when, space_id=space_id)
    folded = facts.folded(connection, keys)
    stored = facts.vectors(connection, scope, keys, space_id)
    names = facts.refs(connection, scope, [row.via for row in rows if row.via])
    candidates = {}
    for row in rows:
        fact = loaded[row.key].model_copy(
            update={
                "similarity": row.similarity,
                "score": row.score,
                "via": _related(names, (row.key[0], row.via)) if row.via else None,
            }
        )
        candidates[row.key] = answering.Candidate(fact, *folded[row.key], stored.get(row.key))
    return candidates


def _related(names: Mapping[Key, Sequence[str]], key: Key) -> Related:
    return Related(id=str(key[1]), ref=next(iter(names.get(key, ())), None))


def _unembedded(
    connection: sa.Connection, scope: Scope, question: Question, basis: Basis
) -> list[WithheldFact]:
    if question.space_id is None:
        return []
    keys = facts.unembedded(connection, scope, question, filters=basis.filters, valid_at=_instant(basis))
    return _named(connection, scope, keys, "unembedded", scores={})


def _erased(connection: sa.Connection, scope: Scope, basis: Basis) -> list[WithheldFact]:
    keys = facts.erased_current(connection, scope, filters=basis.filters, valid_at=_instant(basis))
    return _named(connection, scope, keys, "erased", scores={})


def _named(
    connection: sa.Connection,
    scope: Scope,
    keys: Sequence[Key],
    reason: WithheldReason,
    *,
    scores: Mapping[Key, float],
) -> list[WithheldFact]:
    """Withheld facts that nothing took: current, and kept back for a reason of their own."""
    names = facts.refs(connection, scope, [key[1] for key in keys])
    return [
        WithheldFact(
            id=str(key[1]), ref=next(iter(names.get(key, ())), None), reason=reason, score=scores.get(key)
        )
        for key in keys
    ]


def _explained(
    connection: sa.Connection,
    scope: Scope,
    keys: Sequence[Key],
    basis: Basis,
    *,
    scores: Mapping[Key, float],
) -> list[WithheldFact]:
    """Why each fact is withheld; with ``explain``, also its claim and what replaced it."""
    rows = facts.reasons(connection, scope, keys, valid_at=basis.when)
    if not basis.explain:
        return [
            WithheldFact.model_construct(id=str(row.key[1]), reason=row.reason, score=scores.get(row.key))
            for row in rows
        ]
    replaced = facts.taken_by(connection, scope, rows, valid_at=basis.when)
    titles = facts.titles(connection, scope, keys)
    return [
        WithheldFact(
            id=str(row.key[1]),
            ref=titles[row.key][0],
            claim=titles[row.key][1],
            reason=row.reason,
            score=scores.get(row.key),
            superseded_by=tuple(replaced.get(row.key, ())),
        )
        for row in rows
    ]


def verify(connection: sa.Connection, given: Answer) -> Verification:
    """Ask an answer's basis again and compare.

    :raises InvalidInput: for what is no answer.
    """
    if not isinstance(given, Answer):
        raise InvalidInput(f"an answer is needed, not {type(given).__name__}")
    try:
        again = ask_again(connection, given.basis)
    except SpaceGone:
        return Verification(outcome="space_gone")
    if again == given:
        return Verification(outcome="equal")
    differing = tuple(name for name in Answer.model_fields if getattr(again, name) != getattr(given, name))
    if verifying.explained_by_erasure(given, again, facts.erased_since(connection, scope_of(given.basis))):
        return Verification(outcome="erased", differences=differing)
    changed = "different" if given.basis.rules == RULES else "rules_changed"
    return Verification(outcome=changed, differences=differing)
