"""The study's state as a fold over its log: items, how far each stage is, who has done what."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from math import inf
from typing import Any

from steelyard.designs.progress import Progress
from steelyard.errors import StoreError
from steelyard.records import Item
from steelyard.store.events import Event
from steelyard.study.config import Stage


@dataclass(frozen=True, slots=True)
class OutTask:
    """A task that is out, or came back unanswered: a late answer may still arrive."""

    annotator: str
    stage: int
    items: tuple[int, ...]
    slot: int | None
    released: bool = False


class Ledger:
    """What the log adds up to. `apply` takes events in order; equal logs give equal ledgers."""

    def __init__(self, stages: tuple[Stage, ...]) -> None:
        self.seq = 0
        self.items: list[Item] = []
        self.code: dict[str, int] = {}
        self.config: dict[str, Any] = {}
        self.settled_at: float = inf
        """The event from which on the configuration must not change: it is open, and built on what it was."""
        self.stages = stages
        self.progress = [Progress(0, stage.design.capacity) for stage in stages]
        self.tasks_of: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self._out: dict[str, OutTask] = {}

    def apply(self, event: Event) -> None:
        """Take in the next event."""
        if event.seq != self.seq + 1:
            raise StoreError(
                f"the log jumps from event {self.seq} to {event.seq}.", "Restore the database from a backup."
            )
        handle = getattr(self, f"_{event.kind}", None)
        if handle is None:
            raise StoreError(
                f"event {event.seq} is of a kind this Steelyard does not know ('{event.kind}').",
                "Upgrade Steelyard: pip install -U steelyard.",
            )
        handle(event)
        self.seq = event.seq

    def _config(self, event: Event) -> None:
        if event.seq > self.settled_at and event.data["config"] != self.config.get("config"):
            raise StoreError("the study's configuration was changed by someone else.", "Open the study anew.")
        self.config = event.data

    def _items(self, event: Event) -> None:
        new = [item_from_data(data) for data in event.data["items"]]
        for item in new:
            if item.id in self.code:
                self.items[self.code[item.id]] = item
            else:
                self.code[item.id] = len(self.items)
                self.items.append(item)
        for progress in self.progress:
            progress.add_items(len(self.items) - progress.n_items)

    def _picked(self, event: Event) -> None:
        annotator, data = str(event.annotator), event.data
        stage = data["stage"]
        items = self._codes(data["items"])
        out = OutTask(annotator, stage, items, data["slot"])
        self._out[str(event.judgment_id)] = out
        self.progress[stage].picked(annotator, items, out.slot)
        self.tasks_of[annotator] += 1

    def _judgment(self, event: Event) -> None:
        self.counts["judgments"] += 1
        self.counts["late"] += bool(event.data.get("late"))
        out = self._out.pop(str(event.judgment_id), None)
        if out is None:
            self._imported(event)
            return
        progress = self.progress[out.stage]
        if out.released:
            progress.reclaimed(out.annotator, out.items, out.slot)
            self.tasks_of[out.annotator] += 1
        progress.answer(out.items, out.slot)

    def _imported(self, event: Event) -> None:
        self.counts["imported"] += 1
        stage, annotator = event.data["stage"], event.annotator or ""
        items, slot = self._codes(event.data["items"]), event.data["slot"]
        self.progress[stage].picked(annotator, items, slot)
        self.progress[stage].answer(items, slot)
        self.tasks_of[annotator] += 1

    def _renewed(self, event: Event) -> None:
        """Leases are in the table of tasks; nothing hangs on them here."""

    def _revision(self, event: Event) -> None:
        self.counts["revisions"] += 1

    def _flag(self, event: Event) -> None:
        self.counts["flags"] += 1

    def _skip(self, event: Event) -> None:
        self.counts["skips"] += 1
        self._release(str(event.judgment_id))

    def _expired(self, event: Event) -> None:
        self.counts["expired"] += 1
        out = self._release(str(event.judgment_id))
        # Who skips a task does not want it again; whose time ran out may well.
        self.progress[out.stage].forget(out.annotator, out.items)

    def _release(self, judgment_id: str) -> OutTask:
        out = self._out[judgment_id]
        self._out[judgment_id] = OutTask(out.annotator, out.stage, out.items, out.slot, released=True)
        self.progress[out.stage].released(out.items, out.slot)
        self.tasks_of[out.annotator] -= 1
        return out

    def _codes(self, ids: list[str]) -> tuple[int, ...]:
        return tuple(self.code[name] for name in ids)


def item_to_data(item: Item) -> dict[str, Any]:
    """Return what the log keeps of an item: the fields that are set."""
    return {key: value for key, value in asdict(item).items() if value is not None and value != ()}


def item_from_data(data: dict[str, Any]) -> Item:
    """Build an item from what the log keeps of it."""
    return Item(**{**data, "tags": tuple(data.get("tags", ()))})
