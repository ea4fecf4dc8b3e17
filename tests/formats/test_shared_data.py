"""Recorded judgments; the expected figures are those of ../shared/data/README.md."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from steelyard.formats import judgment_table, read_items, read_judgments
from steelyard.observations import Choices, Comparisons, Labels, Rankings, Ratings

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"

pytestmark = [
    pytest.mark.shared_data,
    pytest.mark.skipif(not DATA.is_dir(), reason="../shared/data is absent"),
]


def test_semeval_answers_are_all_kept_and_the_odd_ones_counted() -> None:
    file = read_judgments(DATA / "bws/semeval2012_answers.csv.gz")
    choices = file.observations
    assert isinstance(choices, Choices)
    assert len(choices) == 39635
    assert not choices.knows_annotators
    assert file.notes == (
        "Ignored columns: relation.",
        "No best in 53 rows: kept without it.",
        "No worst in 36 rows: kept without it.",
        "The same item as best and as worst in 184 rows: kept.",
    )


def test_semeval_gold_follows_from_the_choices_by_relation() -> None:
    by_relation = read_judgments(
        DATA / "bws/semeval2012_answers.csv.gz", columns={"criterion": "relation"}
    ).by_criterion
    assert len(by_relation) == 79
    gold = pl.read_csv(DATA / "bws/semeval2012_gold.csv.gz")
    scores = {}
    for relation, choices in by_relation.items():
        assert isinstance(choices, Choices)
        count = len(choices.items)
        appearances = np.bincount(choices.shown.ravel(), minlength=count)
        best = np.bincount(choices.best[choices.best >= 0], minlength=count)
        worst = np.bincount(choices.worst[choices.worst >= 0], minlength=count)
        for name, score in zip(choices.items.ids, 100 * (best - worst) / appearances, strict=True):
            scores[relation, name] = score
    assert len(scores) == gold.height == 3218
    assert max(abs(scores[relation, item] - score) for relation, item, score in gold.rows()) <= 0.0500001


def test_wmt10_rankings_give_the_published_number_of_pairs() -> None:
    rankings = read_judgments(DATA / "wmt10/rankings.csv.gz").observations
    assert isinstance(rankings, Rankings)
    comparisons = rankings.to_comparisons()
    assert len(comparisons) == 75768
    reference = rankings.items.code("_ref")
    assert int(((comparisons.left != reference) & (comparisons.right != reference)).sum()) == 67487


def test_wmt10_strict_refuses_only_what_is_blank() -> None:
    raw = pl.read_csv(DATA / "wmt10/rankings.csv.gz")
    assert (raw.height, raw["judgeId"].n_unique()) == (7692, 117)
    complete = raw.filter(pl.all_horizontal(pl.col("^system.rank$") != -1))
    assert len(read_judgments(complete, strict=True).observations) == complete.height


def test_turk_batch_gives_the_ratings_of_the_sliders_file() -> None:
    sliders = pl.read_csv(DATA / "nli/sliders.csv.gz", infer_schema_length=None).filter(
        (pl.col("batch") == 1) & (pl.col("na") == 0) & (pl.col("status") != "Rejected")
    )
    expected = Counter(sliders.select("annotator", "hit", "item", pl.col("value").cast(pl.Float64)).rows())
    for columns in (None, {"item": "Input.pair_id_*", "value": "Answer.rating*", "missing": "Answer.na*"}):
        ratings = read_judgments(DATA / "nli/amt_batch.csv.gz", columns=columns, scale=(0, 100)).observations
        assert Counter(judgment_table(ratings).rows()) == expected


def test_sliders_are_ratings_in_themselves() -> None:
    ratings = read_judgments(DATA / "nli/sliders.csv.gz", scale=(0, 100)).observations
    assert isinstance(ratings, Ratings)
    assert (len(ratings), len(ratings.annotators), len(ratings.items)) == (26220, 509, 500)


@pytest.mark.parametrize(
    ("name", "items", "annotators", "labels", "classes"),
    [
        ("labels/bluebird", 108, 39, 4212, 2),
        ("labels/dog", 807, 109, 8070, 4),
        ("labels/web", 2665, 177, 15567, 5),
        ("labels/product", 8315, 176, 24945, 2),
        ("snow2008/rte", 800, 164, 8000, 2),
        ("snow2008/temp", 462, 76, 4620, 2),
        ("snow2008/wsd", 177, 34, 1770, 3),
    ],
)
def test_label_sets_have_their_sizes(name: str, items: int, annotators: int, labels: int, classes: int) -> None:
    read = read_judgments(DATA / f"{name}.csv.gz").observations
    assert isinstance(read, Labels)
    assert (len(read.items), len(read.annotators), len(read), len(read.classes)) == (items, annotators, labels, classes)


def test_word_similarity_and_affect_are_ratings() -> None:
    words = read_judgments(DATA / "snow2008/wordsim.csv.gz", scale=(0, 10)).observations
    assert (len(words), len(words.items), len(words.annotators)) == (300, 30, 10)
    affect = read_judgments(DATA / "snow2008/affect.csv.gz", columns={"criterion": "emotion"}).by_criterion
    assert {len(ratings) for ratings in affect.values()} == {1000}
    valence = affect.pop("valence")
    assert isinstance(valence, Ratings)
    assert valence.scale == (-100, 100)
    assert len(affect) == 6


def test_comparative_judgement_decisions_are_comparisons() -> None:
    comparisons = read_judgments(
        DATA / "comparative_judgement/decisions.csv.gz", columns={"criterion": "session"}
    ).by_criterion
    assert sum(map(len, comparisons.values())) == 58355
    hunter = comparisons["Hunter2018"]
    assert isinstance(hunter, Comparisons)
    assert (len(hunter), len(hunter.items), len(hunter.annotators)) == (26364, 2035, 39)


def test_wmt21_direct_assessments_are_ratings_of_systems_by_mapping() -> None:
    ratings = read_judgments(
        DATA / "wmt21-da/cs-en.csv.gz", columns={"item": "system", "value": "score_raw", "task": "hit"}, scale=(0, 100)
    ).observations
    assert (len(ratings), len(ratings.annotators), len(ratings.tasks), len(ratings.items)) == (13069, 92, 154, 9)


def test_items_files_are_read() -> None:
    assert len(read_items(DATA / "snow2008/affect_items.csv.gz")) == 100
    rte = read_items(
        DATA / "snow2008/rte_items.csv.gz",
        columns={"context": "text", "text": "hypothesis", "tags": "task"},
    )
    assert len(rte) == 800
    assert rte[0].tags == ("CD",)
    assert rte[0].gold == "1"


def test_arena_votes_and_places_need_no_options() -> None:
    votes = read_judgments(DATA / "pandalm/votes.csv.gz").observations
    assert isinstance(votes, Comparisons)
    raw = pl.read_csv(DATA / "pandalm/votes.csv.gz", infer_schema=False)["winner"].drop_nulls().to_list()
    counts = Counter(raw)
    assert Counter(votes.outcome.tolist()) == {1: counts["a"], -1: counts["b"], 0: counts["tie"]}
    graded = read_judgments(DATA / "tulu_graded/votes.csv.gz").observations
    assert isinstance(graded, Comparisons)
    grade = pl.read_csv(DATA / "tulu_graded/votes.csv.gz")["grade"].to_numpy()
    assert graded.outcome.tolist() == np.sign(grade).tolist()
    dots = read_judgments(DATA / "preflib/dots.csv.gz").observations
    assert isinstance(dots, Rankings)
    assert len(dots) == 3183
    assert len(dots.item) == 4 * 3183
