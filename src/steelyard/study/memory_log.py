"""A study's log in memory, for simulated studies: the events and the state folded from them, without a database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from steelyard.study.config import Stage
from steelyard.study.events import Event, Payload
from steelyard.study.state import StudyState


class MemoryLog:
    """Events in a list, with the study's state. Its events have no stored text and no digest."""

    def __init__(self, stages: tuple[Stage, ...]) -> None:
        self.state = StudyState(stages)
        self._events: list[Event] = []

    def append(
        self, payload: Payload, *, at: int, annotator: str | None = None, judgment_id: str | None = None
    ) -> Event:
        """Add an event and fold it into the state."""
        event = Event(len(self._events) + 1, at, annotator, judgment_id, payload, "", "")
        self.state.apply(event)
        self._events.append(event)
        return event

    def last_seq(self) -> int:
        """Return the number of the last event."""
        return len(self._events)

    def events(self, kinds: Iterable[str] | None = None, *, until: int | None = None) -> Iterator[Event]:
        """Yield the events of these kinds, or all of them, in order, up to event `until`."""
        events = islice(self._events, until)
        if kinds is None:
            return events
        names = frozenset(kinds)
        return (event for event in events if event.kind in names)
