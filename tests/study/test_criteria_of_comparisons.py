"""Several criteria on one screen for comparisons, choices and rankings: scored separately, and combined by weights."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from steelyard.analysis.analysis import Analysis
from steelyard.errors import AnswerError, ConfigError
from steelyard.models.by_criterion import combined_fit
from steelyard.models.comparisons.bradley_terry import BradleyTerry
from steelyard.models.fit import Fit
from steelyard.simulate import SimulatedAnnotator, answer_study_with_crowd
from steelyard.study import Study

WEIGHTED = "[protocol.criteria.adequacy]\nweight = 3\n[protocol.criteria.fluency]"
TRUTH = {"adequacy": {f"w{n}": n / 5 for n in range(6)}, "fluency": {f"w{n}": 1 - n / 5 for n in range(6)}}
DESIGNS = {
    "pairwise": 'name = "pairwise"',
    "graded": 'name = "pairwise"\nsteps = 5',
    "best_worst": 'name = "best_worst"\nsize = 3',
    "ranking": 'name = "ranking"\nsize = 3',
    "scored_ranking": 'name = "scored_ranking"\nsize = 3',
}


@pytest.mark.filterwarnings("ignore::steelyard.errors.SteelyardWarning")
@pytest.mark.parametrize("protocol", DESIGNS.values(), ids=DESIGNS)
def test_criteria_are_scored_separately_and_combined(make_study, protocol):
    """Adequacy rises from w0 to w5 and fluency falls; with three times the weight, adequacy decides."""
    crowd = [SimulatedAnnotator(f"a{n}", noise=0.05) for n in range(6)]
    folder = make_study(protocol, items=6, extra='design = { name = "random_tuples", judgments = 6 }')
    text = (folder / "study.toml").read_text() + WEIGHTED + '\n[model]\nname = "bradley_terry"\n'
    (folder / "study.toml").write_text(text)
    with Study.open(folder) as study:
        answer_study_with_crowd(study, crowd, TRUTH, np.random.default_rng(0))
        scores = study.scores()
        by_criterion = {
            name: dict(scores.filter(pl.col("criterion") == name).select("item", "score").iter_rows())
            for name in ("adequacy", "fluency", "combined")
        }
        assert by_criterion["adequacy"]["w5"] > by_criterion["adequacy"]["w0"]
        assert by_criterion["fluency"]["w5"] < by_criterion["fluency"]["w0"]
        for item, score in by_criterion["combined"].items():
            expected = (3 * by_criterion["adequacy"][item] + by_criterion["fluency"][item]) / 4
            assert score == pytest.approx(expected)
        whole = scores.filter(pl.col("criterion") == "combined")
        assert (whole["lower"] <= whole["score"]).all()
        assert (whole["score"] <= whole["upper"]).all()
        assert len(Analysis.of(study).reliability) > 0


def test_combined_intervals_are_those_of_independent_criteria():
    """Two criteria with sds 3 and 4 and equal weights: the sd of the mean is 2.5."""

    def fit(sd: float) -> Fit:
        table = pl.DataFrame({"item": ["a"], "score": [1.0], "unit_score": [0.5], "sd": [sd], "judgments": [4]})
        return Fit("bradley_terry", {}, table)

    combined = combined_fit(BradleyTerry(), {"x": fit(3.0), "y": fit(4.0)}, {"x": 1, "y": 1}).scores
    assert combined["sd"].to_list() == pytest.approx([2.5])
    assert combined["lower"].to_list() == pytest.approx([1 - 1.959964 * 2.5])
    # The draws of two fits with one seed are the same random numbers.
    noise = np.random.default_rng(0).standard_normal((4000, 1))
    parts = {name: Fit("m", {}, fit(1.0).scores, draws=1 + sd * noise) for name, sd in (("x", 3.0), ("y", 4.0))}
    assert combined_fit(BradleyTerry(), parts, {}).scores["sd"].to_list() == pytest.approx([2.5], rel=0.05)


def test_every_criterion_needs_an_answer(make_study):
    with Study.open(make_study('name = "pairwise"\n' + WEIGHTED)) as study:
        task = study.ask("ann")
        first = {"winner": task.item_ids[0]}
        for wrong in (first, {"adequacy": first}, {"adequacy": first, "fluency": first, "style": first}):
            with pytest.raises(AnswerError, match=r"criterion|fluency"):
                study.tell(task, wrong)
        answer = {"fluency": {"winner": None}, "adequacy": first}
        assert study.tell(task, answer).answer == {"adequacy": first, "fluency": {"winner": None}}
        comparisons = study.observations("comparisons")
        assert {name: part.outcome.tolist() for name, part in comparisons.items()} == {"adequacy": [1], "fluency": [0]}


def test_weights_need_one_scale_and_no_criterion_is_called_combined(make_study):
    scales = "[protocol.criteria.a]\nweight = 2\n[protocol.criteria.b]\nscale = [1, 5]"
    for number, wrong in enumerate(('name = "direct"\n' + scales, 'name = "ranking"\n[protocol.criteria.combined]')):
        with pytest.raises(ConfigError, match=r"one scale|combined score"):
            Study.open(make_study(wrong, name=f"s{number}"))
