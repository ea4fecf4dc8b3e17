"""Valid answers never make a model, an online state or a reliability statistic raise."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from steelyard import Study, registry
from steelyard.errors import DataError, SteelyardWarning
from steelyard.models.by_criterion import fit_by_criterion
from steelyard.models.calibrated.online import CalibratedState
from steelyard.models.fit import Fit
from steelyard.observations import UNKNOWN, Index, Mixed, Observations
from steelyard.reliability import (
    agreement,
    cycle_consistency,
    meta_annotator,
    position_bias,
    scale_separation,
    self_consistency,
    split_half,
)
from tests.contracts.degenerate import CASES, comparisons, crossed, ratings, with_some_names, without_names
from tests.sizes import FULL

pytestmark = pytest.mark.slow

FITS = [
    (name, kind, case)
    for name in registry.names("models")
    for kind in registry.find("models", name).accepts
    for case in CASES[kind]
]
NEEDS_GOLD = {"gold_calibrated", "weighted_vote", "gaussian_calibration"}
NEEDS_NAMES = NEEDS_GOLD | {"dawid_skene", "mace"}
"""They are about annotators, and refuse judgments that do not say whose they are."""


@contextmanager
def only_our_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", SteelyardWarning)
        yield


def fit(name: str, observations: Observations, gold: dict[str, Any] | None = None) -> Fit:
    # A few draws show whether a fit works.
    is_short = not FULL or gold is not None or not observations.knows_annotators
    model: Any = registry.create("models", name, {"draws": 20} if name == "calibrated_scale" and is_short else {})
    with only_our_warnings():
        fitted: Fit = model.fit(observations, gold=gold) if gold is not None else model.fit(observations)
    return fitted


def gold_of(kind: str, observations: Any, item: str = "i0") -> dict[str, Any]:
    if kind == "labels":
        return {item: "c0"}
    rated = observations.parts[0] if isinstance(observations, Mixed) else observations
    return {item: getattr(rated, "scale", (0, 1))[0]}


def check(fitted: Fit) -> None:
    """Scores are finite and within their intervals, or null with a stated reason."""
    for row in fitted.scores.iter_rows(named=True):
        assert all(math.isfinite(value) for value in row.values() if isinstance(value, float)), row
        point = row["score"] if "score" in row else row["probability"]
        if point is None:
            assert fitted.notes, row
            continue
        assert abs(point) < 1e4, row
        if row["lower"] is not None:
            assert row["lower"] <= point <= row["upper"], row
        if row.get("unit_score") is not None:
            assert 0 <= row["unit_score"] <= 1, row
    for row in fitted.annotators.iter_rows(named=True) if fitted.annotators is not None else ():
        assert all(math.isfinite(value) for value in row.values() if isinstance(value, float)), row


@pytest.mark.parametrize(("name", "kind", "case"), FITS, ids=str)
def test_every_model_fits_degenerate_answers(name: str, kind: str, case: str):
    observations = CASES[kind][case]
    check(fit(name, observations, gold_of(kind, observations) if name in NEEDS_GOLD else None))


@pytest.mark.parametrize(("name", "kind", "case"), FITS, ids=str)
def test_every_model_fits_degenerate_answers_without_names(name: str, kind: str, case: str):
    gold = gold_of(kind, CASES[kind][case]) if name in NEEDS_GOLD else None
    for remove in (without_names, with_some_names) if kind != "mixed" else (without_names,):
        observations = remove(CASES[kind][case])
        if name in NEEDS_NAMES:
            with pytest.raises(DataError, match="have no annotator"):
                fit(name, observations, gold)
        else:
            check(fit(name, observations, gold))


TAKES_GOLD = [case for case in FITS if registry.find("models", case[0]).takes_gold()]


@pytest.mark.parametrize(("name", "kind", "case"), TAKES_GOLD, ids=str)
def test_gold_of_one_item_or_of_none_that_was_judged_is_no_error(name: str, kind: str, case: str):
    observations = CASES[kind][case]
    check(fit(name, observations, gold_of(kind, observations)))
    if len(observations.items) < 2 or isinstance(observations, Mixed):
        return
    # The same judgments in a study that has one more item, which nobody has judged yet.
    wider: Any = replace(observations, items=Index([*observations.items.ids, "unjudged"]))
    check(fit(name, wider, gold_of(kind, observations, "unjudged")))


@pytest.mark.parametrize("name", sorted(NEEDS_NAMES - {"gaussian_calibration"}))
def test_gold_may_have_a_class_that_nobody_has_chosen(name: str):
    for observations in CASES["labels"].values():
        check(fit(name, observations, {"i0": "another"}))


DESIGNS = {
    "match_quality of ratings": ('name = "direct"', 'name = "match_quality"\nrounds = 2'),
    "match_quality of pairs": (
        'name = "pairwise"\nties = true',
        'name = "match_quality"\nmodel = "trueskill"\nrounds = 2',
    ),
    "adaptive of ratings": ('name = "direct"', 'name = "adaptive"\njudgments = 4\nobjective = "scores"'),
    "adaptive of pairs": ('name = "pairwise"\nties = true', 'name = "adaptive"\njudgments = 4'),
    "per_item": ('name = "direct"', 'name = "per_item"\njudgments = 6'),
}


@pytest.mark.parametrize("design", DESIGNS)
def test_a_study_with_constant_answers_runs_to_its_end_and_has_scores(make_study, design: str):
    protocol, settings = DESIGNS[design]
    pairwise = "pairwise" in protocol
    with Study.open(make_study(protocol, settings, items=8)) as study, only_our_warnings():
        judgments = 0
        for _ in range(8):
            for annotator in (f"a{n}" for n in range(6)):
                if (task := study.ask(annotator)) is not None:
                    study.tell(task, {"winner": None} if pairwise else {task.items[0].id: 70})
                    judgments += 1
        assert judgments >= 8
        scores = study.scores()
    assert scores["score"].is_finite().all()


def test_six_annotators_who_all_say_the_same_number_get_that_number():
    scores = fit("calibrated_scale", ratings(np.full(120, 70.0), *crossed(20, 6))).scores
    assert scores["score"].to_list() == pytest.approx([70] * 20, abs=5)
    assert (scores["lower"] < 70).all()
    assert (scores["upper"] > 70).all()


@pytest.mark.parametrize("value", [0.0, 30.0, 33.7, 50.0, 100.0])
@pytest.mark.parametrize("seed", range(5 if FULL else 1))
def test_constant_ratings_of_one_annotator_keep_the_sampler_finite(value: float, seed: int):
    model = registry.create("models", "calibrated_scale", {"seed": seed})
    with only_our_warnings():
        check(model.fit(ratings(np.full(20, value), *crossed(20, 1))))


def test_criteria_are_fitted_one_by_one_whatever_their_answers():
    model = registry.create("models", "calibrated_scale", {"draws": 20})
    cases = {"constant": "constant 50, 5 items, 6 annotators", "single": "one judgment", "ends": "extremes only"}
    with only_our_warnings():
        fitted = fit_by_criterion(model, {name: CASES["ratings"][case] for name, case in cases.items()})
    check(fitted)
    assert set(fitted.scores["criterion"]) == set(cases)


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("annotators", [1, 6])
def test_the_online_state_stays_finite_with_constant_answers(value: float, annotators: int):
    state = CalibratedState(5, annotators, ties=True)
    with only_our_warnings():
        handles = []
        for _ in range(20):
            for annotator in (*range(annotators), UNKNOWN):
                handles.append(state.learn_ratings(annotator, range(5), [value] * 5))
                state.learn(annotator, [0, 1, 2], [1, 2, 3], [int(2 * value) - 1] * 3)
            state.refit(3)
        odds = state.pair_odds(np.arange(4), np.arange(1, 5), 0)
        for first in handles[::2]:
            state.forget_ratings(first)
        state.refit(3)
    for numbers in (state.mean, state.variance, state.unevenness, *odds, np.array(state.bias(0))):
        assert np.isfinite(numbers).all()
    assert (state.variance > 0).all()


@pytest.mark.parametrize("outcome", [-1, 0, 1])
@pytest.mark.parametrize("name", ["trueskill", "bounded_ranking", "elo"])
def test_online_models_stay_finite_with_constant_outcomes(name: str, outcome: int):
    model: Any = registry.create("models", name)
    state = model.start(3)
    pairs = comparisons([0, 1, 0], [1, 2, 2], [outcome] * 3, [0, 0, 0])
    for _ in range(300):
        state = model.update(state, pairs)
    assert all(np.isfinite(numbers).all() for numbers in state)


ALL = [(kind, case) for kind, cases in CASES.items() if kind != "mixed" for case in cases]


def gold_for_all(observations: Observations) -> Any:
    return dict.fromkeys(observations.items.ids, "c0" if observations.kind == "labels" else 20.0)


EVERY_KIND = {"ratings", "comparisons", "choices", "rankings", "labels"}
STATISTICS: dict[str, tuple[Any, set[str]]] = {
    "agreement": (lambda observations: agreement(observations, replicates=20), EVERY_KIND),
    "split_half": (lambda observations: split_half(observations, trials=5), EVERY_KIND - {"labels"}),
    "self_consistency": (self_consistency, EVERY_KIND),
    "cycle_consistency": (cycle_consistency, {"comparisons", "rankings"}),
    "position_bias": (position_bias, {"comparisons", "rankings"}),
    "scale_separation": (scale_separation, {"comparisons", "rankings"}),
    "meta_annotator": (
        lambda observations: meta_annotator(observations, gold_for_all(observations)),
        {"ratings", "labels"},
    ),
}
"""Each statistic, and the kinds of observations for which it is defined."""


def numbers_of(result: Any) -> Iterator[float]:
    """Yield every number in a result, whatever it is made of."""
    if isinstance(result, pl.DataFrame):
        for series in result.select(pl.selectors.numeric()).iter_columns():
            yield from series.drop_nulls().to_list()
    elif isinstance(result, int | float | np.number | np.ndarray):
        yield from np.asarray(result, np.float64).ravel()
    elif is_dataclass(result):
        for part in fields(result):
            yield from numbers_of(getattr(result, part.name))
    elif isinstance(result, dict):
        yield from numbers_of(list(result.values()))
    elif isinstance(result, list | tuple):
        for part in result:
            yield from numbers_of(part)


@pytest.mark.parametrize("names", ["all", "none", "some"])
@pytest.mark.parametrize(("kind", "case"), ALL, ids=str)
def test_reliability_statistics_are_finite_or_undefined(kind: str, case: str, names: str):
    alter = {"all": lambda o: o, "none": without_names, "some": with_some_names}[names]
    observations = alter(CASES[kind][case])
    with only_our_warnings():
        for statistic in agreement(observations, replicates=20).statistics:
            for number in (statistic.value, statistic.lower, statistic.upper):
                assert number is None or math.isfinite(number), statistic


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize(("kind", "case"), ALL, ids=str)
def test_a_statistic_is_finite_or_refuses_the_kind_of_observations(kind: str, case: str, statistic: str):
    compute, kinds = STATISTICS[statistic]
    if kind not in kinds:
        with pytest.raises(DataError, match=f"these are {kind}"):
            compute(CASES[kind][case])
        return
    with only_our_warnings():
        numbers = list(numbers_of(compute(CASES[kind][case])))
    assert numbers
    assert np.isfinite(numbers).all()
