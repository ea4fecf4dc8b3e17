"""Forgetting an annotator: their events are removed from the log, and the effect on the scores is reported.

The log stays a log. Events keep their numbers and digests, so that what others were asked stays as it was; the person's
own are replaced: leased tasks stay, under a stand-in for the name, and come back unanswered (`withdrawn`); all else
becomes `erased`. A tombstone (`forgotten`) at the end says so. Events are replaced a few at a time, so that nobody
waits; an interrupted erasure is completed by the next process that opens the study.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl
from msgspec import structs

from steelyard.errors import DataError, ModelFailedError, TaskError
from steelyard.storage import StoredEvent, StoredTask, Writer
from steelyard.storage.erasing import Erasure
from steelyard.storage.events import sum_of_hashes
from steelyard.study import events as ev
from steelyard.study.events import Event, decode_own
from steelyard.study.leases import annotator_name, task_after
from steelyard.study.log import append_event
from steelyard.study.pseudonyms import without_name
from steelyard.study.rebuild import with_previous_digest
from steelyard.study.recruitment_state import without_participant
from steelyard.study.status import Status
from steelyard.study.study import Study

_REMARKS = (ev.Skipped, ev.Flagged, ev.Excluded, ev.Readmitted, ev.ItemSetAside, ev.ItemRestored, ev.StateChanged)
"""Payloads with a text that somebody wrote."""
_MENTION_KINDS = (*(payload.kind for payload in _REMARKS), ev.PlatformEvent.kind)
"""Kinds of events in which others may name a person."""
_JUDGMENTS_AT_ONCE = 100
"""The events of this many judgments are replaced in one transaction, which takes some 20 ms."""
_SHORTEST_PAUSE_SECONDS = 0.02
_SHORTEST_NAME = 3
"""Shorter names than this are not looked for in what others wrote: they are words, too."""
SOMEBODY = "[forgotten]"
_SAME = 1e-9
"""Scores that differ by no more are the same."""


@dataclass(frozen=True, slots=True)
class Effect:
    """What leaving a person's judgments out does to the scores."""

    items: int
    changed: int
    """Items whose score, or label, is another."""
    lost: int
    """Items that had a score and have none any more."""
    ranks: int
    """Items whose rank is another."""
    largest: tuple[str, float, float] | None
    """The item whose score changes most, with its score before and after; none for labels."""
    largest_rank: tuple[str, int, int] | None
    """The item whose rank changes most, with its rank before and after."""


@dataclass(frozen=True, slots=True)
class ForgetReport:
    """The data of an annotator who is, or was, forgotten, and the effects."""

    pseudonym: str
    """What they are called in files that were exported earlier."""
    judgments: int
    revisions: int
    events: int
    tokens: int
    mentions: int
    """Texts of others in which their name was struck out."""
    again: int
    """Judgments that the design will ask of others again."""
    effect: Effect | None
    """What it does to the scores; none where there are no scores before or after."""
    left: str = ""
    """What is left to do until the bytes are off the disk, if anything."""
    model_failure: str = ""
    """Why the effect on the scores is not known, where the model failed."""

    def would(self) -> list[str]:
        """Describe what forgetting would change."""
        again = f"Up to {_counted(self.again, 'judgment')} will be collected again from other annotators."
        return [f"To be erased: {self._held()}.", self._effect_said("Without them,"), again]

    def did(self) -> list[str]:
        """Describe what was changed."""
        again = f"{_counted(self.again, 'judgment')} will be collected again from other annotators."
        return [f"Erased: {self._held()}.", self._effect_said("Now"), again]

    def still_to_do(self) -> list[str]:
        """Describe what must be deleted by hand."""
        files = f"Erase by hand: backups, the server's log, and earlier exports (pseudonym {self.pseudonym})."
        return [f"Note: {self.left}", files] if self.left else [files]

    def _effect_said(self, when: str) -> str:
        if self.model_failure:
            return f"The effect on the scores is unknown. {self.model_failure}"
        return f"{when} {_scores_said(self.effect)}"

    def _held(self) -> str:
        parts = [_counted(self.judgments, "judgment"), _counted(self.events, "event") + " in the log"]
        parts.append(_counted(self.tokens, "token or session", "tokens and sessions"))
        if self.mentions:
            parts.append(f"the name in {_counted(self.mentions, 'text')} of other annotators")
        return ", ".join(parts[:-1]) + " and " + parts[-1]


def _counted(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _scores_said(effect: Effect | None) -> str:
    if effect is None:
        return "there are no scores to compare."
    if not effect.changed and not effect.lost:
        return f"none of {effect.items:,} scores changes."
    sentence = f"{effect.changed:,} of {effect.items:,} scores change"
    if effect.largest is not None:
        item, was, now = effect.largest
        sentence += f", that of '{item}' most: {was:.4g} to {now:.4g}"
    if effect.lost:
        sentence += f"; {_counted(effect.lost, 'item')} lose their score"
    if effect.largest_rank is not None:
        item, before, after = effect.largest_rank
        sentence += f"; {_counted(effect.ranks, 'rank')} change, that of '{item}' most: {before:,} to {after:,}"
    elif effect.largest is not None:
        sentence += "; the ranks do not change"
    return sentence + "."


def preview(study: Study, annotator: str) -> ForgetReport:
    """Describe what forgetting an annotator would change, without changing anything."""
    annotator = _known(study, annotator)
    before, after = _scores(study), _scores(study, annotator)
    return replace(_holdings(study, annotator), **_compared(before, after))


def forget(study: Study, annotator: str, *, member: str = "") -> ForgetReport:
    """Remove an annotator from a study: judgments, consent, tokens, sessions, and what they wrote.

    What cannot be reached from here stays: backups, exported files, the server's log.
    """
    annotator = _known(study, annotator)
    before = _scores(study)
    report = _holdings(study, annotator)
    # Just before and just after: others go on judging while scores are computed.
    status = study.status()
    left = take_out(study, annotator, member)
    again = _missing(status, study.status())
    compared = _compared(before, _scores(study))
    return replace(report, **compared, again=again, left=left)


def descends_from(study: Study, digest: str) -> bool:
    """Return whether a study's log continues the one with this last digest (of an earlier export or backup).

    Forgetting an annotator changes no digests, except in logs begun before events had seals.
    """
    mark = _mark(study.privacy.secret, digest)
    return any(
        event.digest == digest or (isinstance(event.data, ev.Forgotten) and event.data.before == mark)
        for event in study.events()
    )


def _mark(secret: str, digest: str) -> str:
    # A plain digest would let anyone confirm a guess of what was forgotten, since the rest of the log is known.
    return hmac.new(secret.encode(), digest.encode(), hashlib.sha256).hexdigest()[:32]


def _known(study: Study, annotator: str) -> str:
    name = annotator_name(annotator)
    erasure = study.core.log.store.erasure()
    is_begun = erasure is not None and erasure.annotator == name
    if is_begun or study.core.log.store.events_of(name) or study.access.of(name):
        return name
    raise TaskError(f"there is no annotator '{name}' in this study.", "Check the name's spelling.")


def _holdings(study: Study, annotator: str) -> ForgetReport:
    kinds = Counter(kind for _, _, kind in study.core.log.store.events_of(annotator))
    mentions = sum(
        event.annotator != annotator and _without_mention(event, annotator) is not event
        for event in study.events(_MENTION_KINDS)
    )
    return ForgetReport(
        pseudonym=study.privacy.pseudonym(annotator),
        judgments=kinds["judgment"],
        revisions=kinds["revision"],
        events=kinds.total(),
        tokens=len(study.access.of(annotator)),
        mentions=mentions,
        again=study.annotators.counted(annotator),
        effect=None,
    )


def _missing(before: Status, after: Status) -> int:
    """Return how many judgments of the plan are missing now that were not before."""
    missing = sum(was.done for was in before.stages) - sum(now.done for now in after.stages)
    # Somebody may have answered in between.
    return max(0, missing)


# The log


class _Eraser:
    """Replaces the person's events: their tasks stay under another name and come back unanswered, all else goes."""

    def __init__(self, erasure: Erasure, tasks: Mapping[str, StoredTask]) -> None:
        self.erasure = erasure
        self.tasks = {name: task for name, task in tasks.items() if task.annotator == erasure.stand_in}
        """The person's tasks as the table of tasks has them afterwards."""

    def replace(self, stored: StoredEvent) -> StoredEvent:
        """Return what replaces an event in the log; the same object if it need not be replaced."""
        event = decode_own(stored)
        if stored.annotator == self.erasure.annotator:
            new = self._replacement(event)
            judgments = self.erasure.judgments + (type(event.data) is ev.Judged)
            self.erasure = replace(self.erasure, events=self.erasure.events + 1, judgments=judgments)
        else:
            new = _without_mention(event, self.erasure.annotator)
            if new is event:
                return stored
        result = new.stored().replacing(stored)
        first = min(self.erasure.first or stored.seq, stored.seq)
        replaced = sum_of_hashes(self.erasure.replaced, result.replacement_hash(), -stored.replacement_hash())
        self.erasure = replace(self.erasure, first=first, replaced=replaced)
        return result

    def _replacement(self, event: Event) -> Event:
        name = str(event.judgment_id)
        if isinstance(event.data, ev.Picked):
            event = structs.replace(event, annotator=self.erasure.stand_in)
        elif type(event.data) in {ev.Judged, ev.Skipped, ev.Expired} and self._is_open(name):
            event = _with_data(structs.replace(event, annotator=self.erasure.stand_in), ev.Withdrawn())
        else:
            return _with_data(structs.replace(event, annotator=None, judgment_id=None), ev.Erased())
        self.tasks[name] = task_after(event, self.tasks.get(name))
        return event

    def _is_open(self, name: str) -> bool:
        return name in self.tasks and self.tasks[name].state == "open"


def _with_data(event: Event, data: ev.Payload) -> Event:
    return structs.replace(event, data=data, text=data.text())


def _without_mention(event: Event, annotator: str) -> Event:
    """Remove a name from other people's remarks and from the exchange with a platform; the same object if absent."""
    if isinstance(event.data, ev.PlatformEvent):
        step = without_participant(event.data, annotator, SOMEBODY)
        return event if step is event.data else _with_data(event, step)
    if not isinstance(event.data, _REMARKS) or len(annotator) < _SHORTEST_NAME:
        return event
    reason = event.data.reason
    text = without_name(reason, annotator, SOMEBODY)
    return event if text == reason else _with_data(event, structs.replace(event.data, reason=text))


def take_out(study: Study, annotator: str, member: str = "") -> str:
    """Replace a person's events in the log, and delete their tasks and tokens; return what is left to do.

    This is done a few events at a time, so that nobody waits for long. If it is interrupted, `complete` continues;
    every process that opens the study calls it.
    """
    log = study.core.log
    while True:
        with log.rewrite() as writer:
            erasing = writer.erasing()
            erasure = erasing.unfinished()
            if erasure is None:
                mark = "" if erasing.is_sealed() else _seal(writer, study.privacy.secret)
                # No annotator's name can begin with a space.
                stand_in = f" forgotten {writer.last_seq + 1}"
                erasing.keep(Erasure(annotator, stand_in, before=mark, member=member))
                erasing.delete_tokens(annotator)
                writer.staging().delete_annotator(annotator)
        left = complete(study)
        if erasure is None or erasure.annotator == annotator:
            return left


def _seal(writer: Writer, secret: str) -> str:
    """Give seals to a log that was begun before there were any; return a mark of its former digest."""
    before = writer.digest

    def change(stored: StoredEvent, previous: str) -> StoredEvent:
        event = decode_own(stored)
        data = with_previous_digest(event.data, previous)
        return stored if data is event.data else stored._replace(data=data.text())

    writer.seal_all(change)
    return _mark(secret, before)


def complete(study: Study) -> str:
    """Complete the forgetting of an annotator that has begun; return what is left to do, if anything."""
    log = study.core.log
    erasure = log.store.erasure()
    if erasure is None:
        return ""
    if not erasure.is_replaced:
        _replace_all(study, erasure)
    with log.read():
        pass
    log.refresh()
    log.save_checkpoint()
    # Free space of the file is clean only if all versions that wrote to it have overwritten what they deleted.
    log.store.wipe("" if erasure.before else erasure.annotator)
    with log.rewrite() as writer:
        if (current := writer.erasing().unfinished()) is not None and current.stand_in == erasure.stand_in:
            writer.erasing().end()
    return log.store.wipe(erasure.annotator)


def _replace_all(study: Study, erasure: Erasure) -> None:
    log = study.core.log
    last_seq = log.last_seq()
    judgments: dict[str, list[int]] = {}
    others: list[int] = []
    for seq, judgment_id, _ in log.store.events_of(erasure.annotator):
        (others if judgment_id is None else judgments.setdefault(judgment_id, [])).append(seq)
    mentions = [
        event.seq for event in log.events(_MENTION_KINDS) if _without_mention(event, erasure.annotator) is not event
    ]
    # All events of a judgment at once, and all others at once, so that the log can be read in between.
    names = list(judgments)
    for start in range(0, len(names), _JUDGMENTS_AT_ONCE):
        numbers = [seq for name in names[start : start + _JUDGMENTS_AT_ONCE] for seq in judgments[name]]
        if not _replace_some(study, erasure, numbers):
            return
    _finish(study, erasure, [*others, *mentions], last_seq)


def _replace_some(study: Study, erasure: Erasure, numbers: Sequence[int]) -> bool:
    """Replace events by their numbers; return False if another process has completed the erasure."""
    started = time.monotonic()
    with study.core.log.rewrite() as writer:
        erasing = writer.erasing()
        current = erasing.unfinished()
        if current is None or current.stand_in != erasure.stand_in or current.is_replaced:
            return False
        _replace(writer, current, numbers)
    # As long for others as for this.
    time.sleep(max(_SHORTEST_PAUSE_SECONDS, time.monotonic() - started))
    return True


def _replace(writer: Writer, erasure: Erasure, numbers: Sequence[int]) -> Erasure:
    erasing = writer.erasing()
    events = erasing.events(numbers)
    ids = {event.judgment_id for event in events if event.annotator == erasure.annotator and event.judgment_id}
    eraser = _Eraser(erasure, writer.tasks(ids))
    new = [eraser.replace(event) for event in events]
    erasing.replace(event for event, old in zip(new, events, strict=True) if event is not old)
    writer.replace_tasks(ids, eraser.tasks.values())
    erasing.keep(eraser.erasure)
    return eraser.erasure


def _finish(study: Study, erasure: Erasure, numbers: Sequence[int], last_seq: int) -> None:
    """Replace the last events, take back the tasks that are still leased, and append the tombstone."""
    now = study.core.clock()
    with study.core.log.rewrite() as writer:
        erasing = writer.erasing()
        current = erasing.unfinished()
        if current is None or current.stand_in != erasure.stand_in or current.is_replaced:
            return
        # Events that were written since the log was searched.
        new = [
            event.seq
            for event in writer.events(last_seq)
            if event.annotator == current.annotator or event.kind in _MENTION_KINDS
        ]
        current = _replace(writer, current, [*numbers, *new])
        for task in writer.open_tasks(current.stand_in):
            append_event(writer, ev.Withdrawn(), at=now, annotator=current.stand_in, judgment_id=task.judgment_id)
            writer.set_state(task.judgment_id, "withdrawn")
        erasing.delete_tokens(current.annotator)
        writer.staging().delete_annotator(current.annotator)
        erasing.keep(replace(current, is_replaced=True))
        if current.first:
            tombstone = ev.Forgotten(
                first=1 if current.before else current.first,
                events=current.events,
                judgments=current.judgments,
                before=current.before,
                replaced=current.replaced,
                member=current.member,
            )
            append_event(writer, tombstone, at=now)


# The scores


def _scores(study: Study, without: str | None = None) -> pl.DataFrame | ModelFailedError | None:
    """Return the scores, None if there are none, or the error if the model failed: that must not stop anything."""
    try:
        return study.fit(without=without).scores
    except DataError:
        return None
    except ModelFailedError as error:
        return error


def _compared(
    before: pl.DataFrame | ModelFailedError | None, after: pl.DataFrame | ModelFailedError | None
) -> dict[str, Any]:
    for scores in (before, after):
        if isinstance(scores, ModelFailedError):
            return {"effect": None, "model_failure": scores.problems[0].what}
    return {"effect": effect(before, after)}  # type: ignore[arg-type] # no error is left


def effect(before: pl.DataFrame | None, after: pl.DataFrame | None) -> Effect | None:
    """Hold two tables of scores against each other."""
    if before is None or after is None:
        return None
    keys = ["item", *(["criterion"] if "criterion" in before.columns else [])]
    what = "score" if "score" in before.columns else "label"
    ranked = ["rank"] if "rank" in before.columns else []
    columns = [*keys, what, *(pl.col(name).cast(pl.Int64) for name in ranked)]
    both = before.select(columns).join(
        after.select(columns), on=keys, how="left", suffix="_after", maintain_order="left"
    )
    was, now = pl.col(what), pl.col(f"{what}_after")
    differ = (was - now).abs() > _SAME if what == "score" else was != now
    changed = both.filter(was.is_not_null() & now.is_not_null() & differ)
    moved = both.filter(pl.col("rank") != pl.col("rank_after")) if ranked else both.clear()
    return Effect(
        items=both.height,
        changed=changed.height,
        lost=both.filter(was.is_not_null() & now.is_null()).height,
        ranks=moved.height,
        largest=_largest(changed, keys, "score") if what == "score" else None,
        largest_rank=_largest(moved, keys, "rank"),
    )


def _largest(table: pl.DataFrame, keys: list[str], what: str) -> tuple[str, Any, Any] | None:
    if table.is_empty():
        return None
    one = table.sort((pl.col(f"{what}_after") - pl.col(what)).abs(), descending=True, maintain_order=True).row(
        0, named=True
    )
    return " ".join(one[key] for key in keys), one[what], one[f"{what}_after"]
