"""Exporting the log, and rebuilding the same study from it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO, Any

import msgspec
from msgspec import structs

from steelyard.designs.base import NoTask
from steelyard.errors import DataError, StoreError
from steelyard.storage import Store, StoredEvent, StoredTask, Writer
from steelyard.storage.events import Chain, rechained
from steelyard.study import events as ev
from steelyard.study.assignment import Assignment, pick_next
from steelyard.study.config import parse_config
from steelyard.study.events import Event, UnknownKindError, decode, decode_own
from steelyard.study.leases import task_after
from steelyard.study.recruitment_state import with_pseudonyms
from steelyard.study.state import StudyState
from steelyard.study.study import Study


def exported_log(study: Study, *, real_ids: bool = False) -> Iterator[Event]:
    """Yield every event, with pseudonyms for the annotators' names unless `real_ids`.

    With pseudonyms it is a log in its own right, with digests of its own: whoever rebuilds a study from it gets
    the same scores from people of other names. Comments are never exported with names: with `real_ids` they are left
    out, and the digests are new if there are any. Answers to the questionnaire are always left out.
    """
    if real_ids:
        return _without_comments(study)
    names = study.privacy.names()
    pseudonym = cache(study.privacy.pseudonym)

    def renamed(stored: StoredEvent, previous: str) -> StoredEvent:
        event = decode_own(stored)
        data = with_previous_digest(with_pseudonyms(event.data, pseudonym), previous)
        reason = getattr(data, "reason", None)
        if isinstance(reason, str):
            data = structs.replace(data, reason=names.within(reason))
        if comment := getattr(data, "comment", ""):
            data = structs.replace(data, comment=names.within(comment))
        if isinstance(data, ev.QuestionnaireAnswered):
            data = structs.replace(data, answers={})
        annotator = stored.annotator
        # Names that begin with a space stand in for annotators who were forgotten.
        if annotator is not None and not annotator.startswith(" "):
            annotator = pseudonym(annotator)
        return stored._replace(annotator=annotator, data=stored.data if data is event.data else data.text())

    return map(decode_own, rechained((event.stored() for event in study.events()), renamed))


def _without_comments(study: Study) -> Iterator[Event]:
    kinds = (ev.Judged.kind, ev.Revised.kind, ev.QuestionnaireAnswered.kind)
    if not any(
        getattr(event.data, "comment", "") or getattr(event.data, "answers", {}) for event in study.events(kinds)
    ):
        return study.events()

    def silent(stored: StoredEvent, previous: str) -> StoredEvent:
        event = decode_own(stored)
        data = with_previous_digest(event.data, previous)
        if getattr(data, "comment", ""):
            data = structs.replace(data, comment="")
        elif isinstance(data, ev.QuestionnaireAnswered):
            data = structs.replace(data, answers={})
        return stored if data is event.data else stored._replace(data=data.text())

    return map(decode_own, rechained((event.stored() for event in study.events()), silent))


def with_previous_digest(data: Any, previous: str) -> Any:
    """Return a payload that names the digest of the event before it as it is after a rewrite."""
    if isinstance(data, ev.Picked):
        return structs.replace(data, state=previous)
    if isinstance(data, ev.Forgotten):
        # A log that is chained anew has no replaced events.
        return structs.replace(data, after=previous if data.after else "", replaced="")
    return data


def write_log(study: Study, path: str | Path, *, real_ids: bool = False) -> int:
    """Write every event as a line of JSON, the whole log or nothing; return how many.

    Annotators are called by pseudonyms unless `real_ids` (see `exported_log`).
    """
    path = Path(path)
    count = 0
    with whole_file(path) as file:
        for event in exported_log(study, real_ids=real_ids):
            file.write((event.line() + "\n").encode())
            count += 1
    return count


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Write a file that gets its name only when it is complete and on disk; nobody else can read it."""
    try:
        with tempfile.NamedTemporaryFile("wb", dir=path.parent, prefix=f".{path.name}-", delete=False) as file:
            try:
                yield file.file
                file.flush()
                os.fsync(file.fileno())
                Path(file.name).replace(path)
            except BaseException:
                Path(file.name).unlink()
                raise
    except OSError as error:
        raise DataError(
            f"{path} cannot be written: {error.strerror}.", "Check the folder and the free disk space."
        ) from None


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    """A line of an exported log; `data` stays as it is written, for its digest."""

    seq: int
    at: int
    kind: str
    annotator: str | None
    judgment_id: str | None
    data: msgspec.Raw
    digest: str
    seal: str | None = None


_decode_line = msgspec.json.Decoder(_Line).decode


def read_log(path: str | Path) -> Iterator[Event]:
    """Read a log that `write_log` wrote."""
    path = Path(path)
    with path.open("rb") as file:
        yield from parse_log(file, path.name)


def parse_log(lines: Iterable[bytes], name: str) -> Iterator[Event]:
    """Read the lines of a log; `name` is the file's, for errors.

    An event that is malformed or of an unknown kind is refused with its line and field.
    """
    for number, line in enumerate(lines, start=1):
        try:
            parsed = _decode_line(line)
            data = bytes(parsed.data).decode()
            stored = StoredEvent(
                parsed.seq,
                parsed.at,
                parsed.kind,
                parsed.annotator,
                parsed.judgment_id,
                data,
                parsed.digest,
                parsed.seal,
            )
        except (ValueError, RecursionError) as error:
            what, field = _problem_and_field(error)
            raise _malformed(f"this is not an event of a study's log: {what}.", name, number, field) from None
        try:
            yield decode(stored)
        except (ValueError, RecursionError) as error:
            what, field = _problem_and_field(error)
            field = "kind" if isinstance(error, UnknownKindError) else ".".join(filter(None, ("data", field)))
            raise _malformed(f"this event ({stored.kind}) is malformed: {what}.", name, number, field) from None


def _malformed(what: str, file: str, line: int, field: str) -> DataError:
    return DataError(what, "Export the log again.", file=file, line=line, field=field or None)


def _problem_and_field(error: Exception) -> tuple[str, str]:
    """Split an error of msgspec into its message and the path of the field."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply", ""
    what, _, path = str(error).partition(" - at `$")
    return what.replace("`", "'"), path.rstrip("`").lstrip(".")


def rebuild(events: Iterable[Event], folder: str | Path, database: str) -> Study:
    """Build a study from its log in an empty database; scores and leases come out the same.

    A log that was altered is refused: each event's digest covers all before it.
    """
    log = list(unaltered(events))
    configs = [event.data.config for event in log if isinstance(event.data, ev.ConfigChanged)]
    if not configs:
        raise DataError("the log has no configuration.", "Export the whole log of a study.")
    folder = Path(folder)
    config = parse_config(configs[-1])
    store = Store.open(database, config.name)
    try:
        with store.write() as writer:
            replay(log, writer)
    except BaseException:
        store.close()
        raise
    return Study(folder, config, store)


def unaltered(events: Iterable[Event]) -> Iterator[Event]:
    """Pass a log on; refuse one that was altered, or of which events are missing."""
    chain = Chain()
    for event in events:
        if isinstance(event.data, ev.Forgotten) and event.data.after not in ("", chain.digest):
            raise StoreError(f"event {event.seq} is not the tombstone of this log.", "Use an unaltered export.")
        chain.check(event.stored())
        yield event
    chain.check_replacements()


def check_chain(events: Iterable[Event]) -> None:
    """Refuse a log that was altered, or of which events are missing."""
    for _ in unaltered(events):
        pass


def replay(events: Iterable[Event], writer: Writer) -> None:
    """Write a log into an empty study, and the tasks that follow from it."""
    if writer.last_seq:
        raise StoreError("the database already contains a study.", "Choose an empty one.")
    tasks: dict[str, StoredTask] = {}
    for event in events:
        writer.copy(event.stored())
        if event.judgment_id is not None:
            tasks[event.judgment_id] = task_after(event, tasks.get(event.judgment_id))
    writer.add_tasks(tasks.values())


def _is_same_pick(chosen: Assignment, logged: ev.Picked) -> bool:
    pick = chosen.pick
    return (
        (chosen.stage, chosen.items, chosen.purpose, chosen.about, chosen.shared)
        == (logged.stage, logged.items, logged.purpose, logged.about, logged.shared)
    ) and (pick.slot, pick.round, pick.weight, pick.propensity, pick.reason) == (
        logged.slot,
        logged.round,
        logged.weight,
        logged.propensity,
        logged.reason,
    )


def differing_picks(events: Iterable[Event]) -> list[int]:
    """Replay every pick from the state it was made in; return the numbers of those that come out differently.

    A change of configuration restarts the replay under the new one, as opening the study does. Picks made in a state
    that was rewritten since, because somebody was forgotten, cannot be replayed and are left out.
    """
    log = list(events)
    rewritten = [(event.data.first, event.seq) for event in log if isinstance(event.data, ev.Forgotten)]
    differing = []
    state: StudyState | None = None
    config = None
    for place, event in enumerate(log):
        if isinstance(event.data, ev.ConfigChanged):
            config = parse_config(event.data.config)
            state = StudyState(config.stages)
            for earlier in log[:place]:
                state.apply(earlier)
        if state is None or config is None:
            continue
        is_replayable = not any(first <= event.seq < last for first, last in rewritten)
        if isinstance(event.data, ev.Picked) and is_replayable and not event.data.behind:
            chosen = pick_next(config, state, str(event.annotator), event.at)
            if isinstance(chosen, NoTask) or not _is_same_pick(chosen, event.data):
                differing.append(event.seq)
        state.apply(event)
    return differing
