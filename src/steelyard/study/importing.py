"""Importing a file of judgments into a study, completely or not at all."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from steelyard.errors import AnswerError, ConfigError, DataError, Problem
from steelyard.formats import JudgmentFile, read_judgments
from steelyard.formats.problems import SKIP_REMEDY, capped, skipped_note
from steelyard.observations import (
    UNKNOWN,
    Choices,
    Comparisons,
    Index,
    Labels,
    Observations,
    Rankings,
    Ratings,
    Spans,
)
from steelyard.protocols.base import ONLY
from steelyard.storage.events import to_json
from steelyard.study import events as ev
from steelyard.study.config import Stage
from steelyard.study.judges import ModelAnswer
from steelyard.study.study import ImportedAnswer, Study


@dataclass(frozen=True, slots=True)
class ImportResult:
    """How many judgments joined, how many had joined before, and what was odd about the file."""

    added: int
    already: int
    notes: tuple[str, ...]


def import_file(
    study: Study,
    path: str | Path,
    *,
    stage: str | None = None,
    kind: str | None = None,
    columns: Mapping[str, str] | None = None,
    strict: bool = False,
    skip_bad_rows: bool = False,
    models: bool = False,
    model: str = "",
) -> ImportResult:
    """Import the judgments of a file into a study.

    A judgment that was imported before, from this file or a longer one, is not imported again; nor is one that
    the study itself exported. Rows are read leniently, as logs from elsewhere are, unless `strict`; an unknown
    item or a value outside the scale refuses the whole file, or only its rows with `skip_bad_rows`. With `models`, the
    annotators of the file are models; `model` is the name of those who have none there.
    """
    path = Path(path)
    scale = _common_scale(study, stage)
    read = read_judgments(path, kind=kind, columns=columns, scale=scale, strict=strict, skip_bad_rows=skip_bad_rows)
    number, chosen = _stage_for(study, read.kind, stage)
    problems: list[Problem] = []
    answers = list(_checked(study, path.name, chosen, read, strict, problems))
    notes = read.notes
    if problems and not skip_bad_rows:
        error = DataError(capped(problems))
        error.add_note(SKIP_REMEDY)
        raise error
    if problems:
        notes = (*notes, skipped_note(len(problems), problems))
    added = _record_models(study, number, answers, model) if models else study.import_answers(number, answers)
    return ImportResult(added, len(answers) - added, notes)


def _record_models(study: Study, stage: int, answers: Sequence[ImportedAnswer], model: str) -> int:
    """Record the answers as those of models, each registered under its name."""
    names = dict.fromkeys(answer.annotator or model for answer in answers)
    if "" in names:
        raise DataError("the file does not name the model that judged.", "Name it with --name.")
    people = [name for name in names if study.annotators.knows(name) and study.annotators.kind(name) == "person"]
    if people:
        raise DataError(
            f"'{people[0]}' has judged this study as a person.",
            "Rename the annotator in the file, or declare it a model: steelyard judges declare.",
        )
    for name in names:
        if name not in study.judges.names():
            study.judges.register(name, ev.JudgeRegistered(source="import", version="", model=name))
    return study.judges.record(
        [
            ModelAnswer(one.judgment_id, one.annotator or model, stage, one.items, one.answer, "", seconds=one.seconds)
            for one in answers
        ]
    )


def _stage_for(study: Study, kind: str, name: str | None) -> tuple[int, Stage]:
    stages = [(n, s) for n, s in enumerate(study.config.stages) if name is None or s.name == name]
    if not stages:
        names = ", ".join(s.name for s in study.config.stages)
        raise ConfigError(f"there is no stage called '{name}'.", f"Stages: {names}.")
    fitting = [(n, s) for n, s in stages if s.protocol.kinds[0] == kind]
    if not fitting:
        raise DataError(
            f"these are {kind}, but the study asks for {' and '.join(s.protocol.kinds[0] for _, s in stages)}.",
            "Import them into a study with a suitable protocol, or score the file: steelyard fit",
        )
    if len(fitting) > 1:
        raise ConfigError(
            f"several stages accept {kind}: {', '.join(s.name for _, s in fitting)}.", "Choose one with --stage."
        )
    return fitting[0]


def _common_scale(study: Study, stage: str | None) -> tuple[float, float] | None:
    """The scale to hold a file's values against, where all criteria share one."""
    scales = {
        scale for s in study.config.stages if stage is None or s.name == stage for scale in s.protocol.scales().values()
    }
    return scales.pop() if len(scales) == 1 else None


def _checked(
    study: Study, file: str, stage: Stage, read: JudgmentFile, strict: bool, problems: list[Problem]
) -> Iterator[ImportedAnswer]:
    """Yield the file's answers with ids made of what they say, so that the same answer is the same judgment.

    The problems of other answers are added to `problems`.
    """
    by_id = {item.id: item for item in study.items}
    own = {str(event.judgment_id) for event in study.events(("judgment",))}
    # A pseudonym of this study stands for the annotator who has it.
    people = {study.privacy.pseudonym(name): name for name in study.annotators.names()}
    times: Counter[str] = Counter()
    for found in _answers(read, stage):
        found.annotator = people.get(found.annotator or "", found.annotator)
        unknown = [item for item in found.items if item not in by_id]
        if unknown:
            problems.append(
                Problem(
                    f"'{unknown[0]}' is not an item of the study.",
                    "Add it to the items file, or leave the row out.",
                    file,
                    read.line(found.criterion, found.row),
                    "item",
                )
            )
        else:
            try:
                plain = stage.protocol.validate(found.items, found.answer, lenient=not strict)
                stage.protocol.check_texts([by_id[name] for name in found.items], plain)
            except AnswerError as error:
                line = read.line(found.criterion, found.row)
                problems += [Problem(p.what, p.remedy, file, line, p.field) for p in error.problems[:1]]
            else:
                says = to_json([stage.name, found.annotator, found.task, sorted(found.items), plain])
                times[says] += 1
                judgment_id = hashlib.blake2b(f"{says}:{times[says]}".encode(), digest_size=16).hexdigest()
                if found.task in own:
                    judgment_id = str(found.task)
                seconds = read.seconds(found.criterion, found.row)
                yield ImportedAnswer(judgment_id, found.annotator, tuple(found.items), plain, seconds)


@dataclass(slots=True)
class _ImportedRow:
    """One answer as the file has it, and the observation it begins with."""

    criterion: str
    row: int
    annotator: str | None
    task: str | None
    items: list[str]
    answer: Any


def _answers(read: JudgmentFile, stage: Stage) -> Iterable[_ImportedRow]:
    first = next(iter(read.by_criterion.values()))
    if first.kind in (Ratings.kind, Labels.kind):
        together = "comparisons" in stage.protocol.kinds
        if together and not first.knows_tasks:
            raise DataError(
                f"{stage.protocol.name} shows several items at once, but the file does not record which items were "
                "shown together.",
                "Add a column 'task' that is the same for the rows of one task.",
            )
        per_item = _per_item(cast("Mapping[str, Ratings | Labels]", read.by_criterion), together)
        return _with_marks(per_item, read) if Spans.kind in stage.protocol.kinds else per_item
    by_kind: dict[str, Any] = {Comparisons.kind: _comparisons, Choices.kind: _choices, Rankings.kind: _rankings}
    if stage.protocol.criterion_names() != (ONLY,):
        rows = {name: by_kind[first.kind](part) for name, part in read.by_criterion.items() if name}
        return _by_criterion(rows)
    answers: Iterable[_ImportedRow] = by_kind[first.kind](first)
    return answers


def _by_criterion(rows: Mapping[str, Iterable[_ImportedRow]]) -> Iterable[_ImportedRow]:
    """Put the answers by all criteria to the same items in the same task together."""
    groups: dict[tuple[object, ...], _ImportedRow] = {}
    for criterion, own in rows.items():
        times: Counter[tuple[object, ...]] = Counter()
        for row in own:
            question = (row.annotator, row.task, tuple(row.items))
            key = (*question, times[question])
            times[question] += 1
            if key not in groups:
                groups[key] = _ImportedRow(criterion, row.row, row.annotator, row.task, row.items, {})
            groups[key].answer[criterion] = row.answer
    return groups.values()


def _with_marks(answers: Iterable[_ImportedRow], read: JudgmentFile) -> Iterator[_ImportedRow]:
    """Add the marks of texts to their scores."""
    for answer in answers:
        for item, score in answer.answer.items():
            marks = {name: read.marks(name, answer.criterion, answer.row) for name in ("spans", "suggestions")}
            if marks["spans"] is not None:
                answer.answer[item] = {
                    "score": score,
                    **{key: value for key, value in marks.items() if value is not None},
                }
        yield answer


def _per_item(by_criterion: Mapping[str, Ratings | Labels], together: bool) -> Iterable[_ImportedRow]:
    """Put the values of one answer together: criteria of one item, or items of one task."""
    groups: dict[tuple[object, ...], _ImportedRow] = {}
    times: Counter[tuple[object, ...]] = Counter()
    for criterion, observations in by_criterion.items():
        for row in range(len(observations)):
            item = observations.items[int(observations.item[row])]
            annotator, task = _name(observations, row), _task(observations, row)
            key: tuple[object, ...] = (annotator, task) if together else (annotator, task, item)
            # The same question answered again is a judgment of its own.
            question = (*key, item, criterion)
            again = times[question]
            times[question] += 1
            answer = groups.get((*key, again))
            if answer is None:
                answer = groups[*key, again] = _ImportedRow(criterion, row, annotator, task, [], {})
            if item not in answer.items:
                answer.items.append(item)
            value = observations.answer_at(row)
            if criterion:
                answer.answer.setdefault(item, {})[criterion] = value
            else:
                answer.answer[item] = value
    return groups.values()


def _comparisons(comparisons: Comparisons) -> Iterator[_ImportedRow]:
    for row in range(len(comparisons)):
        pair = [comparisons.items[int(side[row])] for side in (comparisons.left, comparisons.right)]
        outcome = int(comparisons.outcome[row])
        winner = None if outcome == 0 else pair[0] if outcome > 0 else pair[1]
        answer: dict[str, object] = {"winner": winner}
        if strength := int(comparisons.strength[row]):
            answer["strength"] = strength
        yield _ImportedRow("", row, _name(comparisons, row), _task(comparisons, row), pair, answer)


def _choices(choices: Choices) -> Iterator[_ImportedRow]:
    for row in range(len(choices)):
        item_ids = [choices.items[int(code)] for code in choices.shown[row] if code != UNKNOWN]
        answer = {
            "best": _known(choices.items, int(choices.best[row])),
            "worst": _known(choices.items, int(choices.worst[row])),
        }
        yield _ImportedRow("", row, _name(choices, row), _task(choices, row), item_ids, answer)


def _rankings(rankings: Rankings) -> Iterator[_ImportedRow]:
    for row in range(len(rankings)):
        span = slice(int(rankings.start[row]), int(rankings.start[row + 1]))
        names = [rankings.items[int(code)] for code in rankings.item[span]]
        ranks = rankings.rank[span].tolist()
        tiers = [[n for n, r in zip(names, ranks, strict=True) if r == rank] for rank in sorted(set(ranks))]
        yield _ImportedRow("", row, _name(rankings, row), _task(rankings, row), names, tiers)


def _name(observations: Observations, row: int) -> str | None:
    return _known(observations.annotators, int(observations.annotator[row]))


def _task(observations: Observations, row: int) -> str | None:
    return _known(observations.tasks, int(observations.task[row]))


def _known(index: Index, code: int) -> str | None:
    return None if code == UNKNOWN else index[code]
