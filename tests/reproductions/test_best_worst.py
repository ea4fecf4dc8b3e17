"""Best–worst scaling: published scores counted again, and its advantage over a rating scale in simulation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from reproductions.base import Outcome
from reproductions.best_worst import (
    AgainstRatingScale,
    CountedScores,
    RealComments,
    ScoreDifferences,
    SideBySide,
    SplitHalfByBudget,
)
from reproductions.best_worst.rated_and_chosen import Terms
from reproductions.best_worst.real_comments import read_comments
from reproductions.best_worst.split_half_by_budget import _judgments, _some
from reproductions.running import ignore_progress
from steelyard.observations import Choices, Index


def claim(outcome: Outcome, beginning: str) -> float:
    (found,) = [each.ours for each in outcome.claims if each.what.startswith(beginning)]
    return found


@pytest.mark.shared_data
def test_counting_gives_the_published_scores_up_to_their_rounding(shared_data: Path) -> None:
    outcome = CountedScores().small().run(shared_data, ignore_progress)
    assert claim(outcome, "largest difference") <= 0.05 + 1e-9
    items = next(each for each in outcome.claims if each.what == "items scored")
    assert items.ours == items.published


@pytest.mark.full
@pytest.mark.shared_data
def test_more_answers_to_the_same_tuples_agree_better(shared_data: Path) -> None:
    outcome = SplitHalfByBudget().small().run(shared_data, ignore_progress)
    assert outcome.table is not None
    for _, rows in outcome.table.group_by("tuples"):
        by_budget = rows.sort("judgments")
        assert by_budget["value"].is_sorted()
        assert by_budget["judgments"].n_unique() == by_budget.height


def test_judgments_in_a_half_are_counted_tuple_by_tuple() -> None:
    # Three answers to one tuple, two to another: halves of one and a half, and of one.
    tuples = np.array([[0, 1, 2]] * 3 + [[3, 1, 2]] * 2, np.int32)
    choices = Choices(items=Index("abcd"), shown=tuples, best=tuples[:, 0], worst=tuples[:, 1])
    assert _judgments(choices, None) == 2.5
    assert _judgments(choices, 1) == 2
    sample = _some(choices, 0.25, np.random.default_rng(0))
    assert len(sample) in {2, 3}
    assert len(np.unique(sample.shown[:, 0])) == 1


@pytest.fixture(scope="module")
def against() -> Outcome:
    return AgainstRatingScale().small().run(Path(), ignore_progress)


@pytest.mark.full
def test_simulated_people_are_as_inconsistent_as_the_papers(against: Outcome) -> None:
    """§3.2 and §4: 37 % of repeats differ, by 1.27 of 8; a term's ratings have a standard deviation of 0.81."""
    assert claim(against, "repeated ratings that differ") == pytest.approx(37, abs=4)
    assert claim(against, "mean difference of those") == pytest.approx(1.27, abs=0.1)
    assert claim(against, "standard deviation") == pytest.approx(0.81, abs=0.06)


def test_best_worst_needs_about_a_third_of_the_judgments_for_the_same_split_half_reliability(against: Outcome) -> None:
    """§5: 30 % of what is needed for the rating scale."""
    for factor in ("1N", "1.5N", "2N"):
        assert 20 < claim(against, f"judgments that best–worst with {factor} tuples needs for") < 42
    assert claim(against, "difference of the two") > 0


def test_the_saving_comes_from_what_goes_wrong_with_scales(against: Outcome) -> None:
    of_crowds = [each.ours for each in against.claims if "with 1.5N tuples needs" in each.what]
    # As the paper's people are; all using the scale alike; and none answering without looking.
    assert len(of_crowds) == 3
    assert of_crowds == sorted(of_crowds)


def test_the_number_of_tuples_does_not_matter_at_the_same_number_of_judgments(against: Outcome) -> None:
    assert claim(against, "largest difference in reliability between 1N, 1.5N and 2N") < 0.01


def test_halves_that_share_tuples_flatter_best_worst_scaling(against: Outcome) -> None:
    rating = claim(against, "Spearman's ρ of all 20N judgments with the true values, rating scale")
    best_worst = [each.ours for each in against.claims if "true values, best–worst" in each.what]
    assert len(best_worst) == 3
    assert rating > max(best_worst)
    # The more tuples, the less the luck of the company weighs.
    assert best_worst == sorted(best_worst)


def test_the_two_scorings_come_closer_with_more_judgments() -> None:
    """Table 1: from 3N to 20N judgments, differences fall and correlations rise."""
    outcome = ScoreDifferences().small().run(Path(), ignore_progress)
    for figure, rises in (("mean score difference", False), ("mean rank difference", False), ("Spearman", True)):
        few, many = (claim(outcome, f"{figure}, {judgments}N") for judgments in (3, 20))
        assert (many > few) == rises, figure


def test_every_term_is_judged_equally_often_both_ways() -> None:
    terms = Terms.drawn(40, np.random.default_rng(0))
    assert (np.bincount(terms.rated(3).item, minlength=40) == 3).all()
    chosen = terms.chosen(1.5, 2)
    assert (np.bincount(chosen.shown.ravel(), minlength=40) == 12).all()
    assert chosen.knows_annotators


@pytest.mark.shared_data
def test_comments_that_were_rated_and_chosen_are_those_of_the_readme(shared_data: Path) -> None:
    """1,497 comments; ρ .724, r .676 of mean rating and best–worst score, with the tuples that have a test comment."""
    ratings, choices = read_comments(shared_data)
    assert len(set(ratings.items.ids) & set(choices.items.ids)) == 1497
    outcome = RealComments().small().run(shared_data, ignore_progress)
    assert claim(outcome, "Spearman of the two scorings") == pytest.approx(0.724, abs=0.03)
    assert claim(outcome, "Pearson of the two scorings") == pytest.approx(0.676, abs=0.03)
    # Computed in the README: .592 over ratings.
    assert claim(outcome, "split-half ρ, ratings, 4.0") == pytest.approx(0.592, abs=0.04)
    # New tuples cost reliability: that of shared tuples is flattering.
    assert outcome.table is not None
    by_method = {row["method"]: row["value"] for row in outcome.table.sort("judgments").iter_rows(named=True)}
    assert by_method["best–worst, tuples split"] < by_method["best–worst"]


@pytest.mark.shared_data
def test_sliders_on_one_page_and_their_ranks_order_summaries_alike(shared_data: Path) -> None:
    outcome = SideBySide().small().run(shared_data, ignore_progress)
    assert len(outcome.claims) == 12
    assert claim(outcome, "overall: ρ of the two scorings") > 0.8
