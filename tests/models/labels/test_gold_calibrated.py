from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from benchmarks import coverage_labels
from steelyard.errors import DataError
from steelyard.models.gold import fold_of_item
from steelyard.models.labels import confusion_posterior
from steelyard.models.labels.gold_calibrated import GoldCalibrated, accuracy_by_annotators
from steelyard.observations import UNKNOWN, Index
from tests.models.label_data import accuracy, labels_of, permuted, random_labels, snow
from tests.sizes import FULL


def by_item(fit) -> dict[str, dict[str, object]]:
    return {row["item"]: row for row in fit.scores.rows(named=True)}


def test_log_odds_by_hand():
    # Ann answers three gold items of class y rightly, and of class n one rightly and one wrongly; Bob met none.
    gold = {"g1": "y", "g2": "y", "g3": "y", "g4": "n", "g5": "n"}
    rows = [("ann", item, label) for item, label in zip(gold, "yyyny", strict=True)]
    labels = labels_of([*rows, ("ann", "new", "y"), ("bob", "new", "n"), ("ann", "other", "n")])
    scores = by_item(GoldCalibrated.as_published().fit(labels, gold=gold))
    # Laplace: P(y|y) = 4/5, P(y|n) = 2/4, P(n|y) = 1/5, P(n|n) = 2/4; Bob's answer says nothing.
    assert scores["new"]["p(y)"] == pytest.approx(0.8 / (0.8 + 0.5))
    assert scores["other"]["p(n)"] == pytest.approx(0.5 / (0.5 + 0.2))


def test_a_prior_from_gold_by_hand():
    gold = {"g1": "y", "g2": "y", "g3": "y", "g4": "n"}
    labels = labels_of([*(("ann", item, label) for item, label in gold.items()), ("bob", "new", "n")])
    scores = by_item(GoldCalibrated(confusion_prior="none", prior="gold").fit(labels, gold=gold))
    assert scores["new"]["p(y)"] == pytest.approx(4 / 6)


@pytest.mark.slow
@pytest.mark.parametrize("prior", ["learned", "none"])
def test_no_item_is_scored_by_its_own_gold(prior):
    labels, truth = random_labels(0, items=25, classes=2)
    model = GoldCalibrated(folds=1000, disputed=1.0, confusion_prior=prior, calibrate=False, draws=20)
    before = by_item(model.fit(labels, gold=truth))
    for item in list(truth)[:2]:
        turned = truth | {item: "c1" if truth[item] == "c0" else "c0"}
        assert by_item(model.fit(labels, gold=turned))[item]["p(c0)"] == pytest.approx(before[item]["p(c0)"])


@pytest.mark.slow
@pytest.mark.parametrize("prior", ["learned", "none"])
def test_cross_validation_is_the_same_as_leaving_each_fold_out_by_hand(prior):
    labels, truth = random_labels(1, items=40)
    model = GoldCalibrated(folds=7, seed=3, disputed=1.0, confusion_prior=prior, calibrate=False, draws=20)
    whole = by_item(model.fit(labels, gold=truth))
    fold = fold_of_item(labels.items, np.ones(len(labels.items), np.bool_), 7, 3)
    for part in range(7):
        training_gold = {item: label for item, label in truth.items() if fold[labels.items.code(item)] != part}
        for item, row in by_item(model.fit(labels, gold=training_gold)).items():
            if item not in training_gold:
                assert row["p(c1)"] == pytest.approx(whole[item]["p(c1)"], abs=1e-12)


def test_folds_are_even_and_do_not_depend_on_order():
    items = Index(f"i{k}" for k in range(45))
    has_gold = np.arange(45) < 43
    fold = fold_of_item(items, has_gold, 20, 0)
    assert set(np.bincount(fold[has_gold])) == {2, 3}
    assert (fold[~has_gold] == UNKNOWN).all()
    backwards = fold_of_item(Index(items.ids[::-1]), has_gold[::-1], 20, 0)
    np.testing.assert_array_equal(backwards[::-1], fold)


@pytest.mark.slow
def test_the_order_of_judgments_does_not_matter():
    labels, truth = random_labels(2)
    model = GoldCalibrated(draws=20)
    one, other = (model.fit(x, gold=truth).scores for x in (labels, permuted(labels, 1)))
    np.testing.assert_allclose(one["probability"], other["probability"], atol=1e-9)


def test_gold_tells_contrary_annotators_from_good_ones():
    rng = np.random.default_rng(0)
    rows, truth = [], {}
    for item in range(100):
        true = int(rng.integers(2))
        truth[f"i{item}"] = str(true)
        rows += [("good", f"i{item}", str(true)), *((f"bad{k}", f"i{item}", str(1 - true)) for k in range(2))]
    model = GoldCalibrated(disputed=1.0)
    fit = model.fit(labels_of(rows), gold=dict(list(truth.items())[:30]))
    assert accuracy(fit, truth) == 1.0
    annotators = {row["annotator"]: row for row in fit.annotators.rows(named=True)}
    assert annotators["good"]["accuracy"] == 1.0
    assert annotators["good"]["gold_judgments"] == 30
    assert annotators["bad0"]["accuracy_upper"] < 0.2


@pytest.mark.slow
@pytest.mark.parametrize(("shares", "n_gold"), [((0.5, 0.5), 40), ((0.85, 0.15), 12), ((0.4, 0.3, 0.3), 30)])
def test_intervals_cover_the_posterior_and_probabilities_are_calibrated(shares, n_gold):
    world = coverage_labels.Population(items=100, annotators=15, per_item=5, shares=shares, beta=(6, 2))
    rows = []
    for seed in range(40 if FULL else 5):
        simulated = world.drawn(seed)
        gold = {f"i{k}": f"c{simulated.true[k]}" for k in range(n_gold)}
        fit = GoldCalibrated(draws=60, folds=5).fit(simulated.labels, gold=gold)
        rows.append(coverage_labels.measure_labels(fit, simulated, simulated.posterior, n_gold / 100))
    coverage, claimed, right = (np.mean([row[name] for row in rows]) for name in ("probability", "claimed", "right"))
    # Some 400 items, those of one data set dependent: standard errors of about two points.
    assert coverage >= 0.89
    assert claimed == pytest.approx(right, abs=0.06)


def test_the_gradient_of_the_population_is_that_of_finite_differences():
    rng = np.random.default_rng(0)
    right, missed = rng.integers(0, 6, (2, 9, 3)).astype(float)
    x = np.array([0.5, 1.2, 0.1, -0.4, 1.7])
    gradient = confusion_posterior.negative_log_posterior(x, right, missed)[1]
    for k, move in enumerate(1e-5 * np.eye(5)):
        ends = (confusion_posterior.negative_log_posterior(x + sign * move, right, missed)[0] for sign in (1, -1))
        assert gradient[k] == pytest.approx((next(ends) - next(ends)) / 2e-5, rel=1e-5)


def test_with_much_gold_drawn_confusions_are_the_observed_ones():
    counts = np.tile(1000.0 * np.array([[0.9, 0.05, 0.05], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]]), (4, 1, 1))
    population = confusion_posterior.draw_population(counts, 50, 0)
    confusions = np.exp(confusion_posterior.draw_log_confusions(counts, np.arange(4), population, 0))
    np.testing.assert_allclose(confusions.sum(axis=3), 1.0)
    np.testing.assert_allclose(confusions.mean(axis=(0, 1)), counts[0] / 1000, atol=0.01)
    assert confusions.std(axis=0).max() < 0.03


def test_errors_on_the_same_items_soften_the_probabilities():
    # Of every fourth item all annotators see the other class: their agreement is no evidence.
    rng = np.random.default_rng(1)
    true = rng.integers(0, 2, 200)
    apparent = np.where(np.arange(200) % 4 == 0, 1 - true, true)
    labels = labels_of(
        [
            (f"a{w}", f"i{k:03}", str(apparent[k] if rng.random() < 0.9 else 1 - apparent[k]))
            for k in range(200)
            for w in range(8)
        ]
    )
    gold = {f"i{k:03}": str(true[k]) for k in range(100)}
    claimed = {
        calibrate: GoldCalibrated(calibrate=calibrate, disputed=1.0, folds=5, draws=40)
        .fit(labels, gold=gold)
        .scores["probability"]
        .mean()
        for calibrate in (True, False)
    }
    assert claimed[False] > 0.95
    assert claimed[True] == pytest.approx(0.75, abs=0.06)


@pytest.mark.slow
@pytest.mark.shared_data
def test_recorded_tasks_gain_about_as_much_as_figure_7(shared_data):
    # The paper: +4.0 points (RTE) and +3.4 (temporal) averaged over 2 to 10 annotators; here about a point more.
    for name, published in (("rte", 0.040), ("temp", 0.034)):
        labels, gold = snow(shared_data, name)
        table = accuracy_by_annotators(labels, gold, range(2, 11), samples=6)
        assert table["gain"].mean() == pytest.approx(published, abs=0.015)
        assert table["majority"][-1] == pytest.approx({"rte": 0.897, "temp": 0.936}[name], abs=0.0005)
        assert table["k"].to_list() == list(range(2, 11))


def test_samples_take_k_labels_of_every_item_with_gold():
    labels, truth = random_labels(3, per_item=5)
    table = accuracy_by_annotators(labels, truth, (1, 5, 9), samples=2, seed=1)
    # Five labels an item are all there is, whichever way they are drawn.
    assert table["majority"][1] == pytest.approx(table["majority"][2])
    assert table.schema["gain_lower"] == pl.Float64
    with pytest.raises(DataError, match="cannot be sampled"):
        accuracy_by_annotators(labels, truth, (0,))


@pytest.mark.parametrize(
    ("gold", "message"),
    [
        (None, r"gold_calibrated needs gold: give --gold FILE"),
        ({}, r"gold_calibrated needs gold: give --gold FILE"),
        ({"elsewhere": "c1"}, r"no items in common.*'elsewhere'.*'i000'.*same item ids"),
        ({"i000": "c1", "i0": "c1"}, r"gold contains the item 'i0', which has no judgments"),
        ({"i000": "C1"}, r"class 'C1', which does not occur among the labels. Did you mean 'c1'"),
        ({"i000": float("nan")}, r"gold label of item 'i000' is missing. Leave"),
        ({"i000": None}, r"gold label of item 'i000' is missing. Leave"),
    ],
)
def test_bad_gold_is_refused_with_a_remedy(gold, message):
    base, _ = random_labels(4)
    rows = [
        (base.annotators[a], base.items[i], base.classes[k])
        for a, i, k in zip(base.annotator, base.item, base.label, strict=True)
    ]
    with pytest.raises(DataError, match=message):
        GoldCalibrated().fit(labels_of(rows, items=["unjudged"]), gold=gold)


def test_all_that_is_wrong_with_gold_is_said_at_once():
    labels, _ = random_labels(5)
    with pytest.raises(DataError) as caught:
        GoldCalibrated().fit(labels, gold={"i000": "c1"} | {f"z{k}": "c1" for k in range(8)})
    assert len(caught.value.problems) == 6
    assert "3 more" in str(caught.value)


def test_numbers_as_gold_mean_the_classes_they_print_as():
    labels = labels_of([("a", "x", "1"), ("a", "y", "0"), ("b", "x", "1")])
    one, other = (GoldCalibrated().fit(labels, gold=g).scores for g in ({"x": 1.0, "y": 0}, {"x": "1", "y": "0"}))
    assert one.equals(other)


def test_one_class_is_certain_and_the_reason_is_noted():
    fit = GoldCalibrated().fit(labels_of([("a", "x", "1")]), gold={"x": "1"})
    assert fit.scores.select("label", "probability", "lower").row(0) == ("1", 1.0, None)
    assert "at least two classes; all labels are '1'" in fit.notes[0]


def test_gold_of_items_that_nobody_judged_gives_no_labels_and_the_reason():
    fit = GoldCalibrated().fit(
        labels_of([("a", "x", "p"), ("a", "y", "q")], items=["unjudged"]), gold={"unjudged": "p"}
    )
    assert fit.scores["label"].null_count() == 3
    assert "none of the 1 items with gold was judged" in fit.notes[0]


def test_a_class_that_only_gold_has_is_a_class():
    labels = labels_of([(who, item, "yes") for who in "abc" for item in ("x", "y", "z")])
    fit = GoldCalibrated().fit(labels, gold={"x": "no", "y": "yes"})
    assert {"p(yes)", "p(no)"} <= set(fit.scores.columns)
    assert fit.annotators["accuracy"].to_list() == pytest.approx([0.5] * 3, abs=0.01)


def test_annotators_who_met_no_gold_are_noted_and_have_nulls():
    labels, truth = random_labels(6, items=40, annotators=12, per_item=3)
    fit = GoldCalibrated().fit(labels, gold=dict(list(truth.items())[:1]))
    assert any("9 annotators judged no item with gold" in note for note in fit.notes)
    assert fit.annotators["accuracy"].null_count() == 9
    assert fit.scores["probability"].null_count() == 0
