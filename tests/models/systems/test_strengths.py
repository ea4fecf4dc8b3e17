"""Strengths of systems from comparisons: closed forms, other libraries, and recorded votes."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import optimize

from steelyard import BradleyTerry, compare_systems
from steelyard.errors import DataError
from steelyard.models.systems.comparison import SystemOptions, compare
from steelyard.models.systems.contextual import fit_contextual
from steelyard.models.systems.judgments import SystemJudgments
from tests.models.systems.data import index, votes

WORDS = ["model_a", "model_b", "a", "b", "left", "right", "tie", "both_bad", "tie (bothbad)"]


def test_two_systems_have_the_log_odds_and_its_standard_error():
    outcome = np.repeat([1, -1], [60, 40])
    comparison = compare(SystemJudgments.of_systems(votes([0] * 100, [1] * 100, outcome, 2)))
    row = comparison.differences.row(0, named=True)
    assert row["difference"] == pytest.approx(np.log(60 / 40), abs=1e-6)
    # Woolf's formula, times 100/99 for the clusters and 99/98 for the two systems.
    assert row["sd"] == pytest.approx(np.sqrt((1 / 60 + 1 / 40) * 100 / 98), rel=1e-6)
    assert (row["wins"], row["ties"], row["losses"]) == (60, 0, 40)


def test_votes_of_one_judge_count_as_one_cluster():
    rng = np.random.default_rng(1)
    left, right = np.zeros(400, int), np.ones(400, int)
    # Each of 20 judges always gives the same answer.
    judge = np.repeat(np.arange(20), 20).astype(np.int32)
    outcome = rng.choice([-1, 1], 20)[judge]
    by_judge = votes(left, right, outcome, 2, annotators=index("j", 20), annotator=judge)
    alone = compare(SystemJudgments.of_systems(votes(left, right, outcome, 2)))
    clustered = compare(SystemJudgments.of_systems(by_judge))
    ratio = clustered.differences["sd"][0] / alone.differences["sd"][0]
    assert ratio == pytest.approx(np.sqrt(20), rel=0.05)


@pytest.mark.parametrize("as_frame", ["pandas", "polars"])
def test_a_frame_of_votes_becomes_a_leaderboard(as_frame):
    rows = {"model_a": ["x", "y", "z"] * 9, "model_b": ["y", "z", "x"] * 9, "winner": [w for w in WORDS for _ in "abc"]}
    rows["judge"] = ["ann", "bob", "cid"] * 9
    frame = pl.DataFrame(rows)
    comparison = compare_systems(frame.to_pandas() if as_frame == "pandas" else frame, unit="elo")
    assert comparison.scores["score"].mean() == pytest.approx(1000)
    # Three spellings for each side and three of a tie, on each of the three pairs.
    assert comparison.differences.select("wins", "ties", "losses").rows() == [(3, 3, 3)] * 3
    assert comparison.scores["cluster"].to_list() == [1, 1, 1]


@pytest.mark.parametrize("kind", ["object", "string[python]"])
def test_frames_need_no_pyarrow(monkeypatch, kind):
    import sys

    pandas = pytest.importorskip("pandas")
    for name in [name for name in sys.modules if name.split(".")[0] == "pyarrow"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    frame = pandas.DataFrame(
        {"model_a": ["x", "y"] * 20, "model_b": ["y", "x"] * 20, "winner": ["model_a", "tie"] * 20}, dtype=kind
    )
    frame["n"] = range(40)
    frame.loc[3, "winner"] = None
    comparison = compare_systems(frame)
    assert comparison.scores["system"].to_list() == ["x", "y"]
    assert comparison.scores["judgments"].to_list() == [39, 39]


@pytest.mark.slow
def test_covariates_give_the_coefficients_of_logistic_regression():
    linear_model = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(2)
    comparisons, features = contextual_data(rng)
    fitted = fit_contextual(comparisons, features)
    design = np.zeros((len(comparisons), 5))
    design[np.arange(len(design)), comparisons.left] += 1
    design[np.arange(len(design)), comparisons.right] -= 1
    whole = np.column_stack([design[:, 1:], features])
    # A tie is half a win for each side: two rows of half the weight.
    outcome = np.concatenate([np.ones(len(whole)), np.zeros(len(whole))])
    weight = np.concatenate([(comparisons.outcome + 1) / 2, (1 - comparisons.outcome) / 2])
    keep = weight > 0
    peer = linear_model.LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-10, max_iter=5000)
    peer.fit(np.tile(whole, (2, 1))[keep], outcome[keep], sample_weight=weight[keep])
    expected = np.r_[0, peer.coef_[0][:4]]
    assert fitted.influence.score[:5] == pytest.approx(expected - expected.mean(), abs=1e-3)
    assert fitted.coefficients == pytest.approx(peer.coef_[0][4:], abs=1e-3)


def test_covariates_equal_those_of_arena_rank():
    # It brings JAX, which is too large for every test run.
    missing = "pip install arena-rank"
    arena = pytest.importorskip("arena_rank.models.contextual_bradley_terry", reason=missing)
    utils = pytest.importorskip("arena_rank.utils.data_utils", reason=missing)
    comparisons, features = contextual_data(np.random.default_rng(3))
    names = np.array(comparisons.items.ids)
    import pandas

    frame = pandas.DataFrame(
        {
            "model_a": names[comparisons.left],
            "model_b": names[comparisons.right],
            "winner": np.array(["model_b", "tie", "model_a"])[comparisons.outcome + 1],
            **{f"f{column}": features[:, column] for column in range(features.shape[1])},
        }
    )
    columns = [f"f{column}" for column in range(features.shape[1])]
    dataset = utils.ContextualPairDataset.from_pandas(
        frame, feature_cols=columns, reweighted=False, normalize_features=False
    )
    peer = arena.ContextualBradleyTerry(n_competitors=5, n_features=2, reg=0.0)
    peer.fit(dataset)
    fitted = fit_contextual(comparisons, features)
    assert np.asarray(peer.params["coeffs"]) == pytest.approx(fitted.coefficients, abs=1e-3)


def contextual_data(rng):
    left = rng.integers(0, 5, 3000)
    right = (left + rng.integers(1, 5, 3000)) % 5
    features = rng.normal(size=(3000, 2)) * [1.0, 30.0]
    chance = 1 / (1 + np.exp(-(0.3 * (right - left) + features @ [0.8, -0.02])))
    outcome = np.where(rng.random(3000) < chance, 1, -1)
    outcome[rng.random(3000) < 0.15] = 0
    return votes(left, right, outcome, 5), features


def test_a_constant_covariate_beside_every_system_is_refused():
    comparisons, features = contextual_data(np.random.default_rng(4))
    with pytest.raises(DataError, match="collinear with the systems"):
        fit_contextual(comparisons, np.column_stack([features, features[:, 0]]))


def test_covariates_are_columns_or_differences_of_columns():
    rng = np.random.default_rng(5)
    comparisons, _ = contextual_data(rng)
    names, words = np.array(comparisons.items.ids), np.array(["b", "tie", "a"])
    chars = rng.integers(10, 90, (2, 3000))
    frame = pl.DataFrame(
        {
            "model_a": names[comparisons.left],
            "model_b": names[comparisons.right],
            "winner": words[comparisons.outcome + 1],
            "chars_a": chars[0],
            "chars_b": chars[1],
            "gap": chars[0] - chars[1],
        }
    )
    # A row without a winner is left out, and so is its covariate.
    frame = frame.with_columns(pl.when(pl.row_index() % 7 == 0).then(None).otherwise("winner").alias("winner"))
    both = [compare_systems(frame, covariates=[name]).coefficients for name in ("chars", "gap")]
    assert both[0]["coefficient"][0] == pytest.approx(both[1]["coefficient"][0], rel=1e-9)
    has_winner = np.arange(3000) % 7 != 0
    expected = fit_contextual(comparisons.subset(has_winner), (chars[0] - chars[1])[has_winner, None].astype(float))
    assert both[0]["coefficient"][0] == pytest.approx(expected.coefficients[0], rel=1e-6)


def test_a_system_that_won_everything_rests_on_the_prior():
    comparison = compare(SystemJudgments.of_systems(votes([0, 0, 0, 1, 2], [1, 2, 1, 2, 1], [1, 1, 1, 1, 1], 3)))
    assert comparison.scores["system"][0] == "s0"
    assert np.isfinite(comparison.scores["score"].to_numpy()).all()
    assert any("the prior determines it" in note for note in comparison.notes)


def test_a_system_with_wins_and_ties_only_is_finite_where_others_contradict_each_other():
    # s0 beat s1 and tied s2, who beat each other: Davidson's likelihood has a maximum.
    contradicted = votes([0, 0, 1, 2], [1, 2, 2, 1], [1, 0, 1, 1], 3)
    comparison = compare(SystemJudgments.of_systems(contradicted))
    assert not any("the prior determines it" in note for note in comparison.notes)

    def loss(x):
        """Davidson's likelihood as in the textbook: ν = exp(x₂), s0 at x₀, s1 at x₁, s2 at 0."""
        theta = [x[0], x[1], 0.0]

        def log_chance(left, right, outcome):
            half = (theta[left] - theta[right]) / 2
            return [-half, x[2], half][outcome + 1] - np.log(np.exp(half) + np.exp(-half) + np.exp(x[2]))

        return -log_chance(0, 1, 1) - log_chance(0, 2, 0) - log_chance(1, 2, 1) - log_chance(2, 1, 1)

    theta = np.append(optimize.minimize(loss, np.zeros(3), tol=1e-12).x[:2], 0.0)
    assert comparison.scores.sort("system")["score"].to_list() == pytest.approx(theta - theta.mean(), abs=1e-4)
    # Of two systems with wins of one and ties, the scores and the tie parameter could grow together.
    alone = votes([0, 0, 1], [1, 1, 0], [1, 0, 0], 2)
    assert any("tie parameter" in note for note in compare(SystemJudgments.of_systems(alone)).notes)
    with pytest.raises(DataError, match="tie parameter could grow without bound"):
        BradleyTerry(prior_sd=None).fit(alone)


@pytest.mark.parametrize("method", ["bootstrap", "wmt"])
def test_resampled_comparisons_agree_with_the_covariance(method):
    rng = np.random.default_rng(6)
    left = rng.integers(0, 4, 1500)
    right = (left + rng.integers(1, 4, 1500)) % 4
    outcome = np.where(rng.random(1500) < 1 / (1 + np.exp(0.4 * (left - right))), 1, -1)
    judgments = SystemJudgments.of_systems(votes(left, right, outcome, 4))
    exact = compare(judgments).scores.sort("system")
    resampled = compare(judgments, SystemOptions(method=method, draws=400)).scores.sort("system")
    assert resampled["score"].to_list() == pytest.approx(exact["score"].to_list(), abs=1e-6)
    assert resampled["sd"].to_list() == pytest.approx(exact["sd"].to_list(), rel=0.2)
