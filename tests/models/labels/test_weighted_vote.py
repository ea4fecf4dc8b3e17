from __future__ import annotations

import numpy as np
import pytest

from steelyard.errors import DataError
from steelyard.models.gold import disputed_gold
from steelyard.models.labels.weighted_vote import WeightedVote
from tests.models.label_data import accuracy, labels_of, random_labels, snow


def test_weights_by_hand():
    # Ann has 3 of 4 right, Bob 1 of 4: (3 + 1) / (4 + 2) = 2/3 and 1/3, so weights log 2 and −log 2.
    gold = {"g1": "y", "g2": "y", "g3": "n", "g4": "n"}
    rows = [("ann", item, label) for item, label in zip(gold, "yyny", strict=True)]
    rows += [("bob", item, label) for item, label in zip(gold, "nyyy", strict=True)]
    labels = labels_of([*rows, ("ann", "new", "y"), ("bob", "new", "n")])
    fit = WeightedVote().fit(labels, gold=gold)
    assert fit.annotators["weight"].to_list() == pytest.approx([np.log(2), -np.log(2)])
    new = next(row for row in fit.scores.rows(named=True) if row["item"] == "new")
    # Bob's vote for n counts against n: both say y, with odds 2 · 2.
    assert new["label"] == "y"
    assert new["probability"] == pytest.approx(4 / 5)


def test_an_annotator_at_chance_has_no_vote_whatever_the_number_of_classes():
    gold = {f"g{k}": f"c{k % 4}" for k in range(4)}
    labels = labels_of([("ann", item, "c0") for item in gold], classes=["c1", "c2", "c3"])
    assert WeightedVote().fit(labels, gold=gold).annotators["weight"][0] == pytest.approx(0, abs=1e-12)


def test_two_weak_annotators_do_not_outvote_a_strong_one():
    rng = np.random.default_rng(0)
    rows, truth = [], {}
    for item in range(200):
        true = int(rng.integers(2))
        truth[f"i{item:03}"] = str(true)
        for name, skill in (("strong", 0.97), ("weak1", 0.6), ("weak2", 0.6)):
            rows.append((name, f"i{item:03}", str(true if rng.random() < skill else 1 - true)))
    labels = labels_of(rows)
    gold = dict(list(truth.items())[:100])
    table = WeightedVote().fit(labels, gold=gold).scores
    strong = {item: label for name, item, label in rows if name == "strong"}
    assert all(strong[item] == label for item, label in zip(table["item"], table["label"], strict=True))


def test_intervals_hold_the_probability():
    labels, truth = random_labels(1)
    table = WeightedVote().fit(labels, gold=dict(list(truth.items())[:30])).scores
    assert (table["lower"] <= table["probability"]).all()
    assert (table["probability"] <= table["upper"]).all()


def test_gold_is_needed():
    labels, _ = random_labels(2)
    with pytest.raises(DataError, match="weighted_vote needs gold: give --gold FILE"):
        WeightedVote().fit(labels)


@pytest.mark.shared_data
def test_recorded_entailment_gains_over_the_vote(shared_data):
    labels, gold = snow(shared_data, "rte")
    assert accuracy(WeightedVote(disputed=1.0).fit(labels, gold=gold), gold) > 0.897 + 0.02


@pytest.mark.shared_data
def test_the_one_disputed_gold_label_of_word_senses_is_found(shared_data):
    # Snow et al. §4.5: a single disagreement, nine to one against the gold label, "head of a company" (sense 1).
    labels, gold = snow(shared_data, "wsd")
    table = disputed_gold(labels, gold)
    assert table.select("gold", "label", "votes", "gold_votes").rows() == [("1", "2", 9, 1)]


def test_disputed_items_are_listed_most_contradicted_first_and_may_be_set_aside():
    rows = [(f"a{k}", "x", "q") for k in range(10)]
    rows += [(f"a{k}", "y", "q" if k < 8 else "p") for k in range(10)]
    rows += [(f"a{k}", "z", "q" if k < 7 else "p") for k in range(10)]
    rows += [(f"a{k}", "few", "q") for k in range(4)]
    labels = labels_of(rows)
    gold = dict.fromkeys(("x", "y", "z", "few"), "p")
    assert disputed_gold(labels, gold)["item"].to_list() == ["x", "y"]
    assert disputed_gold(labels, gold, share=1.0, judgments=3)["item"].to_list() == ["x", "few"]
    trusting = WeightedVote(disputed=1.0).fit(labels, gold=gold).annotators
    doubting = WeightedVote(disputed=0.8).fit(labels, gold=gold)
    assert trusting["gold_judgments"].to_list()[0] == 4
    assert doubting.annotators["gold_judgments"].to_list()[0] == 2
    assert any("were ignored: x, y" in note for note in doubting.notes)
