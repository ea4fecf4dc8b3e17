"""Forgetting an annotator: their events are removed from the log, and the effect on the scores is reported.

The log stays a log. Events keep their numbers, so that what others were asked stays as it was; the person's own are
replaced: tasks that went out stay, under a stand-in for the name, and come back unanswered (`withdrawn`); all else
becomes `blank`. From the first replaced event on the digests are chained anew, and a tombstone (`forgotten`) says
so, with marks of the log's digest before and after.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import polars as pl
from msgspec import structs

from steelyard.errors import DataError, ModelFailedError, TaskError
from steelyard.storage import StoredEvent, StoredTask, Writer
from steelyard.study import events as ev
from steelyard.study.events import Event, decode_own
from steelyard.study.leases import annotator_name, task_after
from steelyard.study.log import append_event
from steelyard.study.pseudonyms import without_name
from steelyard.study.rebuild import with_previous_digest
from steelyard.study.recruitment_state import without_participant
from steelyard.study.status import Status
from steelyard.study.study import Study

_REMARKS = (ev.Skipped, ev.Flagged, ev.Excluded, ev.Readmitted, ev.StateChanged)
"""Payloads with a text that somebody wrote."""
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
    """What is known of a person, or was, and what became of it."""

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
        """Say what forgetting would do."""
        again = f"Up to {_counted(self.again, 'judgment')} will be collected again from other annotators."
        return [f"To be erased: {self._held()}.", self._effect_said("Without them,"), again]

    def did(self) -> list[str]:
        """Say what it did."""
        again = f"{_counted(self.again, 'judgment')} will be collected again from other annotators."
        return [f"Erased: {self._held()}.", self._effect_said("Now"), again]

    def still_to_do(self) -> list[str]:
        """Say what is left for people to do."""
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
    """Say what forgetting a person would do, and do nothing."""
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
    take_out(study, annotator, member)
    again = _missing(status, study.status())
    left = study.privacy.wipe()
    compared = _compared(before, _scores(study))
    return replace(report, **compared, again=again, left=left)


def descends_from(study: Study, digest: str) -> bool:
    """Say whether a study's log was rewritten from the one with this last digest (of an earlier export or backup)."""
    marks = {event.data.before for event in study.events((ev.Forgotten.kind,))}
    return _mark(study.privacy.secret, digest) in marks


def _mark(secret: str, digest: str) -> str:
    # A plain digest would let anyone confirm a guess of what was forgotten, since the rest of the log is known.
    return hmac.new(secret.encode(), digest.encode(), hashlib.sha256).hexdigest()[:32]


def _known(study: Study, annotator: str) -> str:
    name = annotator_name(annotator)
    if any(event.annotator == name for event in study.events()) or study.access.of(name):
        return name
    raise TaskError(f"there is no annotator '{name}' in this study.", "Check the name's spelling.")


def _holdings(study: Study, annotator: str) -> ForgetReport:
    kinds: Counter[str] = Counter()
    mentions = 0
    for event in study.events():
        if event.annotator == annotator:
            kinds[event.kind] += 1
        elif _without_mention(event, annotator) is not event:
            mentions += 1
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
    """Changes a log event by event: the person's own are replaced, their name struck out of the rest."""

    def __init__(self, annotator: str, stand_in: str) -> None:
        self.annotator = annotator
        self.stand_in = stand_in
        self.tasks: dict[str, StoredTask] = {}
        """The person's tasks as the table of tasks has them afterwards."""
        self.replaced = 0
        self.judgments = 0

    def change(self, stored: StoredEvent, previous: str) -> StoredEvent:
        """Return what replaces an event in the log; `previous` is the digest before it."""
        event = decode_own(stored)
        if stored.annotator == self.annotator:
            self.replaced += 1
            self.judgments += type(event.data) is ev.Judged
            event = self._replacement(event)
        else:
            event = _without_mention(event, self.annotator)
        data = with_previous_digest(event.data, previous)
        text = event.text if data is event.data else data.text()
        return structs.replace(event, data=data, text=text).stored()

    def _replacement(self, event: Event) -> Event:
        name = str(event.judgment_id)
        if isinstance(event.data, ev.Picked):
            event = structs.replace(event, annotator=self.stand_in)
        elif type(event.data) in {ev.Judged, ev.Skipped, ev.Expired} and self._is_open(name):
            event = _with_data(structs.replace(event, annotator=self.stand_in), ev.Withdrawn())
        else:
            return _with_data(structs.replace(event, annotator=None, judgment_id=None), ev.Erased())
        self.tasks[name] = task_after(event, self.tasks.get(name))
        return event

    def _is_open(self, name: str) -> bool:
        return name in self.tasks and self.tasks[name].state == "open"

    def withdraw(self, writer: Writer, now: int) -> None:
        """Take back the tasks that are still out."""
        for name, task in self.tasks.items():
            if task.state == "open":
                event = append_event(writer, ev.Withdrawn(), at=now, annotator=self.stand_in, judgment_id=name)
                self.tasks[name] = task_after(event, task)


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


def take_out(study: Study, annotator: str, member: str = "") -> None:
    """Rewrite the log without a person, and delete their tasks and tokens, in one transaction."""
    with study.privacy.rewrite() as writer:
        first = next(
            (
                event.seq
                for event in map(decode_own, writer.events(0))
                if event.annotator == annotator or _without_mention(event, annotator) is not event
            ),
            None,
        )
        writer.erase_person(annotator)
        if first is None:
            return
        # No annotator's name can begin with a space.
        eraser = _Eraser(annotator, f" forgotten {writer.last_seq + 1}")
        before, now = writer.digest, study.core.clock()
        writer.rewrite(first, eraser.change)
        eraser.withdraw(writer, now)
        writer.add_tasks(eraser.tasks.values())
        tombstone = ev.Forgotten(
            first=first,
            events=eraser.replaced,
            judgments=eraser.judgments,
            before=_mark(study.privacy.secret, before),
            after=writer.digest,
            member=member,
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
