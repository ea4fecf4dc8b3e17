"""What came of a study: its judgments, and the scores they give."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from steelyard.errors import DataError
from steelyard.models.fit import Fit, Model
from steelyard.observations import Mixed, Observations, Ratings
from steelyard.records import Judgment
from steelyard.store import Event
from steelyard.store.events import to_json
from steelyard.study.collect import way_of
from steelyard.study.config import Stage
from steelyard.study.journal import as_datetime

if TYPE_CHECKING:
    from steelyard.engines import Log


def judgment_of(event: Event, stages: Sequence[Stage]) -> Judgment:
    """Read a judgment off its event (or its latest revision's)."""
    stage = stages[event.data["stage"]]
    return Judgment(
        judgment_id=str(event.judgment_id),
        annotator=event.annotator or "",
        stage=stage.name,
        protocol=stage.protocol.name,
        items=tuple(event.data["items"]),
        answer=event.data["answer"],
        at=as_datetime(event.at),
        seconds=event.data.get("seconds"),
        late=bool(event.data.get("late")),
        imported=bool(event.data.get("imported")),
        revised=event.kind == "revision",
        purpose=event.data.get("purpose", "judgment"),
        right=event.data.get("right"),
    )


def effective_judgments(
    events: Iterable[Event], stages: Sequence[Stage], excluded: Collection[str] = ()
) -> Iterator[Judgment]:
    """Yield every judgment in the order they first came, with its latest answer; `excluded` people's are set aside."""
    found: dict[str, Judgment] = {}
    for event in events:
        judgment = judgment_of(event, stages)
        if judgment.revised:
            judgment = replace(judgment, at=found[judgment.judgment_id].at)
        if judgment.annotator in excluded:
            judgment = replace(judgment, set_aside=True)
        found[judgment.judgment_id] = judgment
    return iter(found.values())


def judgment_frame(judgments: Iterable[Judgment]) -> pl.DataFrame:
    """Lay judgments out as a table, one a row; `answer` is JSON."""
    found = list(judgments)
    return pl.DataFrame(
        {
            "judgment_id": [j.judgment_id for j in found],
            "annotator": [j.annotator for j in found],
            "stage": [j.stage for j in found],
            "protocol": [j.protocol for j in found],
            "items": [list(j.items) for j in found],
            "answer": [to_json(j.answer) for j in found],
            "at": [j.at for j in found],
            "seconds": [j.seconds for j in found],
            "late": [j.late for j in found],
            "revised": [j.revised for j in found],
            "imported": [j.imported for j in found],
            "set_aside": [j.set_aside for j in found],
            "purpose": [j.purpose for j in found],
            "right": [j.right for j in found],
        },
        schema={
            "judgment_id": pl.String,
            "annotator": pl.String,
            "stage": pl.String,
            "protocol": pl.String,
            "items": pl.List(pl.String),
            "answer": pl.String,
            "at": pl.Datetime("us", "UTC"),
            "seconds": pl.Float64,
            "late": pl.Boolean,
            "revised": pl.Boolean,
            "imported": pl.Boolean,
            "set_aside": pl.Boolean,
            "purpose": pl.String,
            "right": pl.Boolean,
        },
    )


def kind_for(model: Model, stages: Sequence[Stage]) -> str:
    """Return the kind of observations to fit a model to: its preferred one among those the stages give.

    Where a model can take several ways of asking at once, and there are several, it is "mixed".
    """
    ways = {way for stage in stages if (way := way_of(stage.protocol)) is not None}
    if Mixed.kind in model.accepts and len(ways) > 1:
        return Mixed.kind
    yielded = {kind for stage in stages for kind in stage.protocol.kinds}
    kind = next((kind for kind in model.accepts if kind in yielded), None)
    if kind is None:
        raise DataError(
            f"{model.name} needs {' or '.join(model.accepts)}; this study gives {', '.join(sorted(yielded))}.",
            "Choose another model.",
        )
    return kind


def on_rating_scale(model: Model, stages: Sequence[Stage]) -> bool:
    """Whether the scores are on the scale of the ratings asked for."""
    return Ratings.kind in model.accepts and any(Ratings.kind in stage.protocol.kinds for stage in stages)


def fit_by_criterion(
    model: Model,
    by_criterion: Mapping[str, Observations] | Mapping[str, Log],
    gold: Mapping[str, Mapping[str, str]] | None = None,
    groups: Mapping[str, str] | None = None,
) -> Fit:
    """Fit each criterion by itself; the scores stand in one table, with columns for criterion and group.

    The judgments are in memory, or in an engine's log. `gold` is by criterion, as `read_gold` gives it; that of "" is
    for all criteria. `groups` are the items'.
    """
    if not by_criterion:
        raise DataError("there are no judgments yet.", "Collect some, or import them: steelyard import.")
    gold = gold or {}
    fits = {
        criterion: _fitted(model, criterion, observations, gold) for criterion, observations in by_criterion.items()
    }
    tables = [_decorated(fit.scores, criterion, groups or {}) for criterion, fit in fits.items()]
    people = [
        _decorated(fit.annotators, criterion, {}) for criterion, fit in fits.items() if fit.annotators is not None
    ]
    return Fit(
        model.name,
        model.settings(),
        pl.concat(tables, how="diagonal"),
        annotators=pl.concat(people, how="diagonal") if people else None,
        notes=tuple(
            f"{name}: {note}" if name else note for name, fit in fits.items() for note in (*fit.notes, *_unsure(fit))
        ),
        iterations=max(fit.iterations for fit in fits.values()),
        converged=all(fit.converged for fit in fits.values()),
    )


def _fitted(
    model: Model, criterion: str, observations: Observations | Log, gold: Mapping[str, Mapping[str, str]]
) -> Fit:
    """Fit one criterion with its own gold, or with that for all criteria as far as it concerns this one."""
    own = gold.get(criterion)
    if own is None and criterion:
        own = {item: answer for item, answer in gold.get("", {}).items() if item in observations.items}
    try:
        if isinstance(observations, Observations):
            return model.fitted(observations, own)
        from steelyard.engines import fit_log

        return fit_log(model, observations, own)
    except DataError as error:
        if not criterion:
            raise
        raise DataError(replace(problem, what=f"{criterion}: {problem.what}") for problem in error.problems) from None


def _unsure(fit: Fit) -> tuple[str, ...]:
    """Say why some items have a score and no interval, where the model has not."""
    if "score" not in fit.scores.columns or fit.notes:
        return ()
    without = fit.scores.filter(pl.col("score").is_not_null() & pl.col("lower").is_null()).height
    return (f"{without} items have no interval: all who judged them say the same, or only one did",) if without else ()


def _decorated(table: pl.DataFrame, criterion: str, groups: Mapping[str, str]) -> pl.DataFrame:
    first = table.columns[0]
    extra = []
    if criterion:
        extra.append(pl.lit(criterion).alias("criterion"))
    if groups:
        extra.append(pl.col(first).replace_strict(groups, default=None, return_dtype=pl.String).alias("group"))
    return table.select(first, *extra, pl.exclude(first))
