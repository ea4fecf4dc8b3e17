"""Models are annotators of their own kind: beside people, and never silently among them."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard import Study
from steelyard.analysis.analysis import Analysis
from steelyard.analysis.history import history_of
from steelyard.errors import AnswerError, TaskError
from steelyard.study import differing_picks, read_log, rebuild, write_log
from steelyard.study import events as ev
from steelyard.study.judges import ModelAnswer, answer_id

REGISTRATION = ev.JudgeRegistered(source="function", version="v1", model="m", prompt="Judge.")


def answer(study: Study, item: str, value: float, number: int = 0, name: str = "gpt") -> ModelAnswer:
    first = answer_id(name, "v1", "direct", [item])
    own = answer_id(name, "v1", "direct", [item], number)
    return ModelAnswer(own, name, 0, (item,), {item: value}, "v1", 0.001, repeat_of=first if number else "")


def judged_by_both(study: Study) -> None:
    for name, shift in (("ann", 0), ("bob", 4)):
        while (task := study.ask(name)) is not None:
            study.tell(task, {item: 10 * int(item[1:]) + shift for item in task.item_ids}, seconds=3)
    study.judges.register("gpt", REGISTRATION)
    study.judges.record([answer(study, item.id, 100 - 10 * int(item.id[1:])) for item in study.items])


@pytest.fixture
def folder(make_study):
    return make_study(
        'name = "direct"', 'name = "per_item"\njudgments = 2', items=8, extra="[annotators]\nmax_tasks = 8"
    )


def test_models_do_not_change_the_scores_unless_the_study_says_so(folder):
    with Study.open(folder) as study:
        judged_by_both(study)
        scores = dict(study.scores().select("item", "score").iter_rows())
        assert scores == {f"w{n}": 10 * n + 2 for n in range(8)}
        status = study.status()
        assert (status.annotators, status.judgments, status.models, status.model_judgments) == (2, 16, 1, 8)
        assert status.stages[0].done == 16
        assert "people's judgments only; 8 judgments by models" in study.fit().notes[-1]
    file = folder / "study.toml"
    file.write_text(file.read_text() + "\n[judges]\ncount = true\n")
    with Study.open(folder) as study:
        scores = dict(study.scores().select("item", "score").iter_rows())
        assert scores["w0"] == pytest.approx((0 + 4 + 100) / 3)
        assert "8 of the 24 judgments in the scores (33 %) are by models" in study.fit().notes[-1]


def test_models_take_no_tasks_from_people_and_their_places_stay_free(folder):
    with Study.open(folder) as study:
        study.judges.register("gpt", REGISTRATION)
        study.judges.record([answer(study, item.id, 50) for item in study.items])
        assert study.ask("gpt") is None
        judged_by_both(study)
        assert study.status().stages[0].done == study.status().stages[0].total == 16
        assert not differing_picks(study.events())


def test_quotas_pay_and_speed_rules_are_for_people(folder):
    file = folder / "study.toml"
    file.write_text(
        file.read_text() + "\n[judges]\ncount = true\n[pay]\nper_task = 1.0\n[quality.rules]\nconstant = 0.5\n"
    )
    with Study.open(folder) as study:
        study.judges.register("gpt", REGISTRATION)
        study.judges.record([answer(study, item.id, 50) for item in study.items])
        judged = study.judges.record([answer(study, item.id, 50, number=1) for item in study.items])
        assert judged == 8
        assert study.annotators.progress("gpt").limit is None
        judged_by_both(study)
        # The model's judgments count, so they filled half of the places; they are not paid.
        assert set(study.annotators.pay()["annotator"]) == {"ann"}
        assert set(study.quality.signals()["annotator"]) == {"ann"}
        assert study.quality.apply_rules() == {}


def test_agreement_is_separate_for_people_models_and_between(folder):
    with Study.open(folder) as study:
        judged_by_both(study)
        analysis = Analysis.of(study, real_ids=True)
        rows = {row.between: row.statistic.value for row in analysis.agreement_by_kind}
        assert rows["two people"] == pytest.approx(1)
        assert rows["two models"] is None
        assert rows["a person and a model"] == pytest.approx(-1)
        table = {row["annotator"]: row for row in analysis.annotators.iter_rows(named=True)}
        assert [table[name]["kind"] for name in ("ann", "bob", "gpt")] == ["person", "person", "model"]
        assert table["ann"]["agreement"] == pytest.approx(1)
        assert table["gpt"]["agreement"] == pytest.approx(-1)
        assert table["gpt"]["too_fast"] is None


def test_agreement_of_people_does_not_change_when_models_count(folder):
    with Study.open(folder) as study:
        judged_by_both(study)
        before = Analysis.of(study).reliability_table()
    file = folder / "study.toml"
    file.write_text(file.read_text() + "\n[judges]\ncount = true\n")
    with Study.open(folder) as study:
        assert Analysis.of(study).reliability_table().equals(before)


def test_answered_tasks_of_a_declared_model_are_not_listed_as_leased(folder):
    with Study.open(folder) as study:
        task = study.ask("bot")
        study.tell(task, dict.fromkeys(task.item_ids, 50))
        study.ask("ann")
        study.judges.declare("bot")
        assert history_of(study).open_tasks()["annotator"].to_list() == ["ann"]


def test_an_annotator_can_be_declared_a_model_afterwards(folder):
    with Study.open(folder) as study:
        for name in ("ann", "bot"):
            while (task := study.ask(name)) is not None:
                study.tell(task, dict.fromkeys(task.item_ids, 50 if name == "ann" else 90))
        study.judges.declare("bot")
        assert set(study.scores()["score"]) == {50}
        assert study.status().stages[0].done == 8
        assert study.annotators.kind("bot") == "model"
        with pytest.raises(TaskError, match="there is no annotator"):
            study.judges.declare("cat")


def test_recording_twice_adds_once_and_invalid_answers_are_refused(folder):
    with Study.open(folder) as study:
        with pytest.raises(TaskError, match="not registered"):
            study.judges.record([answer(study, "w0", 5)])
        study.judges.register("gpt", REGISTRATION)
        study.judges.register("gpt", REGISTRATION)
        assert len(study.judges.registrations()["gpt"]) == 1
        assert study.judges.record([answer(study, "w0", 5)]) == 1
        assert study.judges.record([answer(study, "w0", 5)]) == 0
        with pytest.raises(AnswerError):
            study.judges.record([answer(study, "w1", 5), answer(study, "w2", 101)])
        assert study.status().model_judgments == 1


def test_a_log_with_models_builds_the_same_study_anywhere(folder, tmp_path):
    with Study.open(folder) as study:
        judged_by_both(study)
        scores, status = study.scores(), study.status()
        assert write_log(study, tmp_path / "log.jsonl") > 0
    with rebuild(read_log(tmp_path / "log.jsonl"), tmp_path, f"sqlite:///{tmp_path / 'again.db'}") as again:
        assert again.status() == status
        assert again.scores().drop("annotators").equals(scores.drop("annotators"))
        # Pseudonyms are for people.
        assert again.judges.names() == ["gpt"]
        assert "ann" not in again.annotators.names()


def test_judgments_and_exports_say_whose_they_are(folder):
    with Study.open(folder) as study:
        judged_by_both(study)
        table = study.judgments()
        kinds = {row["annotator"]: (row["annotator_kind"], row["in_scores"]) for row in table.iter_rows(named=True)}
        assert kinds == {"ann": ("person", True), "bob": ("person", True), "gpt": ("model", False)}
        assert len(study.observations("ratings", annotator_kind="model")[""]) == 8
        assert np.isclose(table.filter(table["annotator"] == "gpt")["cost"].sum(), 0.008)


def test_the_basis_of_scores_with_a_judge_as_prior_is_never_said_to_be_people_alone(make_study):
    extra = '[model]\nname = "calibrated_scale"\n[judges]\ncovariates = ["length"]'
    folder = make_study('name = "direct"\n' + extra)
    with Study.open(folder) as study:
        assert "as a prior" in study.judges.basis().sentence
        assert "length" in study.judges.basis().sentence
