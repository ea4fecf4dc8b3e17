"""What every model promises."""

from __future__ import annotations

import inspect
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from steelyard import registry
from steelyard.errors import DataError, SteelyardWarning
from steelyard.models.fit import Model
from steelyard.models.table import SCORE_COLUMNS
from steelyard.observations import (
    Choices,
    Comparisons,
    Index,
    Labels,
    Mixed,
    Observations,
    Rankings,
    Ratings,
)

N_ITEMS, N_ANNOTATORS = 9, 7
TRUTH = np.linspace(-1.5, 1.5, N_ITEMS)
NAMES = Index([f"item {n}" for n in range(N_ITEMS)] + ["never judged"])
PEOPLE = Index([f"ann {n}" for n in range(N_ANNOTATORS)])


def who(rng: np.random.Generator, rows: int) -> dict[str, Any]:
    return {
        "items": NAMES,
        "annotators": PEOPLE,
        "annotator": rng.integers(N_ANNOTATORS, size=rows).astype(np.int32),
    }


def ratings(rng: np.random.Generator) -> Ratings:
    item = np.tile(np.arange(N_ITEMS, dtype=np.int32), 12)
    value = np.clip(50 + 20 * TRUTH[item] + rng.normal(0, 8, len(item)), 0, 100)
    return Ratings(item=item, value=value, scale=(0, 100), **who(rng, len(item)))


def comparisons(rng: np.random.Generator) -> Comparisons:
    left, right = np.array([rng.choice(N_ITEMS, 2, replace=False) for _ in range(300)], np.int32).T
    difference = TRUTH[left] - TRUTH[right] + rng.logistic(size=300)
    outcome = np.where(np.abs(difference) < 0.3, 0, np.sign(difference)).astype(np.int8)
    return Comparisons(left=left, right=right, outcome=outcome, **who(rng, 300))


def choices(rng: np.random.Generator) -> Choices:
    tuples = np.array([rng.choice(N_ITEMS, 4, replace=False) for _ in range(150)], np.int32)
    percepts = TRUTH[tuples] + rng.gumbel(size=tuples.shape) * 0.5
    rows = np.arange(150)
    return Choices(
        shown=tuples,
        best=tuples[rows, percepts.argmax(axis=1)],
        worst=tuples[rows, percepts.argmin(axis=1)],
        **who(rng, 150),
    )


def rankings(rng: np.random.Generator) -> Rankings:
    tuples = np.array([rng.choice(N_ITEMS, 4, replace=False) for _ in range(120)], np.int32)
    percepts = TRUTH[tuples] + rng.gumbel(size=tuples.shape) * 0.5
    order = np.take_along_axis(tuples, np.argsort(-percepts, axis=1), axis=1)
    return Rankings(
        start=np.arange(0, 481, 4, dtype=np.int64),
        item=order.ravel(),
        rank=np.tile(np.arange(1, 5, dtype=np.int32), 120),
        **who(rng, 120),
    )


def labels(rng: np.random.Generator) -> Labels:
    item = np.tile(np.arange(N_ITEMS, dtype=np.int32), 12)
    right = (TRUTH[item] > 0).astype(np.int32)
    flip = rng.random(len(item)) < 0.2
    return Labels(
        item=item, label=np.where(flip, 1 - right, right), classes=Index(["no", "yes"]), **who(rng, len(item))
    )


def mixed(rng: np.random.Generator) -> Mixed:
    return Mixed.of((ratings(rng), comparisons(rng), choices(rng), rankings(rng)))


MAKERS = {f.__name__: f for f in (ratings, comparisons, choices, rankings, labels, mixed)}
CASES = [(name, kind) for name in registry.names("models") for kind in registry.find("models", name).accepts]


@pytest.fixture(params=CASES, ids="-".join)
def case(request: pytest.FixtureRequest) -> tuple[Model, Any]:
    name, kind = request.param
    return registry.create("models", name), MAKERS[kind](np.random.default_rng(11))


def fit(model: Model, observations: Observations) -> pl.DataFrame:
    extra: dict[str, Any] = {}
    if "gold" in inspect.signature(model.fit).parameters:
        # Gold for every other item, and at least one of each class.
        is_labels = isinstance(observations, Labels)
        gold_items = range(0, N_ITEMS, 2)
        extra["gold"] = {
            observations.items[observations.items.code(NAMES[n])]: (
                ("yes" if TRUTH[n] > 0 else "no") if is_labels else 50 + 20 * TRUTH[n]
            )
            for n in gold_items
            if NAMES[n] in observations.items
        }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SteelyardWarning)
        return model.fit(observations, **extra).scores


def by_item(frame: pl.DataFrame) -> dict[str, dict[str, Any]]:
    return {row["item"]: row for row in frame.iter_rows(named=True)}


def close(one: pl.DataFrame, two: pl.DataFrame, columns: tuple[str, ...]) -> bool:
    first, second = by_item(one), by_item(two)
    return set(first) == set(second) and all(
        first[item][column] == pytest.approx(second[item][column], abs=1e-6, nan_ok=True)
        if isinstance(first[item][column], float)
        else first[item][column] == second[item][column]
        for item in first
        for column in columns
    )


def point_columns(frame: pl.DataFrame) -> tuple[str, ...]:
    return ("score", "unit_score", "judgments") if "score" in frame.columns else ("label", "probability", "judgments")


def permuted(observations: Any, order: np.ndarray) -> Any:
    """The same observations in another order; of mixed ones, each part in an order of its own."""
    if isinstance(observations, Mixed):
        parts = [permuted(part, order[order < len(part)]) for part in observations.parts]
        nobody = np.zeros(0, np.int32)
        return replace(observations, parts=tuple(parts), annotator=nobody, task=nobody)
    changed: dict[str, Any] = {"annotator": observations.annotator[order], "task": observations.task[order]}
    if isinstance(observations, Rankings):
        sizes = np.diff(observations.start)
        spans = [np.arange(observations.start[r], observations.start[r + 1]) for r in order]
        flat = np.concatenate([np.zeros(0, np.int64), *spans])
        changed |= {
            "start": np.concatenate([[0], np.cumsum(sizes[order])]),
            "item": observations.item[flat],
            "rank": observations.rank[flat],
        }
    else:
        for field in ("item", "value", "label", "left", "right", "outcome", "shown", "best", "worst"):
            if hasattr(observations, field):
                changed[field] = getattr(observations, field)[order]
    return replace(observations, **changed)


@pytest.mark.slow
def test_the_table_has_its_columns_and_every_item_once(case):
    model, observations = case
    frame = fit(model, observations)
    assert sorted(frame["item"]) == sorted(NAMES.ids)
    if "labels" in model.accepts:
        assert {"item", "label", "probability", "judgments", "p(no)", "p(yes)"} <= set(frame.columns)
    else:
        assert tuple(frame.columns) == SCORE_COLUMNS + model.parameter_columns


@pytest.mark.slow
def test_an_item_that_was_never_judged_claims_nothing(case):
    model, observations = case
    row = by_item(fit(model, observations))["never judged"]
    assert row["judgments"] == 0
    assert {row.get(column) for column in ("score", "unit_score", "lower", "upper", "rank", "label")} == {None}


def test_intervals_hold_their_scores_and_nothing_is_nan(case):
    model, observations = case
    for row in fit(model, observations).iter_rows(named=True):
        assert not any(isinstance(value, float) and np.isnan(value) for value in row.values())
        point = row.get("score", row.get("probability"))
        if row["lower"] is not None:
            assert row["lower"] <= point <= row["upper"]
        if row.get("rank_lower") is not None:
            assert row["rank_lower"] <= row["rank"] <= row["rank_upper"]


def test_scores_recover_the_order_of_the_items(case):
    model, observations = case
    frame = fit(model, observations)
    rows = by_item(frame)
    if "score" in frame.columns:
        scores = [rows[f"item {n}"]["score"] for n in range(N_ITEMS)]
        assert np.corrcoef(scores, TRUTH)[0, 1] > 0.75
        assert all(0 <= rows[f"item {n}"]["unit_score"] <= 1 for n in range(N_ITEMS))
    else:
        right = [rows[f"item {n}"]["label"] == ("yes" if TRUTH[n] > 0 else "no") for n in range(N_ITEMS)]
        assert sum(right) >= N_ITEMS - 1


@pytest.mark.slow
def test_the_order_of_judgments_does_not_change_the_scores(case):
    model, observations = case
    if model.name in ORDERED:
        return
    order = np.random.default_rng(0).permutation(len(observations))
    frame = fit(model, observations)
    assert close(frame, fit(model, permuted(observations, order)), point_columns(frame))


ORDERED = {"elo", "trueskill", "bounded_ranking"}
"""Online models: what came first matters."""


@pytest.mark.slow
def test_relabelling_items_permutes_the_scores_and_nothing_else(case):
    model, observations = case
    order = np.random.default_rng(1).permutation(len(NAMES))
    frame = fit(model, observations)
    assert close(frame, fit(model, relabelled(observations, order)), point_columns(frame))


def relabelled(observations: Any, order: np.ndarray) -> Any:
    """The same observations with other codes for the items."""
    place = np.argsort(order).astype(np.int32)
    changed: dict[str, Any] = {"items": Index([NAMES[int(n)] for n in order])}
    if isinstance(observations, Mixed):
        return replace(observations, parts=tuple(relabelled(part, order) for part in observations.parts), **changed)
    for field in ("item", "left", "right", "shown", "best", "worst"):
        if hasattr(observations, field):
            changed[field] = place[getattr(observations, field)]
    return replace(observations, **changed)


@pytest.mark.slow
def test_renaming_annotators_changes_no_score(case):
    model, observations = case
    # Another order of the alphabet, too.
    names: dict[str, Any] = {"annotators": Index([f"somebody {9 - n}" for n in range(N_ANNOTATORS)])}
    if isinstance(observations, Mixed):
        names["parts"] = tuple(replace(part, **names) for part in observations.parts)
    renamed = replace(observations, **names)
    frame = fit(model, observations)
    assert close(frame, fit(model, renamed), point_columns(frame))


@pytest.mark.slow
def test_fitting_twice_gives_the_same_bytes(case):
    model, observations = case
    assert fit(model, observations).write_csv() == fit(model, observations).write_csv()


def test_observations_it_does_not_accept_are_refused_with_a_remedy(case):
    model, _ = case
    other = next(maker for kind, maker in MAKERS.items() if kind not in model.accepts)(np.random.default_rng(0))
    with pytest.raises(DataError, match=rf"{model.name} needs .*; these are {other.kind}.* Use .*, or collect with "):
        fit(model, other)


def test_no_observations_are_refused(case):
    model, observations = case
    with pytest.raises(DataError, match="there are no"):
        fit(model, permuted(observations, np.zeros(0, np.int64)))


@pytest.mark.slow
def test_settings_are_in_the_fit(case):
    model, observations = case
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SteelyardWarning)
        gold = (
            {"gold": {"item 0": "no", "item 8": "yes"}}
            if "labels" in model.accepts
            else {"gold": {"item 0": 20.0, "item 8": 80.0}}
        )
        takes_gold = "gold" in inspect.signature(model.fit).parameters
        fitted = model.fit(observations, **(gold if takes_gold else {}))
    assert fitted.model == model.name
    assert fitted.settings == model.settings()
    assert "level" in fitted.settings


@pytest.mark.slow
def test_a_lower_level_gives_narrower_intervals_of_scores_and_of_ranks(case):
    model, observations = case
    wide, narrow = (fit(replace(model, level=level), observations) for level in (0.99, 0.3))
    both = wide.join(narrow, on="item", suffix="_narrow").drop_nulls(["upper", "upper_narrow"])
    pairs = [("lower", "upper")] + ([("rank_lower", "rank_upper")] if "rank" in wide.columns else [])
    for low, high in pairs:
        some = both.drop_nulls([low, f"{low}_narrow"])
        widths = (some[high] - some[low]).sum(), (some[f"{high}_narrow"] - some[f"{low}_narrow"]).sum()
        assert widths[0] > widths[1] or widths == (0, 0), (low, widths)
