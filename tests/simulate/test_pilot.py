"""What a pilot says about people and items."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import polars as pl
import pytest

from steelyard.errors import DataError
from steelyard.formats import read_judgments
from steelyard.reliability import split_half
from steelyard.simulate import Population, read_pilot, simulate_study
from tests.simulate.helpers import make_annotators, make_config, make_items
from tests.sizes import FULL


def simulated(
    population: Population, protocol: dict[str, Any], design: dict[str, Any], *, items: int, people: int, seed: int
):
    """The judgments of a pilot made by people from a population."""
    rows = make_items(items)
    annotators = make_annotators(people, rows, seed, population)
    study = simulate_study(make_config(protocol, design, seed=seed), rows, annotators, np.random.default_rng(seed))
    return study.observations()[""]


@pytest.mark.slow
@pytest.mark.parametrize(
    "population",
    [
        Population(item_sd=0.28, noise=0.12, bias=0.05, stretch=0.35, lapse=0.08),
        Population(),
        Population(mean=0.4, item_sd=0.18, noise=0.25, bias=0.12, stretch=0.1, lapse=0.02),
    ][: 3 if FULL else 1],
)
def test_the_parameters_of_simulated_pilots_are_recovered(population):
    """On average over pilots of 150 items with 10 ratings; one pilot alone strays further."""
    result = [
        asdict(
            read_pilot(
                simulated(population, {"name": "direct"}, {"judgments": 10}, items=150, people=40, seed=seed),
                np.random.default_rng(seed),
            ).population
        )
        for seed in range(3)
    ]
    mean = {name: float(np.mean([one[name] for one in result])) for name in result[0]}
    for name, tolerance in (
        ("mean", 0.05),
        ("item_sd", 0.03),
        ("noise", 0.04),
        ("bias", 0.03),
        # Where the noise is large, scale use can hardly be told.
        ("stretch", 0.2 if population.noise > 0.2 else 0.1),
        ("lapse", 0.05),
    ):
        assert mean[name] == pytest.approx(getattr(population, name), abs=tolerance), name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("protocol", "design"),
    [
        ({"name": "pairwise"}, {"judgments": 30}),
        ({"name": "best_worst"}, {"judgments": 24}),
        ({"name": "ranking"}, {"judgments": 20}),
    ],
    ids=lambda value: value.get("name", ""),
)
def test_the_noise_behind_comparisons_choices_and_rankings_is_recovered(protocol, design):
    population = Population(noise=0.25, lapse=0.0)
    result = [
        read_pilot(
            simulated(population, protocol, design, items=60, people=30, seed=seed), np.random.default_rng(seed)
        ).population.noise
        for seed in range(1)
    ]
    assert np.mean(result) == pytest.approx(0.25, rel=0.25)


@pytest.mark.full
@pytest.mark.slow
def test_the_samples_spread_as_pilots_of_this_size_do():
    """The sd of n values with kurtosis κ strays by σ/2 · √((κ - 1)/n): 0.016 for 60 of Beta(1.5, 1.5), κ = 2."""
    fits = [
        read_pilot(
            simulated(Population(), {"name": "direct"}, {"judgments": 8}, items=60, people=20, seed=seed),
            np.random.default_rng(seed),
        )
        for seed in range(2)
    ]
    within = np.mean([np.std([one.item_sd for one in fit.samples]) for fit in fits])
    assert 0.5 * 0.016 < within < 2.5 * 0.016


@pytest.mark.slow
def test_without_names_everything_that_differs_among_people_is_noise():
    ratings = simulated(Population(bias=0.2), {"name": "direct"}, {"judgments": 8}, items=60, people=20, seed=0)
    nameless = read_judgments(
        pl.DataFrame({"item": [ratings.items[int(code)] for code in ratings.item], "value": ratings.value}),
        scale=(0, 100),
    )
    pilot = read_pilot(nameless, np.random.default_rng(0))
    assert (pilot.population.bias, pilot.population.stretch) == (0, 0)
    # The bias of 0.2 joins the noise of 0.17: together about 0.26.
    assert pilot.population.noise > 0.2
    assert any("has no annotators" in note for note in pilot.notes)


def test_a_pilot_that_says_nothing_is_refused():
    once = read_judgments(pl.DataFrame({"item": list("abcdef"), "value": [1, 2, 3, 4, 5, 6]}), scale=(1, 6))
    with pytest.raises(DataError, match="judged by several annotators"):
        read_pilot(once, np.random.default_rng(0))
    labels = read_judgments(pl.DataFrame({"item": ["a", "a"], "annotator": ["x", "y"], "label": ["u", "v"]}))
    with pytest.raises(DataError, match="values cannot be estimated"):
        read_pilot(labels, np.random.default_rng(0))


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.shared_data
def test_a_population_fitted_to_real_sliders_is_about_as_reliable_as_they_are(shared_data):
    frame = pl.read_csv(shared_data / "nli" / "sliders.csv.gz", infer_schema_length=0)
    usable = frame.filter((pl.col("na") == "0") & (pl.col("status") != "Rejected"))
    retained = usable.select("annotator", "item", pl.col("value").cast(pl.Float64))
    few = retained["item"].unique(maintain_order=True)[:100]
    pilot_fit = read_judgments(retained.filter(pl.col("item").is_in(few.implode())), scale=(0, 100))
    population = read_pilot(pilot_fit, np.random.default_rng(0)).population
    ratings = simulated(population, {"name": "direct"}, {"judgments": 20}, items=100, people=200, seed=1)
    ours = split_half(ratings, trials=20)["split_half_spearman"].value
    theirs = split_half(pilot_fit.observations, trials=20, per_half=10)["split_half_spearman"].value
    assert ours == pytest.approx(theirs, abs=0.06)


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.shared_data
def test_the_noise_of_a_comparative_judgement_session_gives_its_reliability(shared_data):
    frame = pl.read_csv(shared_data / "comparative_judgement" / "decisions.csv.gz", infer_schema_length=0)
    session = frame.filter(pl.col("session") == "Clark2018_Study1").select(
        pl.col("judge").alias("annotator"), "winner", "loser"
    )
    pilot_fit = read_judgments(session)
    population = read_pilot(pilot_fit, np.random.default_rng(0)).population
    each = round(2 * len(pilot_fit.observations) / 82)
    pairs = simulated(population, {"name": "pairwise", "ties": False}, {"judgments": each}, items=82, people=56, seed=1)
    ours = split_half(pairs, trials=20)["split_half_spearman"].value
    assert ours == pytest.approx(split_half(pilot_fit.observations, trials=20)["split_half_spearman"].value, abs=0.05)
