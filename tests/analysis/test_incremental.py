"""A history that is read little by little equals one that is read at once."""

from __future__ import annotations

import numpy as np
import pytest
from polars.testing import assert_frame_equal

from steelyard.analysis.analysis import AnalysisReader
from steelyard.analysis.annotators import annotator_table
from steelyard.analysis.history import HistoryReader, history_of, observations_of
from steelyard.study.forgetting import forget
from tests.study.test_random_lives import STEPS, Life

pytestmark = pytest.mark.filterwarnings("ignore::steelyard.errors.SteelyardWarning")


def assert_same_history(one, other):
    assert one.seq == other.seq
    assert one.records == other.records
    assert one.excluded == other.excluded
    for name in ("judgments", "picks", "notes"):
        assert getattr(one, name).equals(getattr(other, name)), name


def assert_same_observations(analysis, study):
    kind = study.config.stages[0].protocol.kinds[0]
    counted = [judgment for judgment in study.stream_judgments() if judgment.counts]
    expected = observations_of(study, counted, kind)
    observations = analysis._collected(kind, None)
    assert observations.keys() == expected.keys()
    for criterion, part in expected.items():
        assert len(observations[criterion]) == len(part)
        for name in ("annotator", "task", *(("item", "value") if kind == "ratings" else ("left", "right", "outcome"))):
            assert np.array_equal(getattr(observations[criterion], name), getattr(part, name)), name


def assert_same_annotators(analysis):
    history, study = analysis.history, analysis.study
    table = annotator_table(history, study, analysis._collectors.annotators)
    assert_frame_equal(table, annotator_table(history, study), rel_tol=1e-12, abs_tol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("protocol", "design", "seed"),
    [
        ('name = "direct"', 'name = "per_item"\njudgments = 3', 4),
        ('name = "pairwise"', 'name = "random_tuples"\njudgments = 4\nannotators_per_task = 2', 5),
    ],
)
def test_reading_little_by_little_equals_reading_at_once(make_study, tmp_path, protocol, design, seed):
    life = Life(make_study(protocol, design, items=6), tmp_path, seed)
    reader, analyses = HistoryReader(life.study), AnalysisReader(life.study)
    # Not those that open the study anew: the reader belongs to the open one.
    steps = [step for step in STEPS if step not in (Life.reopen, Life.add_items)]
    for number in range(160):
        steps[int(life.rng.integers(len(steps)))](life)
        if number % 20 == 19:
            history = reader.read()
            assert_same_history(history, history_of(life.study))
            assert history.records == tuple(life.study.stream_judgments())
            analysis = analyses.read()
            assert_same_observations(analysis, life.study)
            assert_same_annotators(analysis)
    before = reader.changes
    forget(life.study, "ann-1")
    assert_same_history(reader.read(), history_of(life.study))
    analysis = analyses.read()
    assert_same_observations(analysis, life.study)
    assert_same_annotators(analysis)
    assert reader.changes != before
    life.study.close()


def test_a_second_reading_reads_only_new_events(make_study, monkeypatch):
    from steelyard import Study

    with Study.open(make_study()) as study:
        for annotator in ("ann", "bea"):
            task = study.ask(annotator)
            study.tell(task, {task.item_ids[0]: 50})
        reader = HistoryReader(study)
        reader.read()
        seq = study.last_seq()
        task = study.ask("ann")
        study.tell(task, {task.item_ids[0]: 60})
        numbers = []
        apply = reader._reader.apply
        monkeypatch.setattr(reader._reader, "apply", lambda event: numbers.append(event.seq) or apply(event))
        assert len(reader.read().records) == 3
    assert numbers == [seq + 1, seq + 2]
