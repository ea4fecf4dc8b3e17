from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from steelyard.errors import ConvergenceWarning, DataError
from steelyard.models.labels.dawid_skene import PRIOR_STEPS, DawidSkene
from steelyard.models.labels.em import GroupedLabels
from steelyard.models.labels.kernels import annotators_by_item, dawid_skene_step, group_by_item
from steelyard.observations import UNKNOWN, Labels
from tests.models.label_data import accuracy, labels_of, permuted, random_labels, recorded

PLAIN = DawidSkene(confusion_prior="none", calibrate=False, tolerance=1e-7)
"""The model of 1979."""
FIFTY = replace(PLAIN, max_iterations=50, tolerance=0, smoothing=0.01, interval="none")


@pytest.mark.slow
@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("name", "expected"), [("bluebird", 0.8981), ("dog", 0.8426), ("web", 0.8255), ("product", 0.9396)]
)
def test_recorded_sets_give_the_accuracies_of_their_readme(shared_data, name, expected):
    labels, truth = recorded(shared_data, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fit = FIFTY.fit(labels)
    assert round(accuracy(fit, truth), 4) == expected


@pytest.mark.slow
@pytest.mark.shared_data
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("name", ["bluebird", "dog"])
def test_agrees_with_crowd_kit_after_as_many_steps(shared_data, name):
    pd = pytest.importorskip("pandas")
    crowdkit = pytest.importorskip("crowdkit.aggregation")
    labels, _ = recorded(shared_data, name)
    frame = pd.DataFrame({"task": labels.item, "worker": labels.annotator, "label": labels.label})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = crowdkit.DawidSkene(n_iter=30, tol=-1).fit(frame)
        model = replace(PLAIN, max_iterations=30, tolerance=0, smoothing=0, interval="none")
        groups = GroupedLabels.of("", labels, None)
        state, _, _ = model.run(groups)
    theirs = peer.probas_.sort_index()[sorted(peer.probas_)].to_numpy()
    np.testing.assert_allclose(state.posterior, theirs, atol=1e-4)  # the peer clips at 1e-10
    prior = peer.priors_.sort_index().to_numpy()
    error = peer.errors_.reindex(
        pd.MultiIndex.from_product([range(groups.n_annotators), range(groups.n_classes)]), fill_value=1e-10
    )[sorted(peer.errors_)].to_numpy()
    theirs_at_end = log_likelihood(labels, np.log(error).reshape(-1, groups.n_classes, groups.n_classes), np.log(prior))
    counts = state.counts / state.counts.sum(axis=1, keepdims=True).clip(1e-300)
    ours_at_end = log_likelihood(labels, np.log(counts.clip(1e-300)), np.log(state.posterior.mean(axis=0)))
    assert ours_at_end >= theirs_at_end - 1e-6 * abs(theirs_at_end)


def log_likelihood(labels: Labels, log_confusion: np.ndarray, log_prior: np.ndarray) -> float:
    """Plain twin: the log-likelihood from a (annotator, given, true) table."""
    score = np.tile(log_prior, (len(labels.items), 1))
    np.add.at(score, labels.item, log_confusion[labels.annotator, labels.label])
    return float(special.logsumexp(score[np.unique(labels.item)], axis=1).sum())


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), classes=st.integers(2, 4), with_gold=st.booleans())
def test_the_kernel_is_its_plain_twin(seed, classes, with_gold):
    labels, truth = random_labels(seed, items=15, annotators=6, per_item=3, classes=classes)
    groups = GroupedLabels.of("", labels, dict(list(truth.items())[:4]) if with_gold else None)
    rng = np.random.default_rng(seed)
    log_confusion = np.log(rng.dirichlet(np.ones(classes), (6, classes))).swapaxes(1, 2)
    log_prior = np.log(rng.dirichlet(np.ones(classes)))
    posterior, counts = np.empty((15, classes)), np.empty((6 * classes, classes))
    by_cell = np.ascontiguousarray(log_confusion).reshape(-1, classes)
    step_log_likelihood = dawid_skene_step(groups.cells, by_cell, log_prior, posterior, counts)
    score = np.tile(log_prior, (15, 1))
    np.add.at(score, labels.item, log_confusion[labels.annotator, labels.label])
    has_gold = groups.gold != UNKNOWN
    expected = special.softmax(score, axis=1)
    expected[has_gold] = np.eye(classes)[groups.gold[has_gold]]
    total = special.logsumexp(score[~has_gold], axis=1).sum() + score[has_gold, groups.gold[has_gold]].sum()
    summed = np.zeros((6, classes, classes))
    np.add.at(summed, (labels.annotator, labels.label), expected[labels.item])
    np.testing.assert_allclose(posterior, expected, atol=1e-12)
    np.testing.assert_allclose(counts.reshape(summed.shape), summed, atol=1e-12)
    assert step_log_likelihood == pytest.approx(total)


@settings(max_examples=25, deadline=None)
@given(item=st.lists(st.integers(0, 9), min_size=1, max_size=60))
def test_grouping_is_a_stable_sort(item):
    codes = np.array(item, np.int32)
    start, order = group_by_item(codes, 10)
    np.testing.assert_array_equal(order, np.argsort(codes, kind="stable"))
    np.testing.assert_array_equal(np.diff(start), np.bincount(codes, minlength=10))
    annotator = (np.arange(len(codes)) % 3).astype(np.int32)
    expected = [len({a for a, i in zip(annotator, codes, strict=True) if i == k}) for k in range(10)]
    assert annotators_by_item(start, annotator[order], 3).tolist() == expected


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    smoothing=st.sampled_from([0.0, 0.01, 1.0]),
    prior=st.sampled_from(["estimated", "uniform"]),
    learned=st.booleans(),
)
def test_the_likelihood_never_falls(seed, smoothing, prior, learned):
    labels, truth = random_labels(seed, skill=0.3)
    for gold in (None, dict(list(truth.items())[:10])):
        groups = GroupedLabels.of("", labels, gold)
        objectives = [
            DawidSkene(
                confusion_prior="learned" if learned else "none",
                max_iterations=steps,
                tolerance=-np.inf,
                smoothing=smoothing,
                prior=prior,
            )
            .run(groups)[0]
            .objective
            # While the prior is learnt, the objective changes.
            for steps in (range(PRIOR_STEPS, PRIOR_STEPS + 8) if learned else range(1, 12))
        ]
        assert (np.diff(objectives) >= -1e-8 * abs(objectives[-1])).all()


def test_the_order_of_judgments_does_not_matter():
    labels, _ = random_labels(3)
    one, other = (DawidSkene().fit(x).scores for x in (labels, permuted(labels, 1)))
    for column in ("probability", "lower", "upper"):
        np.testing.assert_allclose(one[column], other[column], atol=1e-6)
    assert one["label"].to_list() == other["label"].to_list()


def test_renaming_items_and_classes_renames_the_result():
    labels, _ = random_labels(4)
    rows = [
        (labels.annotators[a], labels.items[i], labels.classes[k])
        for a, i, k in zip(labels.annotator, labels.item, labels.label, strict=True)
    ]
    turned = labels_of([(a, "x" + i[::-1], {"c0": "z", "c1": "y", "c2": "x"}[k]) for a, i, k in rows])
    one = {row["item"]: row for row in DawidSkene(interval="none").fit(labels).scores.rows(named=True)}
    other = {row["item"]: row for row in DawidSkene(interval="none").fit(turned).scores.rows(named=True)}
    for item, row in one.items():
        renamed = other["x" + item[::-1]]
        assert renamed["p(z)"] == pytest.approx(row["p(c0)"], abs=1e-9)
        assert renamed["p(x)"] == pytest.approx(row["p(c2)"], abs=1e-9)


def test_every_interval_holds_its_probability():
    labels, _ = random_labels(5)
    for how in ("bootstrap", "model"):
        table = DawidSkene(interval=how).fit(labels).scores
        assert (table["lower"] <= table["probability"]).all()
        assert (table["probability"] <= table["upper"]).all()
        assert table["interval"].unique().to_list() == ["bootstrap(annotators)" if how == "bootstrap" else "model"]


def test_a_perfect_annotator_is_told_from_a_contrary_and_an_idle_one():
    rng = np.random.default_rng(0)
    rows = []
    for item in range(200):
        true = int(rng.integers(2))
        rows += [(f"good{k}", f"i{item}", str(true)) for k in range(3)]
        rows += [("contrary", f"i{item}", str(1 - true)), ("idle", f"i{item}", "1")]
    fit = DawidSkene(interval="none").fit(labels_of(rows))
    annotators = {row["annotator"]: row for row in fit.annotators.rows(named=True)}
    assert annotators["good0"]["accuracy"] > 0.99
    assert annotators["contrary"]["accuracy"] < 0.01
    assert annotators["idle"]["p(1|0)"] > 0.99
    assert annotators["idle"]["p(0|0)_upper"] < 0.1


def test_gold_settles_its_items_and_teaches_about_the_others():
    labels, truth = random_labels(6, skill=0.35, items=150)
    gold = dict(list(truth.items())[:100])
    table = DawidSkene().fit(labels, gold=gold).scores
    for row in table.rows(named=True):
        if row["item"] in gold:
            assert (row["label"], row["probability"], row["interval"]) == (gold[row["item"]], 1.0, "gold")
    with_gold, without = [], []
    for seed in range(8):
        labels, truth = random_labels(seed, skill=0.35, items=150)
        gold, rest = dict(list(truth.items())[:100]), dict(list(truth.items())[100:])
        with_gold.append(accuracy(DawidSkene(interval="none").fit(labels, gold=gold), rest))
        without.append(accuracy(DawidSkene(interval="none").fit(labels), rest))
    assert np.mean(with_gold) >= np.mean(without)


def test_few_annotators_have_no_bootstrap_intervals_and_a_reason():
    labels, _ = random_labels(7, annotators=4, per_item=3)
    fit = DawidSkene(interval="bootstrap").fit(labels)
    assert fit.scores["lower"].null_count() == len(fit.scores)
    assert any("at least 5 annotators" in note for note in fit.notes)


def test_an_item_with_a_single_annotator_has_no_bootstrap_interval():
    labels, _ = random_labels(8)
    rows = [
        (labels.annotators[a], labels.items[i], labels.classes[k])
        for a, i, k in zip(labels.annotator, labels.item, labels.label, strict=True)
    ]
    fit = DawidSkene(interval="bootstrap").fit(labels_of([*rows, ("a00", "lonely", "c1")], items=["unjudged"]))
    scores = {row["item"]: row for row in fit.scores.rows(named=True)}
    assert scores["lonely"]["probability"] is not None
    assert scores["lonely"]["lower"] is None
    assert scores["unjudged"]["label"] is None
    assert any("single annotator" in note for note in fit.notes)


@pytest.mark.parametrize(
    "model", [DawidSkene(), DawidSkene(interval="bootstrap"), PLAIN, replace(PLAIN, smoothing=0, calibrate=True)]
)
def test_extremes_give_numbers(model):
    one_item = labels_of([(f"a{k}", "x", "p" if k else "q") for k in range(6)])
    one_annotator = labels_of([("a", f"i{k}", "pq"[k % 2]) for k in range(6)])
    agreed = labels_of([(f"a{k}", f"i{j}", "pq"[j % 2]) for k in range(6) for j in range(6)] * 2)
    for labels in (one_item, one_annotator, agreed):
        fit = model.fit(labels)
        assert fit.scores["probability"].is_finite().all()
        assert fit.scores["probability"].null_count() == 0
        assert fit.annotators["accuracy"].is_between(0, 1).all()


def test_a_fit_without_convergence_warns_with_iterations_and_gain():
    labels, _ = random_labels(9, skill=0.3)
    with pytest.warns(ConvergenceWarning, match=r"in 2 iterations.*per label"):
        fit = DawidSkene(max_iterations=2, interval="none").fit(labels)
    assert not fit.converged
    assert fit.iterations == 2


def test_gold_of_unknown_classes_and_items_is_refused_with_a_suggestion():
    labels, _ = random_labels(10)
    with pytest.raises(DataError, match=r"class 'C1', which does not occur among the labels. Did you mean 'c1'"):
        DawidSkene().fit(labels, gold={"i000": "C1"})
    with pytest.raises(DataError, match=r"item 'i0000'.*Did you mean 'i000'"):
        DawidSkene().fit(labels, gold={"i001": "c1", "i0000": "c1"})
