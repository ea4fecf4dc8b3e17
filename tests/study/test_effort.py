"""How answers came about is in the log, the table of judgments and the report."""

from __future__ import annotations

import json

import pytest

from steelyard.analysis.analysis import Analysis
from steelyard.errors import TaskError
from steelyard.records import Effort
from steelyard.report.document import Table
from steelyard.report.sections import participation
from steelyard.study import Study
from tests.web.pages.studies import write_study


def test_effort_is_recorded_with_the_answer_and_kept_by_a_revision(tmp_path):
    folder = write_study(tmp_path / "pages", 'name = "direct"\nitems_per_page = 2')
    with Study.open(folder) as study:
        task = study.ask("ann")
        first, second = task.item_ids
        effort = Effort(2.5, {first: 3.0, second: 1.5, "other": 9.0}, 2)
        study.tell(task, {first: 10, second: 20}, seconds=8.0, effort=effort)
        study.revise(task.judgment_id, {first: 11, second: 20})
        study.tell(study.ask("bea"), dict.fromkeys(study.ask("bea").item_ids, 5), effort=Effort(0.5))
        study.tell(study.ask("cid"), dict.fromkeys(study.ask("cid").item_ids, 5))
    with Study.open(folder) as study:
        rows = study.judgments().sort("annotator")
        assert rows["first_action"].to_list() == [2.5, 0.5, None]
        assert rows["changes"].to_list() == [2, 0, None]
        assert json.loads(rows["item_seconds"][0]) == {first: 3.0, second: 1.5}
        blocks = participation.section(Analysis.of(study)).blocks
    (times,) = [block.frame for block in blocks if isinstance(block, Table) and block.name == "time"]
    facts = dict(times.select("what", "value").iter_rows())
    assert facts["time to the first action, median"] == 1.5
    assert facts["answers changed before they were sent"] == 1
    assert facts["active time per item of a page, median"] == 4.0


@pytest.mark.parametrize("effort", [Effort(-1.0), Effort(float("nan")), Effort(changes=-1)])
def test_impossible_effort_is_refused(tmp_path, effort):
    with Study.open(write_study(tmp_path / "words", 'name = "direct"')) as study:
        task = study.ask("ann")
        with pytest.raises(TaskError):
            study.tell(task, {task.item_ids[0]: 5}, effort=effort)
