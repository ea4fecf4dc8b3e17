"""Bradley–Terry against choix, evalica, a generic optimiser and published reliabilities; ties; extremes."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import polars as pl
import pytest
from pydantic import TypeAdapter, ValidationError
from scipy import optimize, special

from steelyard.errors import DataError, SteelyardWarning
from steelyard.models.comparisons.bradley_terry import BradleyTerry, unpenalised
from steelyard.observations import Comparisons, Index
from tests.models import paired_data as data
from tests.models.paired_data import by_item


def log_chances(ties, d, tie):
    """Log of win, loss, tie from the textbook formulas."""
    if ties == "davidson":
        nu = np.exp(tie)
        pi, pj = np.exp(d / 2), np.exp(-d / 2)
        return np.log(np.array([pi, pj, nu + 0 * d]) / (pi + pj + nu))
    theta = np.exp(tie)
    pi, pj = np.exp(d), np.ones_like(d)
    win, loss = pi / (pi + theta * pj), pj / (theta * pi + pj)
    return np.log(np.array([win, loss, pi * pj * (theta**2 - 1) / ((pi + theta * pj) * (theta * pi + pj))]))


def generic_fit(comparisons, ties):
    """Maximise the exact likelihood by BFGS on plain numpy; tie parameter last."""
    n = len(comparisons.items)
    kind = np.where(comparisons.outcome > 0, 0, np.where(comparisons.outcome < 0, 1, 2))

    def loss(x):
        theta, tie = x[:n] - x[:n].mean(), np.exp(x[n]) if ties == "rao_kupper" else x[n]
        d = theta[comparisons.left] - theta[comparisons.right]
        return -log_chances(ties, d, tie)[kind, np.arange(len(kind))].sum() + x[:n].mean() ** 2

    optimum = optimize.minimize(loss, np.zeros(n + 1), method="BFGS", options={"gtol": 1e-6})
    theta = optimum.x[:n] - optimum.x[:n].mean()
    return theta, np.exp(np.exp(optimum.x[n])) if ties == "rao_kupper" else np.exp(optimum.x[n])


def scores(fit, comparisons, column="score"):
    table = by_item(fit, column)
    return np.array([table[name] for name in comparisons.items.ids])


@pytest.mark.parametrize("rows", [300, 5000])
def test_without_prior_it_equals_choix(rows):
    choix = pytest.importorskip("choix")
    comparisons = data.comparisons(n=12, rows=rows, seed=rows)
    won = comparisons.outcome > 0
    pairs = np.where(won[:, None], *(np.column_stack(p) for p in (
        (comparisons.left, comparisons.right), (comparisons.right, comparisons.left))))  # fmt: skip
    theirs = choix.ilsr_pairwise(12, pairs.tolist(), alpha=0, tol=1e-12, max_iter=1000)
    ours = scores(BradleyTerry(prior_sd=None).fit(comparisons), comparisons)
    assert ours == pytest.approx(theirs - theirs.mean(), abs=1e-6)


def test_with_the_prior_it_equals_choix_with_its_penalty():
    choix = pytest.importorskip("choix")
    comparisons = data.comparisons(n=8, rows=120, seed=4)
    won = comparisons.outcome > 0
    pairs = [
        (int(i), int(j)) if w else (int(j), int(i))
        for i, j, w in zip(comparisons.left, comparisons.right, won, strict=True)
    ]
    # choix adds alpha · Σθ² to minus the log-likelihood; ours adds Σθ² / (2 sd²).
    theirs = choix.opt_pairwise(8, pairs, alpha=1 / (2 * 1.5**2), tol=1e-12)
    assert scores(BradleyTerry(prior_sd=1.5).fit(comparisons), comparisons) == pytest.approx(theirs, abs=1e-6)


def test_without_prior_it_equals_evalica():
    evalica = pytest.importorskip("evalica")
    comparisons = data.comparisons(n=9, rows=900, seed=2)
    names = np.array(comparisons.items.ids)
    winners = [evalica.Winner.X if o > 0 else evalica.Winner.Y for o in comparisons.outcome]
    result = evalica.bradley_terry(
        names[comparisons.left].tolist(), names[comparisons.right].tolist(), winners, tolerance=1e-14, limit=100_000
    )
    theirs = np.log([result.scores[name] for name in names])
    ours = scores(BradleyTerry(prior_sd=None).fit(comparisons), comparisons)
    assert ours == pytest.approx(theirs - theirs.mean(), abs=1e-6)


@pytest.mark.parametrize("ties", ["davidson", "rao_kupper"])
def test_tie_rules_equal_a_generic_optimiser_on_the_textbook_likelihood(ties):
    comparisons = data.comparisons(n=6, rows=400, seed=1, ties=0.6)
    fit = BradleyTerry(prior_sd=None, ties=ties).fit(comparisons)
    theta, parameter = generic_fit(comparisons, ties)
    assert scores(fit, comparisons) == pytest.approx(theta, abs=1e-5)
    assert float(fit.notes[0].split("= ")[1]) == pytest.approx(parameter, rel=5e-3)


def two_items(wins, losses, ties=0):
    outcome = np.repeat([1, -1, 0], [wins, losses, ties]).astype(np.int8)
    rows = len(outcome)
    return Comparisons(items=Index("ab"), left=np.zeros(rows, np.int32), right=np.ones(rows, np.int32), outcome=outcome)


def test_two_items_by_hand():
    # Without a prior the difference is the log-odds log(30/10), and its variance 1/30 + 1/10 (half of each sd).
    fit = BradleyTerry(prior_sd=None).fit(two_items(30, 10))
    assert by_item(fit)["a"] == pytest.approx(np.log(3) / 2)
    assert by_item(fit, "sd")["a"] == pytest.approx(np.sqrt(1 / 30 + 1 / 10) / 2)
    assert by_item(fit, "unit_score")["a"] == pytest.approx(0.75)


def test_davidson_with_two_items_by_hand():
    # π_a/π_b = wins/losses, and ν = ties/√(wins · losses): shares and chances are then equal.
    fit = BradleyTerry(prior_sd=None).fit(two_items(40, 10, 30))
    assert 2 * by_item(fit)["a"] == pytest.approx(np.log(4))
    assert "ν = 1.5" in fit.notes[0]
    assert by_item(fit, "unit_score")["a"] == pytest.approx((40 + 15) / 80)


def test_half_ties_equal_doubled_data_with_one_win_each_way():
    half = BradleyTerry(prior_sd=None, ties="half").fit(two_items(4, 2, 6))
    assert 2 * by_item(half)["a"] == pytest.approx(np.log(7 / 5))
    dropped = BradleyTerry(prior_sd=None, ties="drop").fit(two_items(4, 2, 6))
    assert 2 * by_item(dropped)["a"] == pytest.approx(np.log(2))


@pytest.mark.slow
@pytest.mark.shared_data
def test_scale_separation_reliability_equals_the_published_one(shared_data):
    decisions = pl.read_csv(shared_data / "comparative_judgement" / "decisions.csv.gz", infer_schema=False)
    sessions = pl.read_csv(shared_data / "comparative_judgement" / "sessions.csv")
    for session, published in sessions.select("session", "ssr").iter_rows():
        if session == "Hunter2018":  # 2,035 items: seconds, for the same check
            continue
        part = decisions.filter(pl.col("session") == session)
        index = Index(sorted(set(part["winner"]) | set(part["loser"])))
        comparisons = Comparisons(
            items=index,
            left=index.codes(part["winner"].to_list()),
            right=index.codes(part["loser"].to_list()),
            outcome=np.ones(len(part), np.int8),
        )
        fit = unpenalised(comparisons, adjustment=0.3)
        ssr = 1 - np.mean(fit.se_alone**2) / np.var(fit.theta, ddof=1)
        assert ssr == pytest.approx(published, abs=1e-4), session


def test_unpenalised_covariance_is_that_of_centred_scores():
    fit = unpenalised(two_items(30, 10))
    assert fit.se == pytest.approx(np.full(2, np.sqrt(1 / 30 + 1 / 10) / 2))
    assert fit.covariance.sum() == pytest.approx(0, abs=1e-12)


def test_unpenalised_refuses_an_undefeated_item_and_names_it():
    with pytest.raises(DataError, match="never beaten: 'a'"):
        unpenalised(two_items(5, 0))


@pytest.mark.parametrize("interval", ["posterior", "sandwich", "bootstrap"])
def test_relabelling_items_and_annotators_permutes_the_result(interval):
    comparisons = data.comparisons(n=8, rows=400, ties=0.4, annotators=12)
    order = np.random.default_rng(0).permutation(8)
    people = np.random.default_rng(1).permutation(12)
    # Item `code` becomes order[code], under its old name; the same with annotators.
    names, who = np.empty(8, object), np.empty(12, object)
    names[order], who[people] = comparisons.items.ids, comparisons.annotators.ids
    renamed = dataclasses.replace(
        comparisons,
        items=Index(names),
        annotators=Index(who),
        left=order[comparisons.left].astype(np.int32),
        right=order[comparisons.right].astype(np.int32),
        annotator=people[comparisons.annotator].astype(np.int32),
    )
    first, second = (BradleyTerry(interval=interval).fit(x) for x in (comparisons, renamed))
    for column in ("score", "sd", "unit_score"):
        ours, theirs = by_item(first, column), by_item(second, column)
        assert [theirs[name] for name in ours] == pytest.approx(list(ours.values()), abs=1e-6)


@pytest.mark.parametrize("interval", ["posterior", "sandwich", "bootstrap"])
def test_order_of_judgments_does_not_change_the_scores(interval):
    comparisons = data.comparisons(n=8, rows=300, ties=0.4, annotators=12)
    order = np.random.default_rng(0).permutation(300)
    mixed = dataclasses.replace(
        comparisons,
        left=comparisons.left[order],
        right=comparisons.right[order],
        outcome=comparisons.outcome[order],
        annotator=comparisons.annotator[order],
    )
    first, second = (BradleyTerry(interval=interval).fit(x) for x in (comparisons, mixed))
    for column in ("score", "sd"):
        assert by_item(second, column) == pytest.approx(by_item(first, column), abs=1e-9)


def test_swapping_left_and_right_changes_nothing():
    comparisons = data.comparisons(n=6, rows=200, ties=0.4)
    swapped = dataclasses.replace(
        comparisons, left=comparisons.right, right=comparisons.left, outcome=-comparisons.outcome
    )
    assert by_item(BradleyTerry().fit(swapped)) == pytest.approx(by_item(BradleyTerry().fit(comparisons)))


def test_an_undefeated_item_is_finite_and_named():
    with (
        pytest.warns(SteelyardWarning, match="never beaten: 'a'"),
        pytest.warns(SteelyardWarning, match="never won: 'b'"),
    ):
        fit = BradleyTerry().fit(two_items(20, 0))
    assert any("never beaten: 'a'" in note for note in fit.notes)
    row = fit.scores.row(0, named=True)
    assert 0 < row["score"] < 5
    assert row["upper"] - row["lower"] > 1


def test_an_undefeated_item_without_prior_is_refused_with_the_remedy():
    with pytest.raises(DataError, match=r"never beaten: 'a'.*prior_sd"):
        BradleyTerry(prior_sd=None).fit(two_items(20, 0))


def test_two_islands_are_named_and_their_distance_is_left_wide():
    left = np.array([0, 1] * 40 + [2, 3] * 40, np.int32)
    right = np.array([1, 0] * 40 + [3, 2] * 40, np.int32)
    comparisons = Comparisons(items=Index("abcd"), left=left, right=right, outcome=np.ones(160, np.int8))
    with pytest.warns(SteelyardWarning, match="2 groups") as caught:
        fit = BradleyTerry().fit(comparisons)
    assert "{'a', 'b'}" in str(caught[0].message)
    # Within an island 80 comparisons; between, only the prior: sd of a centred score near 2/√2 · … > 0.9.
    assert fit.scores["sd"].min() > 0.9


def test_all_ties_leave_all_items_level():
    for ties in ("davidson", "rao_kupper", "half"):
        fit = BradleyTerry(ties=ties).fit(two_items(0, 0, 25))
        assert fit.scores["score"].to_list() == pytest.approx([0, 0], abs=1e-9)
        assert fit.scores["unit_score"].to_list() == pytest.approx([0.5, 0.5])
        assert fit.scores["sd"].is_finite().all()
        assert fit.converged
    without = BradleyTerry(prior_sd=None).fit(two_items(0, 0, 25))
    assert without.scores["score"].to_list() == pytest.approx([0, 0], abs=1e-9)


def test_all_ties_left_out_gives_no_scores_and_the_reason():
    fit = BradleyTerry(ties="drop").fit(two_items(0, 0, 25))
    assert fit.scores["score"].null_count() == 2
    assert fit.scores["judgments"].to_list() == [25, 25]
    assert fit.notes == ("no scores: no two items are compared in these judgments",)


def test_doubling_every_row_keeps_scores_without_prior_and_narrows_intervals():
    comparisons = data.comparisons(n=6, rows=300, seed=3)
    doubled = dataclasses.replace(
        comparisons,
        **{name: np.tile(getattr(comparisons, name), 2) for name in ("left", "right", "outcome", "annotator", "task")},
    )
    first, second = (BradleyTerry(prior_sd=None).fit(x) for x in (comparisons, doubled))
    assert by_item(second) == pytest.approx(by_item(first), abs=1e-7)
    ratio = scores(second, comparisons, "sd") / scores(first, comparisons, "sd")
    assert ratio == pytest.approx(np.full(6, np.sqrt(0.5)), rel=1e-6)


def test_items_without_judgments_get_nulls():
    comparisons = two_items(6, 4)
    fit = BradleyTerry().fit(dataclasses.replace(comparisons, items=Index("abz")))
    last = fit.scores.row(2, named=True)
    assert last["item"] == "z"
    assert last["score"] is last["sd"] is last["rank"] is last["interval"] is None
    assert last["judgments"] == 0


def test_pairs_within_choices_and_rankings_get_the_sandwich_and_say_so():
    fits = [BradleyTerry().fit(data.choices()), BradleyTerry().fit(data.rankings())]
    assert [fit.scores["interval"][0] for fit in fits] == ["sandwich(judgments)"] * 2
    assert BradleyTerry().fit(data.comparisons()).scores["interval"][0] == "posterior"
    forced = BradleyTerry(interval="posterior").fit(data.rankings())
    assert any("are dependent" in note for note in forced.notes)


def test_the_unit_is_the_annotator_where_there_are_enough_of_them():
    many = BradleyTerry(interval="sandwich").fit(data.comparisons(annotators=15))
    assert many.scores["interval"][0] == "sandwich(annotators)"
    few = BradleyTerry(interval="bootstrap").fit(data.comparisons(annotators=3))
    assert few.scores["interval"][0] == "bootstrap(judgments)"
    assert any("only 3 annotators" in note for note in few.notes)


def test_a_copied_annotator_widens_the_sandwich_and_not_the_posterior():
    """Ten identical annotators know no more than one: the posterior cannot see that, the sandwich does."""
    one = data.comparisons(n=5, rows=60, seed=8)
    copies = 20
    comparisons = Comparisons(
        items=one.items,
        left=np.tile(one.left, copies),
        right=np.tile(one.right, copies),
        outcome=np.tile(one.outcome, copies),
        task=np.tile(np.arange(60, dtype=np.int32), copies),
        tasks=Index(f"t{code}" for code in range(60)),
    )
    wide = BradleyTerry(interval="sandwich").fit(comparisons).scores["sd"].mean()
    narrow = BradleyTerry().fit(comparisons).scores["sd"].mean()
    single = BradleyTerry().fit(one).scores["sd"].mean()
    assert narrow < 0.35 * single
    assert wide == pytest.approx(single, rel=0.25)


def test_the_bootstrap_spreads_like_the_posterior_when_the_prior_is_weak():
    comparisons = data.comparisons(n=6, rows=3000, seed=5)
    one = BradleyTerry(prior_sd=20.0).fit(comparisons)
    two = BradleyTerry(prior_sd=20.0, interval="bootstrap", draws=400).fit(comparisons)
    # An sd from 400 replicates is right to 3.5 %.
    assert scores(two, comparisons, "sd") / scores(one, comparisons, "sd") == pytest.approx(np.ones(6), abs=0.15)


def test_a_seed_gives_the_same_intervals_again():
    comparisons = data.comparisons(n=6, rows=300)
    for interval in ("posterior", "bootstrap"):
        first, second = (BradleyTerry(interval=interval, seed=7).fit(comparisons).scores for _ in range(2))
        assert first.equals(second)


def test_every_interval_holds_its_score_and_every_rank_interval_its_rank():
    table = BradleyTerry(interval="bootstrap").fit(data.comparisons(n=15, rows=200)).scores
    assert (table["lower"] <= table["score"]).all()
    assert (table["score"] <= table["upper"]).all()
    assert (table["rank_lower"] <= table["rank"]).all()
    assert (table["rank"] <= table["rank_upper"]).all()


def test_intervals_cover_when_items_come_from_the_prior():
    """60 data sets of 20 items: 1,200 intervals, of which 95 % ± 1.9 (three standard errors, were they independent)."""
    covered, ranked = [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        comparisons = data.comparisons(n=20, rows=400, seed=seed, sd=2.0)
        theta = rng.normal(0, 2.0, 20)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SteelyardWarning)
            fit = BradleyTerry(prior_sd=2.0).fit(comparisons)
        table = {row["item"]: row for row in fit.scores.iter_rows(named=True)}
        rank = (-theta).argsort().argsort() + 1
        for code, name in enumerate(comparisons.items.ids):
            row = table[name]
            covered.append(row["lower"] <= theta[code] - theta.mean() <= row["upper"])
            ranked.append(row["rank_lower"] <= rank[code] <= row["rank_upper"])
    assert 0.92 <= np.mean(covered) <= 0.98
    assert np.mean(ranked) >= 0.92


def test_share_of_wins_is_the_mean_chance_against_the_others():
    comparisons = data.comparisons(n=5, rows=200)
    fit = BradleyTerry().fit(comparisons)
    theta = scores(fit, comparisons)
    chance = special.expit(theta[:, None] - theta)
    expected = (chance.sum(axis=1) - 0.5) / 4
    assert scores(fit, comparisons, "unit_score") == pytest.approx(expected)


def test_an_infinite_prior_sd_is_no_prior():
    comparisons = data.comparisons(n=6, rows=300)
    without = by_item(BradleyTerry(prior_sd=None).fit(comparisons))
    assert by_item(BradleyTerry(prior_sd=float("inf")).fit(comparisons)) == without


def test_settings_pass_through_pydantic():
    adapter = TypeAdapter(BradleyTerry)
    assert adapter.validate_python({"ties": "rao_kupper", "prior_sd": 1}).ties == "rao_kupper"
    with pytest.raises(ValidationError):
        adapter.validate_python({"prior_sd": -1})
    with pytest.raises(ValidationError):
        adapter.validate_python({"ties": "sometimes"})
