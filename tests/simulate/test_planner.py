"""Plans agree with theory, and with studies that are simulated apart from them."""

from __future__ import annotations

from math import asin, pi

import numpy as np
import pytest

from steelyard import registry
from steelyard.designs import Adaptive
from steelyard.errors import ConfigError
from steelyard.models.point_scores import PointScores
from steelyard.reliability import split_half
from steelyard.simulate import (
    IntervalWidth,
    PlanOption,
    Population,
    SystemDifference,
    SystemLayout,
    TopItems,
    choose_options,
    plan,
    simulate_study,
)
from steelyard.simulate.plan_layout import SystemEffects
from tests.simulate.helpers import make_annotators, make_config, make_items
from tests.sizes import FULL

# Far from the ends of the scale, without lapses: the closed form holds.
TAME = Population(item_sd=0.1, noise=0.13, noise_cv=0.0, bias=0.05, stretch=0.0, lapse=0.0)


def pearson_of_halves(population: Population, per_half: float) -> float:
    """σ² / (σ² + (bias² + noise²)/m): the correlation of two means of m ratings by different people."""
    error = population.bias**2 + population.noise**2
    return population.item_sd**2 / (population.item_sd**2 + error / per_half)


def spearman_of_halves(population: Population, per_half: float) -> float:
    """Spearman's ρ of two normal variables that correlate at r: 6/π · asin(r/2)."""
    return 6 / pi * asin(pearson_of_halves(population, per_half) / 2)


@pytest.mark.slow
@pytest.mark.parametrize("each", [4, 10, 20] if FULL else [10])
def test_simulated_redundancy_agrees_with_spearman_and_brown(each):
    items = make_items(300)
    result = []
    for seed in range(4):
        config = make_config({"name": "direct"}, {"judgments": each}, seed=seed)
        study = simulate_study(config, items, make_annotators(60, items, seed, TAME), np.random.default_rng(seed))
        result.append(split_half(study.observations()[""], trials=20))
    plain = np.mean([one["split_half_pearson"].value for one in result])
    assert plain == pytest.approx(pearson_of_halves(TAME, each / 2), abs=0.02)
    stepped = np.mean([one["split_half_pearson_corrected"].value for one in result])
    assert stepped == pytest.approx(pearson_of_halves(TAME, each), abs=0.02)
    assert np.mean([one["split_half_spearman"].value for one in result]) == pytest.approx(
        spearman_of_halves(TAME, each / 2), abs=0.025
    )


@pytest.fixture(scope="module")
def tame_plan():
    return plan(200, 0.85, [PlanOption("direct", "per_item", model="mean")], populations=[TAME], people=60)


@pytest.mark.slow
def test_the_judgments_planned_are_those_of_the_closed_form(tame_plan):
    row = tame_plan.table().row(0, named=True)
    needed = next(each for each in np.arange(2, 80, 0.1) if spearman_of_halves(TAME, each / 2) >= 0.85) * 200
    assert row["judgments"] == pytest.approx(needed, rel=0.1)
    assert row["lower"] < needed < row["upper"]


def test_the_curve_follows_the_closed_form(tame_plan):
    for row in tame_plan.curve.iter_rows(named=True):
        each = row["judgments"] / 200
        assert row["value"] == pytest.approx(spearman_of_halves(TAME, each / 2), abs=0.03)


def test_truth_is_the_root_of_reliability_for_plain_ratings(tame_plan):
    """A mean of m ratings correlates with the truth at the root of its reliability."""
    row = tame_plan.table().row(0, named=True)
    each = row["judgments"] / 200
    expected = 6 / pi * asin(np.sqrt(pearson_of_halves(TAME, each)) / 2)
    assert row["truth"] == pytest.approx(expected, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("protocol", "design"),
    [
        ("best_worst", "random_tuples"),
        pytest.param("scored_ranking", "random_tuples", marks=pytest.mark.full),
        pytest.param("pairwise", "random_tuples", marks=pytest.mark.full),
    ],
)
def test_a_study_of_the_planned_size_has_the_planned_reliability(protocol, design):
    study_plan = plan(50, 0.75, [PlanOption(protocol, design)], people=30).table().row(0, named=True)
    items = make_items(50)
    result = []
    for seed in range(100, 106):
        each = round(study_plan["judgments"] * study_plan["items_per_judgment"] / 50)
        config = make_config({"name": protocol}, {"name": design, "judgments": each}, seed=seed)
        study = simulate_study(config, items, make_annotators(30, items, seed), np.random.default_rng(seed))
        model = registry.create("models", study_plan["model"], {})
        observations = study.observations()[""]
        result.append(split_half(observations, model=PointScores(model), trials=10)["split_half_spearman"].value)
    assert np.mean(result) == pytest.approx(0.75, abs=0.04)


def test_a_design_that_listens_is_planned_too():
    study_plan = plan(40, 0.75, [PlanOption("scored_ranking", "match_quality")], people=20)
    row = study_plan.table().row(0, named=True)
    assert row["lower"] <= row["judgments"] <= row["upper"]
    assert row["showings_per_item"] == pytest.approx(row["judgments"] * 5 / 40)


@pytest.mark.slow
def test_budgets_too_small_to_be_split_are_not_measured():
    """With most items in one half only, the few others may agree by chance."""
    study_plan = plan(60, 0.7, [PlanOption("scored_ranking", "random_tuples", model="mean")])
    assert study_plan.curve["judgments"].min() >= 2 * 60 / 5
    assert study_plan.table()["lower"][0] >= 2 * 60 / 5 * 0.5


@pytest.mark.slow
def test_more_is_needed_for_noisier_people_and_higher_targets():
    def needed(target, population):
        return plan(40, target, [PlanOption("direct", "per_item", model="mean")], populations=[population]).table()[
            "judgments"
        ][0]

    usual = needed(0.7, Population())
    assert needed(0.8, Population()) > 1.3 * usual
    assert needed(0.7, Population(noise=0.3)) > 1.3 * usual


@pytest.mark.slow
def test_a_protocol_s_own_settings_are_planned_with():
    large, small = (
        plan(30, 0.7, [PlanOption("best_worst", "random_tuples", (("size", size),))]).table().row(0, named=True)
        for size in (6, 3)
    )
    assert (large["items_per_judgment"], small["items_per_judgment"]) == (6, 3)
    assert large["judgments"] < small["judgments"]


@pytest.mark.slow
def test_the_same_seed_gives_the_same_plan_in_one_process_or_two():
    options = [PlanOption(protocol, "per_item", model="mean") for protocol in ("direct", "likert")]
    alone = plan(20, 0.7, options, seed=5)
    assert plan(20, 0.7, options, seed=5, jobs=2) == alone
    assert plan(20, 0.7, options, seed=6).table()["judgments"].to_list() != alone.table()["judgments"].to_list()


def test_a_target_out_of_reach_is_refused_with_the_best_there_is():
    with pytest.raises(
        ConfigError,
        match=r"0\.99 cannot be reached: the best is 0\.\d+, by direct · per_item \(with 5 annotators",
    ):
        plan(40, 0.99, [PlanOption("direct", "per_item", model="mean")], people=5)


@pytest.mark.slow
def test_an_option_out_of_reach_is_shown_beside_those_that_are_not():
    study_plan = plan(
        40, 0.85, [PlanOption("direct", "per_item", model="mean"), PlanOption("best_worst", "random_tuples")], people=5
    )
    rows = {row["protocol"]: row for row in study_plan.table(price=1.0).iter_rows(named=True)}
    assert rows["direct"]["judgments"] is None
    assert rows["direct"]["best"] < 0.85
    assert rows["best_worst"]["cost"] == rows["best_worst"]["judgments"]


def test_hours_and_cost_follow_from_the_judgments(tame_plan):
    row = tame_plan.table(seconds={"direct": 36}, wage=12).row(0, named=True)
    assert row["hours"] == pytest.approx(row["judgments"] / 100)
    assert row["cost"] == pytest.approx(12 * row["hours"])
    assert row["cost_lower"] <= row["cost"] <= row["cost_upper"]


def test_options_are_those_that_fit():
    assert {option.protocol for option in choose_options(50)} >= {"direct", "pairwise", "best_worst", "scored_ranking"}
    assert {option.design for option in choose_options(50, ["direct"])} <= {"per_item", "match_quality", "adaptive"}
    assert "all_pairs" not in {option.design for option in choose_options(500, ["pairwise"])}
    (named,) = choose_options(500, ["pairwise"], ["adaptive"])
    assert named.config(7, 500, 0).stages[0].design == Adaptive(judgments=7)
    with pytest.raises(ConfigError, match="labels have no split-half"):
        choose_options(50, ["choice"])
    with pytest.raises(ConfigError, match="no protocol called 'best_wurst'"):
        choose_options(50, ["best_wurst"])
    with pytest.raises(ConfigError, match="judgments of tournament cannot be planned"):
        choose_options(50, [], ["tournament"])
    with pytest.raises(ConfigError, match="between 0 and 1"):
        plan(50, 1.0, choose_options(50, ["direct"]))


EFFECTS = SystemEffects(system_sd=0.05, source_sd=0.08, interaction_sd=0.07)


def test_judgments_for_systems_are_those_of_the_closed_form():
    layout = SystemLayout.of_counts(5, 60, EFFECTS)
    population = Population(noise=0.13, noise_cv=0.0, bias=0.0, stretch=0.0, lapse=0.0)
    study_plan = plan(layout, 0.85, [PlanOption("direct", "per_item")], populations=[population], people=40)
    row = study_plan.table().row(0, named=True)
    # Halves of 30 sources with half of the ratings of each of 5 systems; deviations from the mean of 5.
    error = EFFECTS.interaction_sd**2 / 30 + population.noise**2 / (row["judgments"] / 10)
    expected = EFFECTS.system_sd**2 / (EFFECTS.system_sd**2 + 4 / 5 * error)
    assert expected == pytest.approx(0.85, abs=0.02)
    assert row["lower"] < row["judgments"] < row["upper"]


def test_too_few_sources_are_told_with_the_number_that_it_takes():
    # By hand: halves of n/2 sources reach .9 only if .07² / (n/2) ≤ .05² / 9, so n ≥ 35.28.
    assert SystemLayout.of_counts(2, 4, EFFECTS).min_sources(0.9) == 36
    with pytest.raises(ConfigError, match="with more sources \\(at least 36 are needed"):
        plan(SystemLayout.of_counts(4, 6, EFFECTS), 0.9, [PlanOption("pairwise", "all_pairs")], people=20)


def test_options_for_systems_show_no_more_outputs_than_a_source_has():
    layout = SystemLayout.of_outputs([(f"s{k}", f"{n}") for n in range(9) for k in range(3)])
    sizes = {option.protocol: option.items_per_judgment for option in choose_options(layout.n_comparable)}
    assert (sizes["best_worst"], sizes["ranking"], sizes["pairwise"]) == (3, 3, 2)
    with pytest.raises(ConfigError, match="four sources"):
        SystemLayout.of_counts(5, 3)
    with pytest.raises(ConfigError, match="Did you mean 'system_sd'"):
        SystemEffects.of({"sytem_sd": 0.1})


@pytest.mark.slow
def test_the_width_of_intervals_is_that_of_the_closed_form():
    """The values given the means of m ratings have the standard deviation σ √(1 − r²)."""
    option = PlanOption("direct", "per_item", model="mean")
    row = plan(100, IntervalWidth(0.15), [option], populations=[TAME], people=60).table().row(0, named=True)
    r_squared = pearson_of_halves(TAME, row["judgments"] / 100)
    assert 2 * 1.96 * TAME.item_sd * np.sqrt(1 - r_squared) == pytest.approx(0.15, rel=0.04)


@pytest.mark.slow
def test_a_difference_of_systems_takes_the_judgments_of_a_power_analysis():
    """By hand: the mean of S paired differences has variance 2 (interaction² + noise²/m) / S."""
    effects = SystemEffects(system_sd=0.05, source_sd=0.08, interaction_sd=0.05)
    calm = Population(noise=0.13, noise_cv=0.0, bias=0.0, stretch=0.0, lapse=0.0)
    target = SystemDifference(0.03, 0.8)
    option = PlanOption("direct", "per_item", model="mean")
    row = plan(SystemLayout.of_counts(2, 100, effects), target, [option], populations=[calm], people=60).table()
    each = row["judgments"][0] / 200
    noncentrality = 0.03 / np.sqrt(2 * (0.05**2 + 0.13**2 / each) / 100)
    assert noncentrality == pytest.approx(1.96 + 0.84, rel=0.08)


@pytest.mark.slow
def test_the_top_items_need_more_judgments_the_surer_they_must_be():
    option = PlanOption("direct", "per_item", model="mean")
    needed = [plan(20, TopItems(3, goal), [option], people=80).table()["judgments"][0] for goal in (0.3, 0.6)]
    assert needed[1] > 1.3 * needed[0]


@pytest.mark.slow
def test_the_adaptive_design_is_planned_with_its_model_and_needs_fewer_judgments():
    options = [PlanOption("pairwise", "random_tuples"), PlanOption("pairwise", "adaptive")]
    rows = {row["design"]: row for row in plan(40, 0.8, options, people=20).table().iter_rows(named=True)}
    assert rows["adaptive"]["model"] == "calibrated_scale"
    assert rows["adaptive"]["judgments"] < 0.9 * rows["random_tuples"]["judgments"]
    # Reliability means the same for both: at the same one, scores are about as close to the true values.
    assert rows["adaptive"]["truth"] == pytest.approx(rows["random_tuples"]["truth"], abs=0.03)


def test_the_sentence_for_a_preregistration_has_every_number(tame_plan):
    row = tame_plan.table(price=0.1).row(0, named=True)
    sentence = tame_plan.preregistration(row, "€")
    for part in (f"{row['judgments']:,} direct", "60 annotators", "design per_item", "model mean", "reliability 0.85"):
        assert part in sentence
