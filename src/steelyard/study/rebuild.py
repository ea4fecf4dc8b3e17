"""The log alone is the study: write it out, and build the same study from it anywhere."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from steelyard.designs.base import Nothing
from steelyard.errors import DataError, StoreError
from steelyard.store import Event, Store, StoredTask, Writer
from steelyard.store.events import EMPTY_DIGEST, chained_digest, to_json
from steelyard.study.config import parse_config
from steelyard.study.ledger import Ledger
from steelyard.study.picking import Chosen, pick_next
from steelyard.study.study import Study


def write_log(study: Study, path: str | Path) -> int:
    """Write every event as a line of JSON, the whole log or nothing; return how many."""
    path = Path(path)
    count = 0
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", newline="\n", dir=path.parent, prefix=f".{path.name}-", delete=False
        ) as file:
            try:
                for event in study.events():
                    file.write(event.as_json() + "\n")
                    count += 1
                file.flush()
                os.fsync(file.fileno())
                Path(file.name).replace(path)
            except BaseException:
                Path(file.name).unlink()
                raise
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror}.", "Check the folder and its space.") from None
    return count


def read_log(path: str | Path) -> Iterator[Event]:
    """Read a log that `write_log` wrote."""
    path = Path(path)
    with path.open(encoding="utf-8") as file:
        yield from parse_log(file, path.name)


def parse_log(lines: Iterable[str], name: str) -> Iterator[Event]:
    """Read the lines of a log; `name` is the file's, for errors."""
    for number, line in enumerate(lines, start=1):
        try:
            yield Event(**json.loads(line))
        except (ValueError, TypeError) as error:
            raise DataError(
                f"this is not an event of a log: {error}.", "Export the log again.", file=name, line=number
            ) from None


def rebuild(events: Iterable[Event], folder: str | Path, database: str) -> Study:
    """Build a study from its log in an empty database; scores and leases come out the same.

    A log that was altered is refused: each event's digest covers all before it.
    """
    kept = list(unaltered(events))
    configs = [event.data["config"] for event in kept if event.kind == "config"]
    if not configs:
        raise DataError("the log has no configuration.", "Export the whole log of a study.")
    folder = Path(folder)
    config = parse_config(configs[-1])
    store = Store.open(database, config.name)
    try:
        with store.write() as writer:
            replay(kept, writer)
    except BaseException:
        store.close()
        raise
    return Study(folder, config, store)


def unaltered(events: Iterable[Event]) -> Iterator[Event]:
    """Pass a log on; refuse one that was altered, or of which events are missing."""
    previous = EMPTY_DIGEST
    for seq, event in enumerate(events, start=1):
        previous = chained_digest(
            previous, seq, event.at, event.kind, event.annotator, event.judgment_id, to_json(event.data)
        )
        if (seq, previous) != (event.seq, event.digest):
            raise StoreError(f"the log was altered at or before event {event.seq}.", "Use an unaltered copy.")
        yield event


def replay(events: Iterable[Event], writer: Writer) -> None:
    """Write a log into an empty study, and the tasks that follow from it."""
    if writer.last_seq:
        raise StoreError("the database already holds a study.", "Choose an empty one.")
    tasks: dict[str, StoredTask] = {}
    for event in events:
        writer.append(
            event.kind, at=event.at, annotator=event.annotator, judgment_id=event.judgment_id, data=event.data
        )
        if event.judgment_id is not None:
            known = tasks.get(event.judgment_id)
            tasks[event.judgment_id] = task_after(event, known)
    writer.add_tasks(tasks.values())


def task_after(event: Event, known: StoredTask | None) -> StoredTask:
    """Return what the table of tasks says after an event about one."""
    after = {"skip": "skipped", "expired": "expired", "judgment": "answered", "revision": "answered"}
    task = known or StoredTask(
        str(event.judgment_id),
        event.annotator or "",
        event.data["stage"],
        tuple(event.data["items"]),
        "open",
        event.data.get("lease_end", event.at),
        event.seq,
    )
    answered = event.kind in {"judgment", "revision"}
    lease_end = event.data["lease_end"] if event.kind == "renewed" else task.lease_end
    return StoredTask(
        task.judgment_id,
        task.annotator,
        task.stage,
        task.items,
        after.get(event.kind, task.state),
        lease_end,
        task.picked_seq,
        event.seq if answered else task.answer_seq,
    )


def _as_logged(chosen: Chosen) -> list[object]:
    pick = chosen.pick
    how = [pick.slot, pick.round, pick.weight, pick.propensity]
    return [chosen.stage, list(chosen.items), *how, chosen.purpose, chosen.about, chosen.shared]


def _logged(data: dict[str, Any]) -> list[object]:
    plain = [data[key] for key in ("stage", "items", "slot", "round", "weight", "propensity")]
    return [*plain, data.get("purpose", "judgment"), data.get("about", ""), data.get("shared", False)]


def differing_picks(events: Iterable[Event]) -> list[int]:
    """Replay every pick from the state it was made in; return the numbers of those that come out otherwise.

    A change of configuration starts the replay anew under the new one, as opening the study did.
    """
    kept = list(events)
    differing = []
    ledger: Ledger | None = None
    config = None
    for place, event in enumerate(kept):
        if event.kind == "config":
            config = parse_config(event.data["config"])
            ledger = Ledger(config.stages)
            for earlier in kept[:place]:
                ledger.apply(earlier)
        if ledger is None or config is None:
            continue
        if event.kind == "picked":
            chosen = pick_next(config, ledger, str(event.annotator), event.at)
            if isinstance(chosen, Nothing) or _as_logged(chosen) != _logged(event.data):
                differing.append(event.seq)
        ledger.apply(event)
    return differing
