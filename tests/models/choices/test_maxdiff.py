"""The maxdiff logit: by hand, against plain numpy, with parts missing, and at the extremes."""

from __future__ import annotations

import dataclasses
import itertools
import warnings

import numpy as np
import polars as pl
import pytest
from scipy import optimize

from steelyard.errors import DataError, SteelyardWarning
from steelyard.models.choices.counting import Counting
from steelyard.models.choices.maxdiff import MaxDiff
from steelyard.models.choices.maxdiff_kernels import BEST_ONLY, BOTH, WORST_ONLY, choice_terms
from steelyard.models.inference import laplace, newton
from steelyard.observations import UNKNOWN, Choices, Index
from tests.models import paired_data as data
from tests.models.paired_data import by_item


def twin_chances(theta):
    """Chance of every ordered pair (best, worst), the plain way."""
    pairs = list(itertools.permutations(range(len(theta)), 2))
    chance = np.array([np.exp(theta[i] - theta[j]) for i, j in pairs])
    return pairs, chance / chance.sum()


def twin_value(theta, best, worst):
    pairs, chance = twin_chances(theta)
    fits = [(best is None or i == best) and (worst is None or j == worst) for i, j in pairs]
    return np.log(chance[fits].sum())


def scores(fit, given, column="score"):
    table = by_item(fit, column)
    return np.array([table[name] for name in given.items.ids])


def make(rows, n):
    shown, best, worst = zip(*rows, strict=True)
    width = max(map(len, shown))
    return Choices(
        items=data.ids(n),
        shown=np.array([list(s) + [UNKNOWN] * (width - len(s)) for s in shown], np.int32),
        best=np.array([UNKNOWN if b is None else b for b in best], np.int32),
        worst=np.array([UNKNOWN if w is None else w for w in worst], np.int32),
    )


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "best", "worst"), [(BOTH, 2, 0), (BEST_ONLY, 1, None), (WORST_ONLY, None, 3)])
def test_kernel_equals_its_twin_and_its_finite_differences(kind, best, worst):
    theta, h = np.array([0.4, -0.7, 1.1, 0.2]), 1e-6
    value, gradient, matrix = choice_terms(theta, kind, best or 0, worst or 0)
    assert value == pytest.approx(twin_value(theta, best, worst))
    for code in range(4):
        step = h * np.eye(4)[code]
        slope = (twin_value(theta + step, best, worst) - twin_value(theta - step, best, worst)) / (2 * h)
        assert gradient[code] == pytest.approx(slope, abs=1e-8)
    assert matrix.sum(axis=1) == pytest.approx(np.zeros(4), abs=1e-12)
    assert np.linalg.eigvalsh(matrix).min() > -1e-12


def test_information_is_minus_the_second_derivative_of_a_whole_choice():
    theta, h = np.array([0.4, -0.7, 1.1, 0.2]), 1e-5
    matrix = choice_terms(theta, BOTH, 2, 0)[2]
    for code in range(4):
        step = h * np.eye(4)[code]
        up, down = (choice_terms(theta + sign * step, BOTH, 2, 0)[1] for sign in (1, -1))
        assert -(up - down) / (2 * h) == pytest.approx(matrix[code], abs=1e-8)


@pytest.mark.parametrize("kind", [BEST_ONLY, WORST_ONLY])
def test_information_of_half_a_choice_is_the_mean_square_of_its_gradient(kind):
    theta = np.array([0.4, -0.7, 1.1, 0.2])
    pairs, chance = twin_chances(theta)
    expected = np.zeros((4, 4))
    for (best, worst), p in zip(pairs, chance, strict=True):
        gradient = choice_terms(theta, kind, best, worst)[1]
        expected += p * np.outer(gradient, gradient)
    assert choice_terms(theta, kind, 0, 1)[2] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("kind", [BOTH, BEST_ONLY, WORST_ONLY])
def test_kernel_stays_finite_far_out(kind):
    for theta in ([500.0, -500.0, 0.0, 1.0], [-900.0, 900.0, 3.0, 3.0]):
        for part in choice_terms(np.array(theta), kind, 1, 0):
            assert np.isfinite(part).all()


def test_a_tuple_of_two_by_hand():
    # P(best = a) = e^{2d} / (1 + e^{2d}), so 2 · (θ_a − θ_b) is the log-odds.
    choices = make([((0, 1), 0, 1)] * 30 + [((0, 1), 1, 0)] * 10, 2)
    fit = MaxDiff(prior_sd=None).fit(choices)
    assert 4 * by_item(fit)["i000"] == pytest.approx(np.log(3))
    assert by_item(fit, "unit_score")["i000"] == pytest.approx(0.75)


def test_it_equals_a_generic_optimiser_with_parts_missing_and_sizes_mixed():
    rows = [
        ((0, 1, 2, 3), 0, 3), ((1, 2, 3, 4), 2, 1), ((0, 2, 4), 4, None), ((3, 4, 0, 1), None, 3),
        ((1, 4), 1, 4), ((2, 3, 0), 3, 0), ((0, 1, 4, 2), 0, 2),
    ]  # fmt: skip
    choices = make(rows, 5)

    def loss(theta):
        total = (theta**2).sum() / (2 * 0.9**2)
        for shown, best, worst in rows:
            place = {code: at for at, code in enumerate(shown)}
            total -= twin_value(theta[list(shown)], place.get(best), place.get(worst))
        return total

    optimum = optimize.minimize(loss, np.zeros(5), method="BFGS", options={"gtol": 1e-8})
    fit = MaxDiff(prior_sd=0.9).fit(choices)
    assert scores(fit, choices) == pytest.approx(optimum.x, abs=1e-5)
    assert any("only a best or only a worst" in note for note in fit.notes)


def test_choices_that_name_one_item_as_both_are_left_out_and_counted():
    choices = data.choices(rows=100)
    spoiled = dataclasses.replace(
        choices,
        shown=np.vstack([choices.shown, choices.shown[:7]]),
        best=np.r_[choices.best, choices.best[:7]],
        worst=np.r_[choices.worst, choices.best[:7]],
        annotator=np.full(107, -1, np.int32),
        task=np.full(107, -1, np.int32),
    )
    fit = MaxDiff().fit(spoiled)
    assert by_item(fit) == pytest.approx(by_item(MaxDiff().fit(choices)), abs=1e-9)
    assert any(note.startswith("7 choices name the same item as best and worst") for note in fit.notes)


@pytest.mark.parametrize("interval", ["posterior", "sandwich", "bootstrap"])
def test_relabelling_permutes_and_places_in_a_tuple_are_irrelevant(interval):
    choices = data.choices(n=9, rows=120)
    order = np.random.default_rng(0).permutation(9)
    names = np.empty(9, object)
    names[order] = choices.items.ids
    renamed = Choices(
        items=Index(names),
        shown=order[choices.shown][:, [2, 0, 3, 1]].astype(np.int32),
        best=order[choices.best].astype(np.int32),
        worst=order[choices.worst].astype(np.int32),
    )
    first, second = (MaxDiff(interval=interval).fit(x) for x in (choices, renamed))
    for column in ("score", "sd"):
        assert by_item(second, column) == pytest.approx(by_item(first, column), abs=1e-6)


def test_order_of_choices_is_irrelevant():
    choices = data.choices(rows=150)
    backwards = Choices(
        items=choices.items, shown=choices.shown[::-1], best=choices.best[::-1], worst=choices.worst[::-1]
    )
    assert by_item(MaxDiff().fit(backwards)) == pytest.approx(by_item(MaxDiff().fit(choices)), abs=1e-9)


@pytest.mark.slow
def test_many_items_go_another_way_to_the_same_scores_and_spread(monkeypatch):
    choices = data.choices(n=25, rows=200)
    exact = MaxDiff().fit(choices)
    for module in (newton, laplace):
        monkeypatch.setattr(module, "DENSE_ITEMS", 0)
    monkeypatch.setattr(laplace, "ITERATIVE_DRAWS", 1000)
    rough = MaxDiff(draws=1000).fit(choices)
    assert scores(rough, choices) == pytest.approx(scores(exact, choices), abs=1e-6)
    assert scores(rough, choices, "sd") == pytest.approx(scores(exact, choices, "sd"), rel=0.03)


def test_extremes_stay_finite_and_are_named():
    rows = [((0, 1, 2, 3), 0, 3)] * 40 + [((0, 1, 2, 3), 0, 1)] * 5 + [((0, 1, 2, 3), 0, 2)] * 5
    with pytest.warns(SteelyardWarning, match="never beaten: 'i000'"):
        fit = MaxDiff().fit(make([*rows, ((1, 2, 3), 3, 1), ((1, 2, 3), 1, 2), ((1, 2, 3), 2, 3)], 4))
    assert fit.scores["upper"].is_finite().all()
    with pytest.warns(SteelyardWarning, match="2 groups"):
        MaxDiff().fit(make([((0, 1), 0, 1), ((0, 1), 1, 0), ((2, 3), 3, 2), ((2, 3), 2, 3)], 4))
    useless = MaxDiff().fit(make([((0, 1), 0, 0), ((0, 1), None, None)], 2))
    assert useless.scores["score"].to_list() == [None, None]
    assert useless.notes == ("no scores: no choice names different items as best and worst",)
    with pytest.raises(DataError, match="appears twice"):
        MaxDiff().fit(make([((0, 1, 1), 0, 1)], 2))


@pytest.mark.shared_data
def test_scores_of_real_choices_agree_with_counting(shared_data):
    answers = pl.read_csv(shared_data / "bws" / "semeval2012_answers.csv.gz", infer_schema=False)
    part = answers.filter(pl.col("relation") == answers["relation"][0])
    tuples = part.select("item1", "item2", "item3", "item4").to_numpy()
    index = Index(sorted(set(tuples.ravel())))
    choices = Choices(
        items=index,
        shown=np.stack([index.codes(column.tolist()) for column in tuples.T], axis=1),
        best=index.codes([name or None for name in part["best"]]),
        worst=index.codes([name or None for name in part["worst"]]),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SteelyardWarning)
        model = scores(MaxDiff().fit(choices), choices)
    assert np.corrcoef(model, scores(Counting().fit(choices), choices))[0, 1] > 0.97


def test_intervals_cover_when_items_come_from_the_prior():
    """40 data sets of 20 items; 95 % ± 2.3 is three standard errors of 800 independent intervals."""
    covered = []
    for seed in range(40):
        choices = data.choices(n=20, rows=60, seed=seed, sd=1.0)
        theta = np.random.default_rng(seed).normal(0, 1.0, 20)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SteelyardWarning)
            fit = MaxDiff().fit(choices)
        truth = theta - theta.mean()
        covered += ((scores(fit, choices, "lower") <= truth) & (truth <= scores(fit, choices, "upper"))).tolist()
    assert 0.915 <= np.mean(covered) <= 0.985
