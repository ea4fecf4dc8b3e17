from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from steelyard.errors import ConvergenceWarning
from steelyard.models.labels.em import GroupedLabels
from steelyard.models.labels.kernels import GuessTables, mace_step
from steelyard.models.labels.mace import MACE
from steelyard.observations import UNKNOWN
from tests.models.label_data import accuracy, labels_of, permuted, random_labels, recorded


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), classes=st.integers(2, 4), with_gold=st.booleans())
def test_the_kernel_is_its_plain_twin(seed, classes, with_gold):
    labels, truth = random_labels(seed, items=15, annotators=6, per_item=3, classes=classes)
    groups = GroupedLabels.of("", labels, dict(list(truth.items())[:4]) if with_gold else None)
    rng = np.random.default_rng(seed)
    theta, guess = rng.uniform(0.1, 0.9, 6), rng.dirichlet(np.ones(classes), 6)
    guessing = (1 - theta[:, None]) * guess
    gain = np.log((theta[:, None] + guessing) / guessing)
    posterior, known = np.empty((15, classes)), np.empty(6 * classes)
    share = theta[:, None] / (theta[:, None] + guessing)
    tables = GuessTables(np.log(guessing).ravel(), gain.ravel(), share.ravel())
    log_likelihood = mace_step(groups.cells, tables, posterior, known)
    # P(label | true) in full, as the paper writes it: guess, or know.
    full = guessing[:, None, :] + theta[:, None, None] * np.eye(classes)
    score = np.full((15, classes), -np.log(classes))
    np.add.at(score, labels.item, np.log(full)[labels.annotator, :, labels.label])
    has_gold = groups.gold != UNKNOWN
    expected = special.softmax(score, axis=1)
    expected[has_gold] = np.eye(classes)[groups.gold[has_gold]]
    total = special.logsumexp(score[~has_gold], axis=1).sum() + score[has_gold, groups.gold[has_gold]].sum()
    summed = np.zeros((6, classes))
    knew = expected[labels.item, labels.label] * share[labels.annotator, labels.label]
    np.add.at(summed, (labels.annotator, labels.label), knew)
    np.testing.assert_allclose(posterior, expected, atol=1e-12)
    np.testing.assert_allclose(known.reshape(summed.shape), summed, atol=1e-12)
    assert log_likelihood == pytest.approx(total)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), method=st.sampled_from(["vb", "em"]))
def test_the_bound_never_falls(seed, method):
    labels, _ = random_labels(seed, skill=0.35)
    groups = GroupedLabels.of("", labels, None)
    objectives = [
        MACE(method=method, restarts=1, max_iterations=steps, tolerance=-np.inf)
        .run(groups, labels.annotators.ids)[0]
        .objective
        for steps in range(1, 12)
    ]
    assert (np.diff(objectives) >= -1e-8 * abs(objectives[-1])).all()


@pytest.mark.slow
@pytest.mark.shared_data
@pytest.mark.parametrize(("name", "closeness"), [("bluebird", 0.999), ("dog", 0.98), ("web", 0.98)])
def test_agrees_with_crowd_kit_where_its_tables_are_lined_up(shared_data, name, closeness):
    # crowd-kit 1.4 numbers annotators and classes by first appearance in one table and by order in the other, so
    # they are put in that order first; on shuffled rows its labels change.
    pd = pytest.importorskip("pandas")
    crowdkit = pytest.importorskip("crowdkit.aggregation")
    labels, truth = recorded(shared_data, name)
    order = np.argsort(labels.annotator, kind="stable")
    code, names = pd.factorize(labels.label[order])
    frame = pd.DataFrame({"task": labels.item[order], "worker": labels.annotator[order], "label": code})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = crowdkit.MACE(n_restarts=1, n_iter=50).fit(frame)
    theirs = names[peer.labels_.sort_index().to_numpy()]
    competence = peer.spamming_[:, 1] / peer.spamming_.sum(axis=1)
    fit = MACE(interval="none").fit(labels)
    ours = labels.classes.codes(fit.scores["label"].to_list())
    assert (ours == theirs).mean() > 0.999
    assert np.corrcoef(competence, fit.annotators["competence"])[0, 1] > closeness
    right = np.mean([theirs[labels.items.code(i)] == labels.classes.code(k) for i, k in truth.items()])
    assert accuracy(fit, truth) == pytest.approx(right, abs=0.001)


def test_spammers_are_told_from_the_competent():
    rng = np.random.default_rng(0)
    rows = []
    for item in range(300):
        true = int(rng.integers(3))
        rows += [(f"good{k}", f"i{item}", f"c{true}") for k in range(3) if rng.random() < 0.9]
        rows += [(f"spam{k}", f"i{item}", f"c{rng.integers(3)}") for k in range(3)]
        rows.append(("always1", f"i{item}", "c1"))
    fit = MACE(interval="none").fit(labels_of(rows))
    competences = dict(zip(fit.annotators["annotator"], fit.annotators["competence"], strict=True))
    assert min(competences[f"good{k}"] for k in range(3)) > 0.9
    assert max(competences[name] for name in ("spam0", "spam1", "spam2", "always1")) < 0.15


def test_the_order_of_judgments_does_not_matter():
    labels, _ = random_labels(3)
    one, other = (MACE().fit(x).scores for x in (labels, permuted(labels, 1)))
    np.testing.assert_allclose(one["probability"], other["probability"], atol=1e-4)
    assert one["label"].to_list() == other["label"].to_list()


def test_the_same_seed_gives_the_same_result():
    labels, _ = random_labels(4, skill=0.35)
    assert MACE(seed=7).fit(labels).scores.equals(MACE(seed=7).fit(labels).scores)


def test_more_starts_never_end_lower():
    labels, _ = random_labels(5, skill=0.3)
    groups = GroupedLabels.of("", labels, None)
    one, ten = (MACE(restarts=n).run(groups, labels.annotators.ids)[0].objective for n in (1, 10))
    assert ten >= one


def test_gold_settles_its_items_and_intervals_hold_the_probability():
    labels, truth = random_labels(6)
    gold = dict(list(truth.items())[:20])
    fit = MACE().fit(labels, gold=gold)
    table = fit.scores
    assert (table["lower"] <= table["probability"]).all()
    assert (table["probability"] <= table["upper"]).all()
    assert accuracy(fit, gold) == 1.0
    annotators = fit.annotators
    assert (annotators["competence_lower"] <= annotators["competence"]).all()
    assert (annotators["competence"] <= annotators["competence_upper"]).all()


@pytest.mark.parametrize("method", ["vb", "em"])
def test_extremes_give_numbers(method):
    one_item = labels_of([(f"a{k}", "x", "p" if k else "q") for k in range(6)])
    one_annotator = labels_of([("a", f"i{k}", "pq"[k % 2]) for k in range(6)], items=["unjudged"])
    agreed = labels_of([(f"a{k}", f"i{j}", "pq"[j % 2]) for k in range(6) for j in range(6)] * 2)
    for labels in (one_item, one_annotator, agreed):
        fit = MACE(method=method, max_iterations=5000).fit(labels)
        probabilities = fit.scores["probability"].drop_nulls()
        assert probabilities.is_finite().all()
        assert len(probabilities) == len(np.unique(labels.item))
        assert fit.annotators["competence"].is_between(0, 1).all()


def test_an_unsettled_fit_warns_with_iterations_and_gap():
    labels, _ = random_labels(9, skill=0.3)
    with pytest.warns(ConvergenceWarning, match=r"mace did not converge in 2 iterations"):
        fit = MACE(max_iterations=2, interval="none").fit(labels)
    assert not fit.converged
