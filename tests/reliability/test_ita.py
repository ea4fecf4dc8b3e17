"""ITA against its definition, annotator by annotator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike
from scipy import stats

from steelyard.errors import DataError
from steelyard.observations import FloatArray, Index, Ratings
from steelyard.reliability.bootstrap import Bootstrap
from steelyard.reliability.ita import ita, ita_with_experts

Correlate = Callable[[FloatArray, FloatArray], Any]


def ratings_of(item: ArrayLike, value: ArrayLike, annotator: ArrayLike = ()) -> Ratings:
    codes, people = np.asarray(item, np.int32), np.asarray(annotator, np.int32)
    return Ratings(
        items=Index(f"i{i}" for i in range(int(codes.max()) + 1)),
        annotators=Index(f"w{a}" for a in range(int(people.max(initial=-1)) + 1)),
        item=codes,
        annotator=people,
        value=np.asarray(value, float),
        scale=(0.0, 100.0),
    )


def naive_ita(table: FloatArray, correlate: Correlate) -> float:
    each = []
    for a in range(len(table)):
        others = np.delete(table, a, axis=0)
        shared = ~np.isnan(table[a]) & ~np.isnan(others).all(axis=0)
        if shared.sum() >= 3:
            each.append(correlate(table[a, shared], np.nanmean(others[:, shared], axis=0))[0])
    return float(np.mean(each))


@pytest.mark.parametrize(("ranks", "correlate"), [(False, stats.pearsonr), (True, stats.spearmanr)])
def test_ita_equals_its_definition_with_missing_answers(ranks: bool, correlate: Correlate) -> None:
    rng = np.random.default_rng(6)
    table = np.clip(np.rint(50 + 20 * rng.normal(size=30) + 20 * rng.normal(size=(7, 30))), 0, 100)
    table[rng.random(table.shape) < 0.4] = np.nan
    annotator, item = np.nonzero(~np.isnan(table))
    figure = ita(ratings_of(item, table[annotator, item], annotator), Bootstrap(), ranks=ranks)
    assert figure.value is not None
    assert figure.value == pytest.approx(naive_ita(table, correlate), abs=1e-12)
    assert figure.interval == "jackknife(annotators, items)"
    assert figure.n == 7
    assert figure.lower is not None
    assert figure.upper is not None
    assert figure.lower < figure.value < figure.upper


def test_repeats_by_one_annotator_are_averaged_first() -> None:
    once = ratings_of([0, 1, 2, 3] * 2, [10, 20, 40, 30, 5, 20, 60, 50], [0] * 4 + [1] * 4)
    split = ratings_of([0, 0, 1, 2, 3, 0, 1, 2, 3], [5, 15, 20, 40, 30, 5, 20, 60, 50], [0] * 5 + [1] * 4)
    assert ita(split, Bootstrap()).value == pytest.approx(ita(once, Bootstrap()).value, abs=1e-12)


def test_annotators_without_variation_are_left_out_and_counted() -> None:
    ratings = ratings_of([0, 1, 2, 3] * 3, [10, 20, 40, 30, 5, 20, 60, 50, 7, 7, 7, 7], [0] * 4 + [1] * 4 + [2] * 4)
    figure = ita(ratings, Bootstrap())
    assert figure.n == 2
    assert "1 left out" in figure.note


def test_equal_means_of_others_stay_tied_in_the_ranks() -> None:
    # The others' means are all 0.2 exactly, though sums minus own differ in the last digit.
    values = [10, 20, 30, 20, 20, 20]
    figure = ita(ratings_of([0, 1, 2] * 2, values, [0] * 3 + [1] * 3), Bootstrap(), ranks=True)
    assert figure.value is None


def test_without_annotators_or_shared_items_it_is_none_with_the_reason() -> None:
    unknown = ita(ratings_of([0, 0, 1], [1, 2, 3]), Bootstrap())
    alone = ita(ratings_of([0, 1, 2], [1, 2, 3], [0, 1, 1]), Bootstrap())
    assert unknown.value is None
    assert "unknown" in unknown.note
    assert alone.value is None
    assert "shares 3 items" in alone.note


def test_95_percent_intervals_of_ita_cover_its_expectation_over_new_annotators_and_items() -> None:
    """Annotators with their own noise rate all items; the truth is the mean over many such studies."""
    rng = np.random.default_rng(8)
    annotator, item = (codes.ravel() for codes in np.indices((10, 40)))

    def study() -> Ratings:
        noise = rng.uniform(0.5, 2, 10)[annotator] * rng.normal(size=400)
        return ratings_of(item, np.clip(50 + 5 * (rng.normal(size=40)[item] + noise), 0, 100), annotator)

    truth = np.mean([ita(study(), Bootstrap()).value or 0.0 for _ in range(500)])
    figures = [ita(study(), Bootstrap()) for _ in range(100)]
    hits = sum((figure.lower or 0.0) <= truth <= (figure.upper or 0.0) for figure in figures)
    assert 87 <= hits <= 100


def naive_panels(table: FloatArray, expert: list[int]) -> dict[str, float]:
    """Table 1 of Snow et al. (2008) by loops: rows of the table are annotators."""
    others = [a for a in range(len(table)) if a not in expert]

    def r(a: int, panel: list[int]) -> float:
        mean = np.nanmean(table[[b for b in panel if b != a]], axis=0)
        both = ~np.isnan(table[a]) & ~np.isnan(mean)
        return float(np.corrcoef(table[a, both], mean[both])[0, 1])

    everyone = list(range(len(table)))
    return {
        "expert_expert": float(np.mean([r(a, expert) for a in expert])),
        "expert_all": float(np.mean([r(a, everyone) for a in expert])),
        "non_expert_expert": float(np.mean([r(a, [e for e in expert if e != out]) for a in others for out in expert])),
        "non_expert_all": float(np.mean([r(a, everyone) for a in others])),
    }


def test_expert_and_non_expert_ita_are_those_of_table_1() -> None:
    rng = np.random.default_rng(9)
    noise = np.array([5, 6, 7, 20, 22, 25, 30])[:, None]
    table = np.clip(50 + 15 * rng.normal(size=40) + noise * rng.normal(size=(7, 40)), 0, 100)
    table[3:][rng.random((4, 40)) < 0.3] = np.nan
    annotator, item = np.nonzero(~np.isnan(table))
    figures = ita_with_experts(ratings_of(item, table[annotator, item], annotator), ["w0", "w1", "w2"])
    expected = naive_panels(table, [0, 1, 2])
    assert {figure.key: figure.value for figure in figures} == pytest.approx(expected, abs=1e-9)
    assert [figure.n for figure in figures] == [3, 3, 4, 4]
    for figure in figures:
        assert figure.lower is not None
        assert figure.upper is not None
        assert figure.lower < (figure.value or 0.0) < figure.upper


def test_experts_must_be_among_the_annotators() -> None:
    ratings = ratings_of([0, 1, 2] * 2, [10, 20, 30, 20, 20, 20], [0] * 3 + [1] * 3)
    with pytest.raises(DataError, match="unknown id"):
        ita_with_experts(ratings, ["w9"])
    with pytest.raises(DataError, match="none of the annotators is an expert"):
        ita_with_experts(ratings, [])
