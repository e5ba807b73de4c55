"""Random histories of every verb in a small universe, called in SQL over one connection."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import psycopg

REFUSALS = ("SU001", "SU004", "SU005", "SU006", "SU007", "SU008", "SU013", "SU017")
"""What a verb may say to a call that was drawn at random."""

State = dict[str, str]
"""Per fact that is believed anywhere, what it holds."""


class Drawn:
    """Draws calls for one namespace, makes them, and looks at what is believed there."""

    def __init__(self, connection: psycopg.Connection[Any], namespace: str, seed: int) -> None:
        self._connection = connection
        self._namespace = namespace
        self._random = Random(seed)
        self._refs: list[str] = []
        self.stamps: list[str] = []

    def one(self, statement: str, *parameters: Any) -> Any:
        row = self._connection.execute(statement, parameters).fetchone()
        assert row is not None
        return row[0]

    def write(self, verb: str, event: dict[str, Any], *, actor: str = "someone") -> dict[str, Any] | None:
        """The result of a verb; None where it refuses."""
        try:
            done = self.one(
                f'select supersede."{verb}"(%s::jsonb, %s, %s)', json.dumps(event), self._namespace, actor
            )
        except psycopg.Error as error:
            if error.sqlstate not in REFUSALS:
                raise
            return None
        if done.get("ref") and done["ref"] not in self._refs:
            self._refs.append(done["ref"])
        if "stamp" in done and not done["repeated"]:
            self.stamps.append(done["stamp"])
        return done

    def step(self, *, undo: bool = True, actor: str = "someone") -> dict[str, Any] | None:
        """A random call; its result, or None where it was refused."""
        verbs = ["remember"] * 6 + ["supersede"] * 6 + ["end"] * 3 + ["retract"] * 3 + ["reinstate"] * 2
        verbs += ["amend", "cite"] + (["undo"] * 4 if undo and self.stamps else [])
        verb = self._random.choice(verbs) if len(self._refs) > 1 else "remember"
        return self.write(verb, getattr(self, f"_{verb}")(), actor=actor)

    def undo(self, stamp: str, *, actor: str = "undoer") -> dict[str, Any]:
        """Undo one operation; what became of it."""
        done = self.write("undo", {"stamp": stamp, "dry_run": False}, actor=actor)
        assert done is not None
        (operation,) = done["operations"]
        return dict(operation)

    def state(self, known_at: str | None = None) -> State:
        """What is believed now, or was as known at an instant."""
        rows = self._connection.execute(
            "select fact_id::text, range_agg(valid_time)::text from supersede.fact_version "
            "where namespace = %s and (%s::timestamptz is null and is_open or tx_time @> %s::timestamptz) "
            "group by fact_id",
            (self._namespace, known_at, known_at),
        )
        return dict(rows.fetchall())

    # -- what is drawn

    def _often(self, percent: int) -> bool:
        return self._random.randrange(100) < percent

    def _bounds(self, *names: str) -> dict[str, str]:
        start, end = sorted(self._random.sample(range(1, 25), 2))
        found = {names[0]: f"2024-01-{start:02}", names[1]: f"2024-01-{end:02}"}
        return {name: at for name, at in found.items() if self._often(55)}

    def _fact(self) -> str:
        return self._random.choice(self._refs[-6:] if self._often(60) else self._refs)

    def _olds(self) -> list[str]:
        return [self._fact() for _ in range(self._random.choice([1, 1, 2]))]

    def _content(self) -> dict[str, Any]:
        value = self._random.choice(["lima", "quito", "rome"])
        found: dict[str, Any] = {"claim": f"it is {value}", "ref": f"r{len(self._refs)}", "over_trust": True}
        if self._often(60):
            predicate = self._random.choice(["hq", "hq", "tag"])
            found |= {"subject": "acme", "predicate": predicate, "object": value}
        if self._often(30):
            found["trust"] = self._random.choice(["summary", "verbatim"])
        if self._often(30):
            found["sources"] = [self._random.choice(["s0", "s1"])]
        return found | self._bounds("valid_from", "valid_to")

    def _remember(self) -> dict[str, Any]:
        return self._content()

    def _supersede(self) -> dict[str, Any]:
        reason = self._random.choice(["change", "correction", "refinement", "duplicate"])
        event: dict[str, Any] = {"old": self._olds(), "reason": reason, "over_trust": True}
        if self._often(30):
            event["if_not_current"] = "link"
        if self._often(40):
            return event | {"by": self._fact(), **self._bounds("valid_from", "valid_to")}
        return event | self._content()

    def _amend(self) -> dict[str, Any]:
        return {"old": self._olds(), **self._content()}

    def _end(self) -> dict[str, Any]:
        return {"ref": self._fact(), **self._bounds("when", "until")}

    def _retract(self) -> dict[str, Any]:
        return {"ref": self._fact(), "give_back": self._often(60)}

    def _reinstate(self) -> dict[str, Any]:
        return {"ref": self._fact(), **self._bounds("valid_from", "valid_to")}

    def _cite(self) -> dict[str, Any]:
        return {"ref": self._fact(), "sources": [self._random.choice(["s2", "s3"])]}

    def _undo(self) -> dict[str, Any]:
        return {"stamp": self._random.choice(self.stamps[-8:]), "dry_run": False}
