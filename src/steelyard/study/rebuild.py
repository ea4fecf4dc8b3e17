"""The log alone is the study: write it out, and build the same study from it anywhere."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from steelyard.designs.base import NoTask
from steelyard.errors import DataError, StoreError
from steelyard.store import Event, Store, StoredTask, Writer
from steelyard.store.events import EMPTY_DIGEST, chained_digest, rechained, to_json
from steelyard.study.config import parse_config
from steelyard.study.ledger import Ledger
from steelyard.study.picking import Chosen, pick_next
from steelyard.study.recruits import with_pseudonyms
from steelyard.study.study import Study
from steelyard.study.tasks import task_after


def exported_log(study: Study, *, real_ids: bool = False) -> Iterator[Event]:
    """Yield every event, with pseudonyms for the annotators' names unless `real_ids`.

    With pseudonyms it is a log in its own right, with digests of its own: whoever rebuilds a study from it gets
    the same scores from people of other names.
    """
    if real_ids:
        return study.events()
    names = study.names()

    def called(name: str | None) -> str | None:
        # What begins with a space stands in for somebody who was forgotten.
        return name if name is None or name.startswith(" ") else study.pseudonym(name)

    def renamed(event: Event, previous: str) -> Event:
        data = with_pseudonyms(event.kind, dict(event.data), study.pseudonym)
        if event.kind == "picked":
            data["state"] = previous
        if event.kind == "forgotten":
            data["after"] = previous
        if isinstance(data.get("reason"), str):
            data["reason"] = names.within(data["reason"])
        return replace(event, annotator=called(event.annotator), data=data)

    return rechained(study.events(), renamed)


def write_log(study: Study, path: str | Path, *, real_ids: bool = False) -> int:
    """Write every event as a line of JSON, the whole log or nothing; return how many.

    Annotators are called by pseudonyms unless `real_ids` (see `exported_log`).
    """
    path = Path(path)
    count = 0
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", newline="\n", dir=path.parent, prefix=f".{path.name}-", delete=False
        ) as file:
            try:
                for event in exported_log(study, real_ids=real_ids):
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
    with path.open("rb") as file:
        yield from parse_log(file, path.name)


def parse_log(lines: Iterable[bytes], name: str) -> Iterator[Event]:
    """Read the lines of a log; `name` is the file's, for errors."""
    for number, line in enumerate(lines, start=1):
        try:
            yield _event_in(line.decode())
        except (ValueError, TypeError, RecursionError) as error:
            raise DataError(
                f"this is not an event of a log: {error}.", "Export the log again.", file=name, line=number
            ) from None


_FIELDS: dict[str, tuple[type, ...]] = {
    "seq": (int,),
    "at": (int,),
    "kind": (str,),
    "annotator": (str, type(None)),
    "judgment_id": (str, type(None)),
    "data": (dict,),
    "digest": (str,),
}


def _event_in(line: str) -> Event:
    event = Event(**json.loads(line))
    for name, kinds in _FIELDS.items():
        if not isinstance(getattr(event, name), kinds):
            raise TypeError(f"its {name} is {getattr(event, name)!r}")
    # What JSON can write and UTF-8 cannot, no log ever held; nor numbers that are none.
    event.as_json().encode()
    return event


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
        if event.kind == "forgotten" and event.data.get("after") != previous:
            raise StoreError(f"event {event.seq} is not the tombstone of this log.", "Use an unaltered export.")
        previous = chained_digest(
            previous, seq, event.at, event.kind, event.annotator, event.judgment_id, to_json(event.data)
        )
        if (seq, previous) != (event.seq, event.digest):
            raise StoreError(f"the log was altered at or before event {event.seq}.", "Use an unaltered copy.")
        yield event


def check_chain(events: Iterable[Event]) -> None:
    """Refuse a log that was altered, or of which events are missing."""
    for _ in unaltered(events):
        pass


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


def _as_logged(chosen: Chosen) -> list[object]:
    pick = chosen.pick
    how = [pick.slot, pick.round, pick.weight, pick.propensity]
    return [chosen.stage, list(chosen.items), *how, chosen.purpose, chosen.about, chosen.shared]


def _logged(data: dict[str, Any]) -> list[object]:
    plain = [data[key] for key in ("stage", "items", "slot", "round", "weight", "propensity")]
    return [*plain, data.get("purpose", "judgment"), data.get("about", ""), data.get("shared", False)]


def differing_picks(events: Iterable[Event]) -> list[int]:
    """Replay every pick from the state it was made in; return the numbers of those that come out otherwise.

    A change of configuration starts the replay anew under the new one, as opening the study did. Picks made in a
    state that was rewritten since, because somebody was forgotten, cannot be replayed and are passed over.
    """
    kept = list(events)
    rewritten = [(event.data["first"], event.seq) for event in kept if event.kind == "forgotten"]
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
        if event.kind == "picked" and not any(first <= event.seq < last for first, last in rewritten):
            chosen = pick_next(config, ledger, str(event.annotator), event.at)
            if isinstance(chosen, NoTask) or _as_logged(chosen) != _logged(event.data):
                differing.append(event.seq)
        ledger.apply(event)
    return differing
