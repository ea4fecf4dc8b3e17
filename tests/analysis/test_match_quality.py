"""The heat map of match quality, against the paper's formula and its Figure 8."""

from __future__ import annotations

from math import exp, sqrt

import polars as pl
import pytest

from steelyard.analysis.history import history_of
from steelyard.analysis.match_quality import match_quality_by_round
from steelyard.analysis.tables import ranked_items

DESIGN = 'name = "match_quality"\nrounds = 3\ntasks_per_round = 2'


def quality(one: list[float], other: list[float], gamma: float = 0.1) -> float:
    """Eq. 23 of Sakaguchi & Van Durme (2018) for two Betas that started at (1, 1) and saw these ratings."""

    def moments(seen):
        a, b = 1 + sum(seen), 1 + sum(1 - value for value in seen)
        return (a - 1) / (a + b - 2) if seen else 0.5, a * b / ((a + b) ** 2 * (a + b + 1))

    (m1, v1), (m2, v2) = moments(one), moments(other)
    c2 = 2 * gamma**2 + v1 + v2
    return sqrt(2 * gamma**2 / c2) * exp(-((m1 - m2) ** 2) / (2 * c2))


@pytest.fixture
def rounds(open_study):
    """Six items, three rounds of two tasks; item w0 is rated 0, w1 20, … w5 100."""
    study = open_study('name = "scored_ranking"\nsize = 3', DESIGN, items=6)
    answered: list[tuple[int, tuple[str, ...]]] = []
    for name in ("ann", "bob", "cleo"):
        for _ in range(2):
            task = study.ask(name)
            study.tell(task, {item: 20 * int(item[1]) for item in task.item_ids})
            answered.append((len(answered) // 2, task.item_ids))
    history = history_of(study)
    return study, history, match_quality_by_round(history, study, ranked_items(study.scores(), study.items)), answered


def test_before_the_first_answer_all_items_match_alike(rounds):
    first = rounds[2].filter(pl.col("round") == 0)
    assert first.height == 36
    assert first["quality"].to_list() == pytest.approx([quality([], [])] * 36)


def test_each_round_shows_what_was_known_when_it_opened(rounds):
    _, _, table, seen = rounds
    assert table["round"].unique().sort().to_list() == [0, 1, 2]
    for number in (1, 2):
        values = {f"w{n}": [n / 5 for r, items in seen if r < number and f"w{n}" in items] for n in range(6)}
        for row in table.filter(pl.col("round") == number).iter_rows(named=True):
            assert row["quality"] == pytest.approx(quality(values[row["item"]], values[row["other"]]))


def test_items_stand_in_the_order_of_their_scores_the_lowest_first(rounds):
    study, _, table, _ = rounds
    order = table.filter((pl.col("round") == 0) & (pl.col("column") == 0)).sort("row")["item"].to_list()
    scores = dict(study.scores().select("item", "score").iter_rows())
    assert [scores[item] for item in order] == sorted(scores.values())


def test_of_many_items_and_rounds_only_some_stand_for_all(rounds):
    study, history, _, _ = rounds
    ranked = ranked_items(study.scores(), study.items)
    small = match_quality_by_round(history, study, ranked, cells=3, rounds=2)
    assert small["round"].unique().sort().to_list() == [0, 2]
    assert small.filter(pl.col("round") == 0).height == 9


def test_other_designs_have_no_such_map(open_study):
    study = open_study(items=4)
    task = study.ask("ann")
    study.tell(task, {task.item_ids[0]: 5})
    ranked = ranked_items(study.scores(), study.items)
    assert match_quality_by_round(history_of(study), study, ranked).is_empty()


@pytest.mark.filterwarnings("ignore::steelyard.errors.SteelyardWarning")
@pytest.mark.parametrize("model", ["bounded_ranking", "trueskill"])
def test_models_of_comparisons_have_their_map_too(open_study, model):
    study = open_study('name = "pairwise"', f'{DESIGN}\nmodel = "{model}"', items=6)
    for name in ("ann", "bob", "cleo"):
        for _ in range(2):
            task = study.ask(name)
            study.tell(task, {"winner": max(task.item_ids)})
    table = match_quality_by_round(history_of(study), study, ranked_items(study.scores(), study.items))
    assert table.filter(pl.col("round") == 0)["quality"].n_unique() == 1
    assert table.filter(pl.col("round") == 2)["quality"].n_unique() > 1
    assert table["quality"].is_between(0, 1).all()
