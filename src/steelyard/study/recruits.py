"""People who come from elsewhere: who arrived, who left again, how much each may do, and dealings with a platform."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from steelyard.store.events import Event


@dataclass(frozen=True, slots=True)
class Arrival:
    """One visit from a panel: who came, in the panel's own ids. `at` is in microseconds since 1970, UTC."""

    participant: str
    study: str
    session: str
    at: int = 0


@dataclass(frozen=True, slots=True)
class Note:
    """One step of the dealings with a platform, as the log keeps it."""

    at: int
    what: str
    data: dict[str, Any]


class Recruits:
    """What the log says of people who were recruited; a part of the ledger."""

    def __init__(self) -> None:
        self.arrivals: dict[str, list[Arrival]] = {}
        """The visits of each annotator that came from a panel, in order."""
        self.gone: dict[str, str] = {}
        """Annotators who gave their place back on the platform, and how."""
        self.quotas: dict[str, int] = {}
        """How many tasks an annotator may have, where it is not as for everybody."""
        self.notes: list[Note] = []
        """The dealings with a platform, in order."""

    def apply(self, event: Event) -> None:
        """Take in an event of one of the kinds below."""
        annotator, data = str(event.annotator), event.data
        if event.kind == "arrived":
            visit = Arrival(annotator, data["study"], data["session"], event.at)
            self.arrivals.setdefault(annotator, []).append(visit)
            # Another visit is another place, whatever became of the last.
            self.gone.pop(annotator, None)
        elif event.kind == "left":
            self.gone[annotator] = data["reason"]
        elif event.kind == "back":
            self.gone.pop(annotator, None)
        elif event.kind == "quota":
            self.quotas[annotator] = data["tasks"]
        else:
            self.notes.append(Note(event.at, data["what"], data))

    def knows(self, annotator: str, study: str, session: str) -> bool:
        """Whether this very visit is in the log."""
        return any((visit.study, visit.session) == (study, session) for visit in self.arrivals.get(annotator, ()))


def without_participant(step: dict[str, Any], name: str, instead: str) -> dict[str, Any]:
    """Return a step of the dealings that does not name a participant; the same object where it did not.

    Of bonuses the amount stays, under `instead` with a number: the books must add up.
    """
    if step.get("participant") == name:
        return {"what": "forgotten"}
    if name not in step.get("amounts", {}):
        return step
    number = 1 + sum(known.startswith(instead) for known in step["amounts"])
    hidden = {
        part: {f"{instead} {number}" if known == name else known: amount for known, amount in step[part].items()}
        for part in ("amounts", "before")
    }
    return {**step, **hidden}


def with_pseudonyms(kind: str, data: dict[str, Any], called: Callable[[str], str]) -> dict[str, Any]:
    """Return what an event about recruited people says, with everybody's ids, and those of their visits, renamed."""
    if kind == "arrived":
        return {**data, "session": called(data["session"])}
    if kind != "crowd":
        return data
    changed: dict[str, Any] = {key: called(data[key]) for key in ("participant", "submission") if key in data}
    for part in ("amounts", "before"):
        if part in data:
            changed[part] = {called(name): amount for name, amount in data[part].items()}
    return {**data, **changed}
