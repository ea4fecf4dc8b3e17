"""The claims of Pighin et al. (2012), on small versions of the experiments."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from reproductions.base import Claim, Experiment
from reproductions.formatting import agrees
from reproductions.running import Reproduction, reproduce
from reproductions.tournament import EXPERIMENTS
from reproductions.tournament.adequacy import draw_adequacy, judged
from reproductions.tournament.agreement_by_overlap import AgreementByOverlap, labels_of_pairs
from reproductions.tournament.average_dominance import AverageDominance
from reproductions.tournament.cycles import TournamentCycles, ranked_twice
from reproductions.tournament.effort import TournamentEffort
from reproductions.tournament.follow_up import FollowUp, best_is_right
from reproductions.tournament.harmonization import Harmonization
from reproductions.tournament.intervals import mean_interval, ratio_interval
from reproductions.tournament.propagation_effort import PropagationEffort
from reproductions.tournament.reconstruction import Reconstruction
from reproductions.tournament.recordings import (
    REFERENCE,
    Sources,
    comparisons_of,
    correlations,
    hold,
    ranks_of,
    read_sources,
)
from steelyard.observations import Comparisons, Index


@cache
def ran(cls: type[Experiment], data: Path) -> Reproduction:
    """Run the small version once for all tests."""
    return reproduce(cls().small(), data)


def claim(outcome: Reproduction, what: str) -> Claim:
    (found,) = [one for one in outcome.claims if one.what.startswith(what)]
    return found


def made_up(*ranks: tuple[int, ...], reference: bool = False) -> Sources:
    """Sources with these ranks; the last system is the reference, if wanted."""
    systems = [*"abcd", REFERENCE if reference else "e"]
    count = len(ranks)
    return Sources(
        np.array([systems] * count),
        np.array(ranks, np.int32),
        tuple(f"segment {number}" for number in range(count)),
        ("judge",) * count,
        ("English–Spanish",) * count,
    )


@pytest.mark.slow
@pytest.mark.shared_data
@pytest.mark.parametrize(
    "cls",
    [pytest.param(cls, marks=pytest.mark.full if cls is TournamentCycles else ()) for cls in EXPERIMENTS],
    ids=lambda cls: cls.name,
)
def test_every_experiment_gives_claims_within_their_intervals_and_a_figure_that_draws(cls, shared_data):
    outcome = ran(cls, shared_data)
    assert outcome.claims
    for one in outcome.claims:
        assert one.lower is None or one.lower <= one.ours <= one.upper
        assert one.published is None or agrees(one) or one.why, one
    assert outcome.svg is not None or cls is TournamentCycles


@pytest.mark.shared_data
def test_six_comparisons_give_back_the_rankings_nearly_as_published(shared_data):
    outcome = ran(Reconstruction, shared_data)
    r, spread = outcome.claims[:2]
    assert abs(r.difference) < 0.02
    assert abs(spread.difference) < 0.03
    lenient, strict, separated = outcome.claims[2:]
    assert lenient.lower <= lenient.published <= lenient.upper
    assert strict.upper < strict.published
    assert abs(separated.difference) < 2


def test_a_tournament_of_five_or_six_items_takes_six_comparisons_and_finds_three_items_order(tmp_path):
    outcome = ran(TournamentEffort, tmp_path)
    assert agrees(outcome.claims[0])
    assert agrees(outcome.claims[1])
    assert outcome.claims[2].ours > 60
    # Three items are all compared with each other, so that nothing is left to chance.
    assert outcome.table.filter(pl.col("items") == 3)["r"].to_list() == pytest.approx([1.0])
    assert (outcome.table["tournament"] <= outcome.table["sorting"]).all()


@pytest.mark.shared_data
def test_judges_agree_as_published_and_far_above_chance(shared_data):
    outcome = ran(AgreementByOverlap, shared_data)
    assert agrees(claim(outcome, "chance that 9"))
    assert agrees(claim(outcome, "observed agreement"))
    assert abs(claim(outcome, "κ of two").difference) < 1e-3
    for (_,), part in outcome.table.group_by("judges"):
        share = dict(part.select("share_of", "lower").iter_rows())
        assert share["observed"] > share["chance"]


@pytest.mark.shared_data
def test_people_who_waver_make_about_as_many_cycles_as_published_and_one_ranking_none(shared_data):
    outcome = ran(TournamentCycles, shared_data)
    assert outcome.claims[0].lower > 0
    assert abs(outcome.claims[0].difference) < 5
    assert outcome.claims[2].ours == 0
    # An output is in a cycle only if its source has one.
    assert 100 - outcome.claims[1].ours <= outcome.claims[0].ours


@pytest.mark.shared_data
def test_references_dominate_most_and_systems_come_in_the_order_of_their_ranks(shared_data):
    outcome = ran(AverageDominance, shared_data)
    assert agrees(claim(outcome, "rank of the references"))
    assert claim(outcome, "Spearman").ours > 0.9


@pytest.mark.shared_data
def test_a_tournament_spares_a_third_or_more_of_the_adequacy_judgments(shared_data):
    outcome = ran(PropagationEffort, shared_data)
    share = {one.what.rpartition(": ")[2]: one.ours for one in outcome.claims}
    assert share["saved in total"] > 100 / 3
    # A reference is at least one vertex of at most five.
    assert share["by the reference"] >= 20
    assert share["labelled without asking"] == pytest.approx(
        share["by the reference"] + share["by an inadequate output above"]
    )


@pytest.mark.shared_data
def test_harmonization_changes_few_ranks_and_more_when_people_slip(shared_data):
    outcome = ran(Harmonization, shared_data)
    assert claim(outcome, "no errors: Spearman").ours > 0.95
    consistent = claim(outcome, "no errors: sources")
    assert consistent.lower <= consistent.published <= consistent.upper
    assert claim(outcome, "another criterion").ours > consistent.ours


@pytest.mark.shared_data
def test_the_follow_up_mends_winners_and_resolves_conflicts_at_less_than_a_comparison_each(shared_data):
    outcome = ran(FollowUp, shared_data)
    assert claim(outcome, "wrong winners").ours == 100
    assert claim(outcome, "conflicts").ours > 0
    assert 0 < claim(outcome, "comparisons it adds").ours < 1
    assert claim(outcome, "mean r of the ranks, with").ours > claim(outcome, "mean r of the ranks, tournament").ours


@pytest.mark.shared_data
def test_all_complete_rankings_are_read_each_with_five_systems(shared_data):
    sources = read_sources(shared_data)
    assert len(sources) == 7512
    assert all(len(set(row)) == 5 for row in sources.systems.tolist())
    assert (sources.ranks >= 1).all()
    with_reference = sources.with_reference()
    assert ((with_reference.systems == REFERENCE).sum(axis=1) == 1).all()


@pytest.mark.shared_data
def test_what_is_ranked_twice_has_the_same_judge_segment_and_systems(shared_data):
    one, other = ranked_twice(read_sources(shared_data))
    assert one.judge == other.judge
    assert one.segment == other.segment
    assert (np.sort(one.systems, axis=1) == np.sort(other.systems, axis=1)).all()
    # The two are different rankings: some differ.
    assert (np.sort(one.ranks, axis=1) != np.sort(other.ranks, axis=1)).any()


def test_tournaments_answer_by_the_ranking_of_their_source():
    sources = made_up((1, 2, 3, 4, 5), (5, 4, 3, 2, 1), (1, 1, 2, 2, 3))
    comparisons = comparisons_of(hold(sources, 3))
    assert len(comparisons) == 3 * 6
    for left, right, outcome in zip(comparisons.left, comparisons.right, comparisons.outcome, strict=True):
        assert left // 5 == right // 5
        a, b = sources.ranks.ravel()[[left, right]]
        assert outcome == np.sign(b - a)


def test_ranks_are_right_for_pairs_that_were_compared():
    sources = made_up(*([(1, 2, 3, 4, 5)] * 30))
    comparisons = comparisons_of(hold(sources, 0))
    ranks = ranks_of(sources, comparisons).ravel()
    winner = np.where(comparisons.outcome > 0, comparisons.left, comparisons.right)
    loser = np.where(comparisons.outcome > 0, comparisons.right, comparisons.left)
    assert (ranks[winner] < ranks[loser]).all()


def test_equal_outputs_come_out_equal():
    sources = made_up((1, 1, 1, 1, 1))
    assert ranks_of(sources, comparisons_of(hold(sources, 0))).tolist() == [[1] * 5]


def test_correlations_are_pearsons_and_not_defined_for_flat_ranks():
    original = np.array([[1, 2, 3, 4, 5], [1, 1, 1, 1, 1], [2, 1, 3, 3, 1]], np.int32)
    ranks = np.array([[2, 1, 3, 4, 4], [1, 2, 3, 4, 5], [3, 1, 2, 4, 1]])
    r = correlations(original, ranks)
    assert r[0] == pytest.approx(np.corrcoef(original[0], ranks[0])[0, 1])
    assert np.isnan(r[1])
    assert r[2] == pytest.approx(np.corrcoef(original[2], ranks[2])[0, 1])


def test_the_best_is_right_only_if_all_that_come_out_best_were():
    sources = made_up((1, 2, 3, 4, 5), (1, 2, 3, 4, 5), (1, 1, 3, 4, 5))
    ranks = np.array([[1, 2, 2, 3, 4], [1, 1, 2, 3, 4], [2, 1, 2, 3, 4]])
    assert best_is_right(sources, ranks).tolist() == [True, False, True]


def test_adequacy_follows_the_ranks_and_the_reference_is_adequate():
    sources = made_up(*([(1, 2, 3, 4, 2)] * 200), reference=True)
    adequate = draw_adequacy(sources, 0.0, 0)
    for source in range(len(sources)):
        labels = [adequate[sources.item(source, place)] for place in range(5)]
        assert labels[4]
        for better, worse in combinations(range(5), 2):
            if sources.ranks[source, better] <= sources.ranks[source, worse]:
                assert labels[better] >= labels[worse]
    shares = np.mean([[adequate[sources.item(s, p)] for p in range(5)] for s in range(200)], axis=0)
    assert shares[0] == shares[1] == 1
    assert 0 < shares[3] < shares[2] < 1


def test_labels_that_follow_from_the_tournament_agree_with_those_that_would_be_given():
    sources = made_up(*([(1, 2, 3, 4, 2), (5, 3, 1, 2, 4), (2, 2, 1, 3, 3)] * 10), reference=True)
    adequate = draw_adequacy(sources, 0.0, 5)
    effort, labels = judged(hold(sources, 1, adequate=adequate), sources.items())
    assert {label.item: label.adequate for label in labels} == adequate
    assert effort.open == 0
    assert effort.asked < effort.items


def test_a_pair_shown_either_way_round_is_one_item_and_a_judge_counts_once():
    comparisons = Comparisons(
        items=Index(["x", "y", "z"]),
        tasks=Index(["s", "t"]),
        annotators=Index(["p", "q"]),
        task=np.array([0, 0, 0, 1], np.int32),
        annotator=np.array([0, 1, 0, 0], np.int32),
        left=np.array([0, 1, 0, 0], np.int32),
        right=np.array([1, 0, 1, 1], np.int32),
        outcome=np.array([1, -1, 0, 0], np.int8),
    )
    labels = labels_of_pairs(comparisons)
    assert len(labels.items) == 2
    rows = sorted(
        (labels.items[int(i)], labels.annotators[int(a)], labels.classes[int(c)])
        for i, a, c in zip(labels.item, labels.annotator, labels.label, strict=True)
    )
    assert rows == [("0", "p", ">"), ("0", "q", ">"), ("1", "p", "=")]


def test_the_interval_of_a_ratio_covers_it_about_as_often_as_it_says():
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(400):
        whole = rng.integers(1, 6, 150).astype(float)
        part = rng.binomial(whole.astype(int), 0.3).astype(float)
        _, low, high = ratio_interval(part, whole)
        covered += low <= 0.3 <= high
    # 0.95 within four standard deviations of 400 draws.
    assert 0.90 <= covered / 400 <= 0.995


def test_means_leave_out_what_is_not_known():
    mean, low, high = mean_interval(np.array([1.0, np.nan, 2.0, 3.0]))
    # Student's t with two degrees of freedom: 4.3027 · 1 / √3.
    assert (mean, high - mean, mean - low) == pytest.approx((2.0, 2.4841, 2.4841), abs=1e-3)
