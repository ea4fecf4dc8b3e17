from __future__ import annotations

import numpy as np
import pytest

from steelyard.errors import DataError
from steelyard.models.ratings.gaussian_calibration import GaussianCalibration, ResidualSums, Sampler
from steelyard.models.table import competition_ranks
from steelyard.observations import Ratings
from tests.models.label_data import ratings_of, read_columns


def simulate(seed: int, items: int = 60, annotators: int = 15, per_item: int = 5, gold: int = 20):
    """Draw ratings with biases of sd 8 and noise about 10 on a scale too wide to cut them."""
    rng = np.random.default_rng(seed)
    score = 50 + 15 * rng.standard_normal(items)
    bias, noise = 8 * rng.standard_normal(annotators), 10 * np.exp(0.4 * rng.standard_normal(annotators))
    rows = []
    for item in range(items):
        for a in rng.choice(annotators, per_item, replace=False):
            value = score[item] + bias[a] + noise[a] * rng.standard_normal()
            rows.append((f"a{a:02}", f"i{item:03}", value))
    gold_scores = {f"i{k:03}": float(score[k]) for k in range(gold)}
    return ratings_of(rows, (-300.0, 400.0)), score, bias, noise, gold_scores


def in_order(fit):
    return fit.scores.sort("item")


@pytest.mark.slow
def test_intervals_cover_scores_ranks_biases_and_noise():
    coverage: dict[str, list[float]] = {name: [] for name in ("score", "rank", "bias", "noise")}
    for seed in range(20):
        ratings, score, bias, noise, known = simulate(seed)
        fit = GaussianCalibration(draws=400, folds=4).fit(ratings, gold=known)
        table = in_order(fit)
        truths = {
            "score": (table, "", score),
            "rank": (table, "rank_", competition_ranks(score)),
            "bias": (fit.annotators, "bias_", bias),
            "noise": (fit.annotators, "noise_", noise),
        }
        for name, (frame, prefix, truth) in truths.items():
            lower, upper = (frame[f"{prefix}{end}"].to_numpy() for end in ("lower", "upper"))
            coverage[name].append(float(((lower <= truth) & (truth <= upper)).mean()))
    # 20 data sets of 60 items that share annotators: a standard error of about a point.
    assert 0.92 <= np.mean(coverage["score"]) <= 0.98
    assert np.mean(coverage["rank"]) >= 0.92
    assert np.mean(coverage["bias"]) >= 0.89
    assert np.mean(coverage["noise"]) >= 0.89


@pytest.mark.slow
def test_scores_are_nearer_the_truth_than_the_mean():
    ours, plain = [], []
    for seed in range(10):
        ratings, score, _, _, known = simulate(seed)
        table = in_order(GaussianCalibration(draws=100, folds=4).fit(ratings, gold=known))
        mean = np.bincount(ratings.item, ratings.value) / np.bincount(ratings.item)
        ours.append(np.mean((table["score"].to_numpy() - score)[20:] ** 2))
        plain.append(np.mean((mean - score)[20:] ** 2))
    assert np.mean(ours) < 0.85 * np.mean(plain)


def test_much_gold_gives_the_plain_bias_and_little_gold_little_of_it():
    rng = np.random.default_rng(0)
    # Zoe is 20 too high, on 200 gold items or on one; four others are unbiased.
    for met, low, high in ((200, 18.5, 21.5), (1, -5.0, 15.0)):
        rows, gold = [], {}
        for item in range(200):
            x = rng.uniform(20, 70)
            gold[f"i{item:03}"] = x
            rows += [(f"a{k}", f"i{item:03}", x + 5 * rng.standard_normal()) for k in range(4)]
            if item < met:
                rows.append(("zoe", f"i{item:03}", x + 20 + (5 * rng.standard_normal() if met > 1 else 0.0)))
        fit = GaussianCalibration(draws=400).fit(ratings_of(rows, (-100.0, 200.0)), gold=gold)
        zoe = fit.annotators.row(4, named=True)
        assert low < zoe["bias"] < high
        assert zoe["bias_lower"] < zoe["bias"] < zoe["bias_upper"]
        if met > 1:
            assert 4.4 < zoe["noise"] < 5.6


def test_a_noisy_annotator_counts_for_less():
    rng = np.random.default_rng(1)
    rows, gold = [], {}
    for item in range(100):
        x = rng.uniform(30, 70)
        gold[f"i{item:03}"] = x
        rows += [("sharp", f"i{item:03}", x + 2 * rng.standard_normal())]
        rows += [("blunt", f"i{item:03}", x + 25 * rng.standard_normal())]
    rows += [("sharp", "new", 40.0), ("blunt", "new", 80.0)]
    fit = GaussianCalibration(draws=400).fit(ratings_of(rows, (-100.0, 200.0)), gold=gold)
    new = next(row for row in fit.scores.rows(named=True) if row["item"] == "new")
    assert 38 < new["score"] < 43


@pytest.mark.slow
def test_no_item_is_scored_by_its_own_gold():
    ratings, _, _, _, known = simulate(3)
    # Counted in, 150 more would move the bias of each of its five annotators by about 20; sampling moves less than 1.
    first = ratings.items.ids[0]
    near, far = (
        in_order(GaussianCalibration(folds=100).fit(ratings, gold=known | {first: value}))["score"][0]
        for value in (known[first], known[first] + 150)
    )
    assert far == pytest.approx(near, abs=1.5)


def test_left_out_sums_are_those_of_the_rest():
    rng = np.random.default_rng(0)
    annotator, part = rng.integers(0, 4, 50).astype(np.int32), rng.integers(0, 3, 50).astype(np.int32)
    residual = 1000 + rng.standard_normal(50)
    sums = ResidualSums.leaving_out(annotator, residual, part, 4, 3)
    for row in range(4):
        for who in range(4):
            rest = residual[(annotator == who) & (part != row)]
            assert sums.n[row, who] == len(rest)
            assert sums.mean[row, who] == pytest.approx(rest.mean())
            assert sums.squares[row, who] == pytest.approx(((rest - rest.mean()) ** 2).sum())


def test_the_sampler_finds_the_plain_posterior_where_gold_is_plenty():
    rng = np.random.default_rng(2)
    annotator = np.repeat(np.arange(6), 400).astype(np.int32)
    bias, noise = np.array([-20.0, -5, 0, 3, 8, 30]), np.array([3.0, 5, 8, 8, 12, 20])
    residual = bias[annotator] + noise[annotator] * rng.standard_normal(2400)
    sums = ResidualSums.leaving_out(annotator, residual, np.zeros(2400, np.int32), 6, 1)
    all_of_them = ResidualSums(*(x[-1:] for x in sums))
    sweeps = list(Sampler(all_of_them, 100.0, rng).sweeps(1000))
    plain = np.array([residual[annotator == a].mean() for a in range(6)])
    spread = np.array([residual[annotator == a].std(ddof=1) for a in range(6)])
    np.testing.assert_allclose(np.mean([d.bias[0] for d in sweeps], axis=0), plain, atol=0.15)
    np.testing.assert_allclose(np.std([d.bias[0] for d in sweeps], axis=0), spread / 20, rtol=0.1)
    np.testing.assert_allclose(np.sqrt(np.mean([d.variance[0] for d in sweeps], axis=0)), spread, rtol=0.02)


def test_the_order_of_judgments_does_not_matter():
    ratings, _, _, _, known = simulate(4)
    order = np.random.default_rng(0).permutation(len(ratings))
    other = Ratings(
        items=ratings.items,
        annotators=ratings.annotators,
        item=ratings.item[order],
        annotator=ratings.annotator[order],
        value=ratings.value[order],
        scale=ratings.scale,
    )
    one, two = (in_order(GaussianCalibration(draws=100).fit(x, gold=known)) for x in (ratings, other))
    np.testing.assert_allclose(one["score"], two["score"], atol=1e-6)
    np.testing.assert_allclose(one["lower"], two["lower"], atol=1e-6)


def test_scores_and_intervals_stay_within_the_scale_and_hold_together():
    rows = [(f"a{k}", f"i{j}", 100.0 if j % 2 else 0.0) for k in range(5) for j in range(12)]
    gold = {f"i{j}": 100.0 if j % 2 else 0.0 for j in range(6)}
    table = GaussianCalibration(draws=100).fit(ratings_of(rows, (0.0, 100.0)), gold=gold).scores
    for column in ("score", "lower", "upper"):
        assert table[column].is_between(0, 100).all()
    assert (table["lower"] <= table["score"]).all()
    assert (table["score"] <= table["upper"]).all()


@pytest.mark.parametrize("n_gold", [2, 3])
def test_little_gold_and_one_annotator_give_numbers(n_gold):
    rows = [("only", f"i{j}", 10.0 * j) for j in range(8)]
    gold = {f"i{j}": 10.0 * j + 1 for j in range(n_gold)}
    fit = GaussianCalibration(draws=100).fit(ratings_of(rows, (0.0, 100.0)), gold=gold)
    assert fit.scores["score"].is_finite().all()
    assert fit.scores["lower"].null_count() == 0


def test_one_judged_item_with_gold_gives_no_scores_and_the_reason():
    ratings = ratings_of([("a", f"i{j}", 10.0 * j) for j in range(5)], (0.0, 100.0))
    fit = GaussianCalibration().fit(ratings, gold={"i1": 3.0})
    assert fit.scores["score"].null_count() == 5
    assert fit.notes == ("no scores: gaussian_calibration needs two judged items with gold; there is one",)


@pytest.mark.parametrize(
    ("gold", "message"),
    [
        (None, r"gaussian_calibration needs gold: give --gold FILE"),
        ({"elsewhere": 3.0}, r"no items in common"),
        ({"i1": 3.0, "i2": float("nan")}, r"gold score of item 'i2' is not a number"),
        ({"i1": 3.0, "i2": "high"}, r"gold score of item 'i2' is not a number \('high'\)"),
        ({"i1": 3.0, "i2": 700.0}, r"'i2', 700, is outside the ratings' scale 0 to 100"),
        ({"i1": 3.0, "i22": 7.0}, r"gold contains the item 'i22'.*Did you mean 'i2'"),
    ],
)
def test_bad_gold_is_refused_with_a_remedy(gold, message):
    ratings = ratings_of([("a", f"i{j}", 10.0 * j) for j in range(5)], (0.0, 100.0))
    with pytest.raises(DataError, match=message):
        GaussianCalibration().fit(ratings, gold=gold)


@pytest.mark.slow
@pytest.mark.shared_data
def test_recorded_affect_gains_about_what_the_paper_found(shared_data):
    # The paper: +0.6 points of Pearson averaged over numbers of annotators; one worker model for all seven emotions.
    columns = read_columns(shared_data / "snow2008" / "affect.csv.gz", "emotion", "annotator", "item", "value", "gold")
    rows = [(who, f"{emotion}:{item}", float(value)) for emotion, who, item, value, _ in columns]
    gold = {f"{emotion}:{item}": float(known) for emotion, _, item, _, known in columns}
    rng = np.random.default_rng(0)
    gains = []
    for k in (2, 4, 6, 8):
        for _ in range(2):
            rows_by_item: dict[str, list[tuple[str, str, float]]] = {}
            for index in rng.permutation(len(rows)):
                rows_by_item.setdefault(rows[index][1], []).append(rows[index])
            sample = [row for judged in rows_by_item.values() for row in judged[:k]]
            ratings = ratings_of(sample, (-100.0, 100.0))
            score = in_order(GaussianCalibration(draws=100).fit(ratings, gold=gold))["score"].to_numpy()
            mean = np.bincount(ratings.item, ratings.value) / np.bincount(ratings.item)
            truth = np.array([gold[item] for item in ratings.items.ids])
            emotion = np.array([item.split(":")[0] for item in ratings.items.ids])
            of = [emotion == name for name in np.unique(emotion)]
            gains.append(
                np.mean([np.corrcoef(score[e], truth[e])[0, 1] - np.corrcoef(mean[e], truth[e])[0, 1] for e in of])
            )
    assert 0.0 < np.mean(gains) < 0.02
