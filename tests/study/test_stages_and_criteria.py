"""Several stages, in sequence or mixed; several criteria on one screen; groups."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from steelyard import Counting, Study
from steelyard.simulate import SimulatedAnnotator, answer_study_with_crowd


def write(folder: Path, config: str, items: str) -> Path:
    folder.mkdir()
    (folder / "study.toml").write_text('title = "T"\nquestion = "Q"\nitems = "items.csv"\n' + config)
    (folder / "items.csv").write_text(items)
    return folder


WORDS = "id,text\n" + "".join(f"w{n},word {n}\n" for n in range(8))
TRUTH = {f"w{n}": n / 7 for n in range(8)}
CROWD = [SimulatedAnnotator(f"a{n}", noise=0.05) for n in range(6)]


def test_stages_in_sequence_wait_for_the_one_before(tmp_path):
    config = """
[[stage]]
protocol = { name = "pairwise" }
design = { judgments = 3 }
[[stage]]
name = "absolute"
protocol = { name = "direct" }
design = { judgments = 2 }
[model]
name = "mean"
"""
    folder = write(tmp_path / "s", config, WORDS)
    with Study.open(folder) as study:
        rng = np.random.default_rng(1)
        answer_study_with_crowd(study, CROWD, TRUTH, rng)
        protocols = study.judgments()["protocol"].to_list()
        assert protocols == sorted(protocols, key=["pairwise", "direct"].index)
        assert Counter(protocols) == {"pairwise": 12, "direct": 16}
        assert [stage.name for stage in study.status().stages] == ["pairwise", "absolute"]
        assert study.offer("late-comer").complete


def test_the_second_stage_does_not_begin_while_a_task_of_the_first_is_out(tmp_path):
    config = """
[[stage]]
protocol = { name = "pairwise" }
design = { judgments = 1 }
[[stage]]
protocol = { name = "direct" }
"""
    folder = write(tmp_path / "s", config, "id,text\na,a\nb,b\n")
    with Study.open(folder) as study:
        task = study.ask("ann")
        assert study.ask("bob") is None
        study.tell(task, {"winner": "a"})
        other_task = study.ask("bob")
        assert other_task is not None
        assert other_task.protocol == "direct"


@pytest.mark.slow
def test_mixed_stages_keep_their_shares(tmp_path):
    config = """
[[stage]]
share = 0.25
protocol = { name = "pairwise" }
design = { judgments = 50 }
[[stage]]
share = 0.75
protocol = { name = "direct" }
design = { judgments = 50 }
"""
    folder = write(tmp_path / "s", config, WORDS)
    with Study.open(folder) as study:
        many = [SimulatedAnnotator(f"a{n}") for n in range(60)]
        answer_study_with_crowd(study, many, TRUTH, np.random.default_rng(2), most=200)
        counts = Counter(study.judgments()["protocol"])
        assert counts["pairwise"] == pytest.approx(50, abs=1)


def test_scales_of_mixed_stages_end_on_the_first_ones(tmp_path):
    config = """
[[stage]]
share = 0.5
protocol = { name = "direct", scale = [0, 100] }
design = { judgments = 1 }
[[stage]]
share = 0.5
protocol = { name = "likert", scale = [1, 5] }
design = { judgments = 1 }
"""
    folder = write(tmp_path / "s", config, "id,text\na,a\n")
    with Study.open(folder) as study:
        for annotator in ("ann", "bob"):
            task = study.ask(annotator)
            study.tell(task, {"a": 50 if task.protocol == "direct" else 5})
        # A 5 of 1…5 is a 100 of 0…100.
        assert study.scores()["score"].to_list() == [75.0]


def test_criteria_are_scored_each_on_its_own_scale(tmp_path):
    config = """
[protocol]
name = "direct"
[protocol.criteria.anger]
[protocol.criteria.valence]
scale = [-100, 100]
"""
    folder = write(tmp_path / "s", config, "id,text,group\nh1,one,A\nh2,two,B\n")
    with Study.open(folder) as study:
        for annotator in ("ann", "bob"):
            for _ in range(2):
                task = study.ask(annotator)
                study.tell(task, {task.items[0].id: {"anger": 10, "valence": -50}})
        scores = study.scores()
        assert scores.columns[:3] == ["item", "criterion", "group"]
        rows = scores.select("item", "criterion", "group", "score", "unit_score").sort("criterion", "item").rows()
        assert rows == [
            ("h1", "anger", "A", 10.0, 0.1),
            ("h2", "anger", "B", 10.0, 0.1),
            ("h1", "valence", "A", -50.0, 0.25),
            ("h2", "valence", "B", -50.0, 0.25),
        ]


def test_another_model_can_look_at_the_same_judgments(tmp_path):
    config = '[protocol]\nname = "scored_ranking"\nsize = 4\n[design]\njudgments = 6\n'
    folder = write(tmp_path / "s", config, WORDS)
    with Study.open(folder) as study:
        answer_study_with_crowd(study, CROWD, TRUTH, np.random.default_rng(3))
        easl, counting = study.fit(), study.fit(Counting())
        assert (easl.model, counting.model) == ("easl", "counting")
        order = [f"w{n}" for n in reversed(range(8))]
        assert easl.scores["item"].to_list() == order
        joined = easl.scores.join(counting.scores, on="item", suffix="_c")
        assert joined.select(pl.corr("score", "score_c", method="spearman")).item() > 0.9
        # Every task compares each of its four items with the three others.
        assert counting.scores["judgments"].sum() == study.status().judgments * 12


def test_groups_are_scored_from_the_judgments_of_their_items(tmp_path):
    folder = write(tmp_path / "s", '[protocol]\nname = "direct"\n', "id,text,system\na1,x,A\na2,y,A\nb1,z,B\n")
    with Study.open(folder) as study:
        for annotator in ("ann", "bob"):
            for _ in range(3):
                task = study.ask(annotator)
                study.tell(task, {task.items[0].id: {"a1": 10, "a2": 30, "b1": 90}[task.items[0].id]})
        scores = study.scores(by="group")
        assert scores.select("item", "score", "judgments").rows() == [("B", 90.0, 2), ("A", 20.0, 4)]
        assert study.scores()["group"].to_list() == ["B", "A", "A"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::steelyard.errors.ConvergenceWarning")
def test_stages_of_different_protocols_end_on_one_scale(tmp_path):
    config = """
[[stage]]
protocol = { name = "pairwise" }
design = { judgments = 4 }
[[stage]]
protocol = { name = "direct" }
design = { judgments = 2 }
[[stage]]
protocol = { name = "best_worst" }
design = { judgments = 2 }
[model]
name = "calibrated_scale"
draws = 200
"""
    folder = write(tmp_path / "s", config, WORDS)
    with Study.open(folder) as study:
        answer_study_with_crowd(study, CROWD, TRUTH, np.random.default_rng(2))
        scores = study.scores().sort("item")
        judgments = study.status().judgments
        mixed = study.observations("mixed")[""]
        sliders = study.fit(observations=study.observations("ratings")).scores.sort("item")
        by_part = [(part.kind, len(part)) for part in mixed.parts]
    assert sorted(by_part) == [("choices", judgments - 32), ("comparisons", 16), ("ratings", 16)]
    # On the sliders' scale, though the comparisons came first, and surer than sliders alone.
    assert scores["score"].is_between(0, 100).all()
    assert np.corrcoef(scores["score"].to_numpy(), [TRUTH[item] for item in scores["item"]])[0, 1] > 0.9
    assert (scores["judgments"] > sliders["judgments"]).all()
    assert scores["sd"].mean() < sliders["sd"].mean()


def test_a_mixed_study_is_scored_by_group_too(tmp_path):
    config = """
[[stage]]
protocol = { name = "direct" }
design = { judgments = 3 }
[[stage]]
protocol = { name = "pairwise" }
design = { judgments = 3 }
[model]
name = "calibrated_scale"
draws = 200
"""
    words = "id,text,group\n" + "".join(f"w{n},word {n},{'high' if n > 3 else 'low'}\n" for n in range(8))
    with Study.open(write(tmp_path / "s", config, words)) as study:
        answer_study_with_crowd(study, CROWD, TRUTH, np.random.default_rng(3))
        assert study.scores(by="group")["item"].to_list() == ["high", "low"]
