"""Recorded judgments as annotators."""

from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl
import pytest

from steelyard.errors import ConfigError, DataError
from steelyard.formats import read_judgments
from steelyard.protocols import BestWorst, Choice, Direct, Likert, Pairwise, Ranking, ScoredRanking
from steelyard.protocols.rated import Criterion
from steelyard.records import Item
from steelyard.reliability import split_half
from steelyard.simulate import RecordedAnnotators, answer_study, simulate_study
from steelyard.study import Study
from tests.simulate.helpers import make_config

RATED = [
    {"annotator": "ann", "item": "a", "value": 10},
    {"annotator": "ann", "item": "b", "value": 90},
    {"annotator": "bob", "item": "a", "value": 20},
    {"annotator": "bob", "item": "b", "value": 20},
    {"annotator": "cy", "item": "c", "value": 55},
]


def recorded(rows, seed=0, seats=2, **options) -> RecordedAnnotators:
    return RecordedAnnotators(read_judgments(pl.DataFrame(rows), **options), seats, np.random.default_rng(seed))


def rated(seed=0) -> RecordedAnnotators:
    return recorded(RATED, seed, scale=(0, 100))


def test_every_recorded_rating_is_used_once_before_any_is_used_again():
    people = rated()
    first = Counter(people.answer("seat-1", Direct(), ["a"])["a"] for _ in range(2))
    assert first == {10: 1, 20: 1}
    assert people.counts["judgments used again"] == 0
    assert people.answer("seat-1", Direct(), ["a"])["a"] in {10, 20}
    assert people.counts["judgments used again"] == 1


def test_items_of_one_task_are_answered_by_one_person_where_there_is_one():
    for seed in range(10):
        people = rated(seed)
        both = [people.answer("seat-1", ScoredRanking(size=2), ["a", "b"]) for _ in range(2)]
        assert sorted(answer["b"] for answer in both) == [20, 90]
        assert all(answer in ({"a": 10, "b": 90}, {"a": 20, "b": 20}) for answer in both)
        assert people.counts == {"by one person": 2}


def test_items_that_nobody_judged_together_are_drawn_one_by_one():
    people = rated()
    assert people.answer("seat-1", ScoredRanking(size=2), ["b", "c"])["c"] == 55
    assert people.counts["item by item"] == 1


def test_ratings_are_carried_over_to_the_scale_that_is_asked():
    assert recorded(RATED[4:], scale=(0, 100)).answer("seat-1", Likert(), ["c"]) == {"c": 3}
    assert recorded(RATED[4:], scale=(0, 100)).answer("seat-1", Direct(scale=(-1, 1)), ["c"]) == {"c": 0.1}


def test_one_person_s_ratings_answer_what_sets_items_against_each_other():
    seen_sets = set()
    for seed in range(20):
        answer = rated(seed).answer("seat-1", Pairwise(), ["a", "b"])
        seen_sets.add(answer["winner"])
    # ann says b, bob finds them equal.
    assert seen_sets == {"b", None}
    assert {tuple(map(tuple, rated(seed).answer("s", Ranking(size=2), ["a", "b"]))) for seed in range(20)} == {
        (("b",), ("a",)),
        (("a", "b"),),
    }
    with pytest.raises(DataError, match=r"no recorded ratings compare 'a', 'c' with each other"):
        rated().answer("seat-1", Pairwise(), ["a", "c"])


def test_comparisons_answer_the_pairs_that_were_compared():
    rows = [{"annotator": "ann", "winner": "b", "loser": "a"}, {"annotator": "ann", "winner": "b", "loser": "c"}]
    assert recorded(rows).answer("seat-1", Pairwise(), ["a", "b"]) == {"winner": "b"}
    assert recorded(rows).answer("seat-1", Pairwise(), ["b", "a"]) == {"winner": "b"}
    with pytest.raises(DataError, match=r"'a', 'c'.*Ask only what was recorded"):
        recorded(rows).answer("seat-1", Pairwise(), ["a", "c"])


def test_choices_answer_their_own_tuples_and_the_pairs_they_settle():
    rows = [{"items": ["a", "b", "c", "d"], "best": "c", "worst": "a"}]
    frame = pl.DataFrame(rows)
    people = RecordedAnnotators(read_judgments(frame), 1, np.random.default_rng(0))
    assert people.answer("seat-1", BestWorst(), ["d", "c", "b", "a"]) == {"best": "c", "worst": "a"}
    assert people.answer("seat-1", Pairwise(), ["b", "c"]) == {"winner": "c"}
    with pytest.raises(DataError, match="with each other"):
        people.answer("seat-1", Pairwise(), ["b", "d"])
    with pytest.raises(DataError, match="with each other"):
        people.answer("seat-1", BestWorst(size=3), ["a", "b", "c"])


def test_labels_answer_choice_and_nothing_else():
    rows = [{"annotator": "ann", "item": "a", "label": "yes"}, {"annotator": "bob", "item": "a", "label": "no"}]
    people = recorded(rows)
    protocol = Choice(labels=("no", "yes"))
    assert Counter(people.answer("seat-1", protocol, ["a"])["a"] for _ in range(2)) == {"yes": 1, "no": 1}
    with pytest.raises(ConfigError, match="recorded labels cannot answer direct"):
        people.answer("seat-1", Direct(), ["a"])


def test_what_was_never_judged_is_refused():
    with pytest.raises(DataError, match=r"judgments of 'z'.*Leave it out"):
        rated().answer("seat-1", Direct(), ["z"])
    with pytest.raises(DataError, match="nothing was recorded for criterion 'joy'"):
        rated().answer("seat-1", Direct(criteria={"joy": Criterion()}), ["a"])


@pytest.fixture(scope="module")
def sliders(shared_data):
    frame = pl.read_csv(shared_data / "nli" / "sliders.csv.gz", infer_schema_length=0)
    usable = frame.filter((pl.col("na") == "0") & (pl.col("status") != "Rejected"))
    retained = usable.select("annotator", "item", pl.col("value").cast(pl.Float64))
    few = retained["item"].unique(maintain_order=True)[:60]
    return read_judgments(retained.filter(pl.col("item").is_in(few.implode())), scale=(0, 100))


@pytest.mark.shared_data
def test_the_same_seed_gives_the_same_tasks_and_answers(sliders):
    def run(seed):
        rng = np.random.default_rng(seed)
        people = RecordedAnnotators(sliders, 20, rng)
        items = [Item(name, name) for name in people.items]
        study = simulate_study(make_config({"name": "scored_ranking"}, {"judgments": 6}), items, people, rng)
        return [(judgment.items, judgment.answer) for judgment in study.judgments(0)]

    assert run(1) == run(1)
    assert run(1) != run(2)


@pytest.mark.shared_data
def test_replayed_ratings_are_as_reliable_as_the_recorded_ones(sliders):
    """Twenty ratings of each item, drawn without replacement, are a sample of the record."""
    rng = np.random.default_rng(0)
    people = RecordedAnnotators(sliders, 30, rng)
    items = [Item(name, name) for name in people.items]
    study = simulate_study(make_config({"name": "direct"}, {"judgments": 20}), items, people, rng)
    assert people.counts["judgments used again"] == 0
    replayed = split_half(study.observations()[""], trials=50)["split_half_spearman"].value
    recorded_ones = split_half(sliders.observations, trials=50, per_half=10)["split_half_spearman"].value
    assert replayed == pytest.approx(recorded_ones, abs=0.03)


@pytest.mark.shared_data
def test_a_real_study_can_be_replayed(sliders, tmp_path):
    rng = np.random.default_rng(0)
    people = RecordedAnnotators(sliders, 8, rng)
    lines = ["id,text", *(f"{name},{name}" for name in people.items[:15])]
    (tmp_path / "items.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "study.toml").write_text(
        'title = "T"\nquestion = "Q"\nitems = "items.csv"\n[protocol]\nname = "direct"\n[design]\njudgments = 4\n'
    )
    with Study.open(tmp_path) as study:
        assert answer_study(study, people, rng) == 60
        assert study.scores().height == 15
