"""A recipe makes a whole study from outputs of systems."""

from __future__ import annotations

import tomllib
from math import comb

import pytest

from steelyard.designs.description import describe_plan
from steelyard.errors import ConfigError
from steelyard.formats import read_items
from steelyard.formats.outputs import SystemOutputs, read_outputs
from steelyard.study.config import parse_config
from steelyard.study.recipes import compare_systems, recipe_toml


def outputs(systems: int, sources: int = 5) -> SystemOutputs:
    return read_outputs(
        [
            {"source": f"source {n}", "system": f"engine {k}", "translation": f"text {n} {k}"}
            for n in range(sources)
            for k in range(systems)
        ]
    )


@pytest.mark.parametrize("protocol", ["pairwise", "best_worst", "ranking", "scored_ranking", "direct", "likert"])
@pytest.mark.parametrize("systems", [2, 3, 4, 6, 12])
def test_every_recipe_is_a_study_that_shows_every_output_within_its_source(protocol, systems):
    data = outputs(systems)
    if systems == 2 and protocol in {"best_worst", "ranking", "scored_ranking"}:
        with pytest.raises(ConfigError, match="at least 3 outputs"):
            compare_systems(data, title="t", protocol=protocol)
        return
    recipe = compare_systems(data, title="t", protocol=protocol)
    config = parse_config(tomllib.loads(recipe_toml(recipe, ())))
    items = read_items(recipe.items)
    assert config.problems_with(items) == []
    assert {item.group for item in items} == set(data.systems)
    stage = config.stages[0]
    plan = describe_plan(stage.design, stage.protocol, items)
    assert plan.size.per_item >= 1
    assert plan.warnings == ()


@pytest.mark.parametrize(("systems", "pairs_per_source"), [(2, 1), (4, 6), (6, 15)])
def test_few_systems_are_compared_in_all_pairs(systems, pairs_per_source):
    recipe = compare_systems(outputs(systems), title="t")
    assert recipe.values["design"]["name"] == "all_pairs"
    assert recipe.values["question"] == "Which translation is better?"
    assert f"{pairs_per_source} pairs per source" in recipe.comments["design.name"]


@pytest.mark.parametrize(("judgments", "design"), [(3, "random_tuples"), (5, "all_pairs"), (12, "all_pairs")])
@pytest.mark.parametrize("protocol", ["pairwise", "best_worst", "scored_ranking", "direct"])
def test_judgments_are_judgments_per_output_whatever_the_protocol(judgments, design, protocol):
    recipe = compare_systems(outputs(6), title="t", protocol=protocol, judgments=judgments)
    stage = parse_config(recipe.values).stages[0]
    plan = describe_plan(stage.design, stage.protocol, read_items(recipe.items))
    # Whole rounds of tuples or annotators may give more, but less than one more of them.
    largest_step = 8 if protocol == "best_worst" else comb(5, 1)
    assert judgments <= plan.size.per_item < judgments + largest_step
    if protocol == "pairwise":
        assert recipe.values["design"]["name"] == design


def test_the_file_explains_itself():
    text = recipe_toml(compare_systems(outputs(6), title="t"), ())
    assert text.startswith("# Compares 6 systems by their translations for 5 sources: engine 0, ")
    assert "annotators never see the system" in text
    assert "--by system" in text
