"""A study that stops when its target is reached."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard import Study
from steelyard.errors import ConfigError
from steelyard.quality.stopping import InterimAnalysis
from steelyard.study import differing_picks


@pytest.fixture
def stopping(make_study):
    def make(stop: str):
        return make_study('name = "direct"', 'name = "per_item"\njudgments = 20', items=12, extra=f"[stop]\n{stop}\n")

    return make


def work(study: Study, noise: float, people: int = 30) -> list[InterimAnalysis]:
    """Let annotators with some noise answer; return the interim analyses."""
    rng = np.random.default_rng(0)
    truth = {item.id: 100 * n / len(study.items) for n, item in enumerate(study.items)}
    analyses = []
    for person in range(people):
        while (task := study.ask(f"ann-{person}")) is not None:
            answer = {name: float(np.clip(truth[name] + rng.normal(0, noise), 0, 100)) for name in task.item_ids}
            study.tell(task, answer)
            if (analysis := study.quality.interim_analysis()) is not None:
                analyses.append(analysis)
    return analyses


def test_a_study_closes_itself_when_the_target_is_surely_reached(stopping):
    with Study.open(stopping('measure = "split_half"\ntarget = 0.8')) as study:
        analyses = work(study, noise=5)
        assert analyses[-1].reached
        assert not any(analysis.reached for analysis in analyses[:-1])
        assert study.state == "closed"
        assert study.status().stages[0].done < study.status().stages[0].total
        nothing = study.offer("somebody")
        assert nothing.reason_code == "closed"
        assert "The target was reached" in nothing.reason
        assert differing_picks(study.events()) == []


@pytest.mark.slow
def test_a_study_that_misses_its_target_runs_every_interim_analysis_once(stopping):
    with Study.open(stopping('measure = "interval_width"\ntarget = 0.01\ninterim_analyses = 4')) as study:
        analyses = work(study, noise=40)
        assert [analysis.number for analysis in analyses] == [1, 2, 3, 4]
        assert study.state == "open"
        assert study.status().stages[0].done == study.status().stages[0].total


@pytest.mark.slow
def test_interim_analyses_are_equally_spaced_over_the_plan(stopping):
    with Study.open(stopping('measure = "split_half"\ntarget = 0.999\ninterim_analyses = 4')) as study:
        analyses = work(study, noise=30)
        assert [analysis.judgments for analysis in analyses] == [60, 120, 180, 240]


def test_a_measure_that_does_not_exist_is_refused(stopping):
    with pytest.raises(ConfigError, match="split_half"):
        Study.open(stopping('measure = "vibes"\ntarget = 1'))
