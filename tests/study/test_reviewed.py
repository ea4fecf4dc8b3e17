"""What an independent review found wrong once, and must not come back."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from steelyard import Study
from steelyard.errors import AnswerError, ConfigError, StoreError, TaskError
from steelyard.formats import write_table
from steelyard.simulate import answer_study_with_crowd, make_crowd
from steelyard.study import differing_picks, rebuild
from steelyard.study.exporting import conventional_judgments
from steelyard.study.importing import import_file

MINUTE = 60_000_000


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000_000_000

    def __call__(self) -> int:
        return self.now


def change(folder, old: str, new: str) -> None:
    path = folder / "study.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def rate(study, annotator, value=50):
    task = study.ask(annotator)
    study.tell(task, {item.id: value for item in task.items})
    return task


def test_a_late_answer_and_a_second_lease_do_not_make_one_person_judge_twice(make_study):
    clock = Clock()
    folder = make_study(items=["only"], design="judgments = 2")
    with Study.open(folder, clock=clock) as study:
        first = study.ask("ann")
        clock.now += 31 * MINUTE
        second = study.ask("ann")
        study.tell(first, {"only": 1})
        assert study.ask("ann") is None
        clock.now += 31 * MINUTE
        assert study.ask("ann") is None
        assert study.ask("bob").item_ids == ("only",)
        # Should the second answer come all the same, it is kept.
        assert study.tell(second, {"only": 2}).late


def test_an_import_while_a_task_is_out_is_not_forgotten_when_the_lease_ends(make_study, tmp_path):
    clock = Clock()
    (tmp_path / "j.csv").write_text("annotator,item,value\nann,only,5\n")
    with Study.open(make_study(items=["only"]), clock=clock) as study:
        study.ask("ann")
        import_file(study, tmp_path / "j.csv")
        clock.now += 31 * MINUTE
        assert study.ask("ann") is None


def test_a_task_handed_out_again_has_time_enough(make_study):
    clock = Clock()
    with Study.open(make_study(items=["only"], design="judgments = 1"), clock=clock) as study:
        first = study.ask("ann")
        clock.now += 29 * MINUTE
        again = study.ask("ann")
        assert again.judgment_id == first.judgment_id
        clock.now += 29 * MINUTE
        assert study.ask("bob") is None
        assert not study.tell(again, {"only": 1}).late


def test_renewed_leases_survive_a_rebuild(make_study, tmp_path):
    clock = Clock()
    with Study.open(make_study(), clock=clock) as study:
        task = study.ask("ann")
        clock.now += 20 * MINUTE
        end = study.renew(task)
        with rebuild(study.events(), tmp_path, f"sqlite:///{tmp_path / 'again.db'}") as again:
            assert again.ask("ann").lease_end >= end


DESIGNS = {
    "per_item-3": 'name = "per_item"\njudgments = 3',
    "per_item-6": 'name = "per_item"\njudgments = 6',
    "tuples": 'name = "random_tuples"\njudgments = 4',
    "tuples-2": 'name = "random_tuples"\njudgments = 4\nannotators_per_task = 2',
}


@pytest.mark.slow
@pytest.mark.parametrize("after", DESIGNS)
@pytest.mark.parametrize("before", DESIGNS)
def test_any_design_can_take_over_from_any_other(make_study, tmp_path, before, after):
    folder = make_study('name = "direct"\nitems_per_page = 3', DESIGNS[before], items=9)
    (tmp_path / "j.csv").write_text("annotator,task,item,value\nzoe,t1,w0,5\nzoe,t2,w0,9\nyan,t1,w1,5\n")
    rng = np.random.default_rng(1)
    truth = {f"w{n}": n / 9 for n in range(9)}
    crowd = make_crowd(12, rng)
    with Study.open(folder) as study:
        answer_study_with_crowd(study, crowd, truth, rng, most=5)
        import_file(study, tmp_path / "j.csv")
        answer_study_with_crowd(study, crowd, truth, rng, most=5)
        study.ask("holder")
        judgments = study.status().judgments
    if before != after:
        change(folder, DESIGNS[before], DESIGNS[after])
    with Study.open(folder) as study:
        assert study.status().judgments == judgments
        answer_study_with_crowd(study, crowd, truth, rng)
        status = study.status()
        assert status.stages[0].done >= status.stages[0].total - 6
        assert differing_picks(study.events()) == []
        with rebuild(study.events(), tmp_path, f"sqlite:///{tmp_path / 'again.db'}") as again:
            assert again.scores().write_csv() == study.scores().write_csv()
            assert again.status() == status


@pytest.mark.parametrize("name", ["how positive?", "50%25", "a#b", "ünï cödé"])
def test_a_folder_may_have_any_name(make_study, name):
    folder = make_study(name=name)
    with Study.open(folder) as study:
        rate(study, "ann")
    assert (folder / "study.db").exists()
    assert [path.name for path in folder.parent.iterdir()] == [name]


def test_a_relative_database_is_in_the_studys_folder(make_study, tmp_path, monkeypatch):
    folder = make_study(extra='database = "sqlite:///judgments.db"')
    with Study.open(folder) as study:
        rate(study, "ann")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    with Study.open(folder) as study:
        assert study.status().judgments == 1
    assert list(elsewhere.iterdir()) == []


def test_the_database_and_its_password_are_not_in_the_log(make_study, postgres_url):
    folder = make_study(extra=f'database = "{postgres_url.replace("@", ":hunter2@")}"')
    with Study.open(folder) as study:
        assert not [event for event in study.events() if "hunter2" in event.line()]


def test_two_studies_do_not_share_a_file(make_study, tmp_path):
    url = f"sqlite:///{tmp_path / 'shared.db'}"
    Study.open(make_study(name="valence"), database=url).close()
    with pytest.raises(StoreError, match="another study, 'valence', not 'arousal'"):
        Study.open(make_study(name="arousal"), database=url)


def test_the_question_does_not_change_under_people(make_study):
    folder = make_study()
    with Study.open(folder) as study:
        study.skip(study.ask("ann"), "no")
    change(folder, "How positive?", "How negative?")
    with pytest.raises(ConfigError, match="the question has changed since the first judgment"):
        Study.open(folder)


def test_writing_a_default_out_is_no_change(make_study):
    folder = make_study()
    with Study.open(folder) as study:
        study.ask("ann")
    change(folder, 'name = "direct"', 'name = "direct"\nscale = [0, 100]')
    Study.open(folder).close()


@pytest.mark.parametrize("protocol", ["pairwise", "best_worst", "ranking", "scored_ranking"])
def test_protocols_that_compare_items_are_refused_by_per_item(make_study, protocol):
    with pytest.raises(ConfigError, match="per_item shows items one by one"):
        Study.open(make_study(f'name = "{protocol}"', 'name = "per_item"'))


def test_judgments_that_cannot_come_out_even_are_refused(make_study):
    with pytest.raises(ConfigError, match="Make judgments a multiple of 3"):
        Study.open(make_study('name = "pairwise"', "judgments = 10\nannotators_per_task = 3"))


def test_a_longer_file_adds_only_what_is_new(make_study, tmp_path):
    rows = [f"ann,w{n},{n}\n" for n in range(4)]
    file = tmp_path / "j.csv"
    with Study.open(make_study()) as study:
        file.write_text("annotator,item,value\n" + "".join(rows[:2]))
        import_file(study, file)
        file.write_text("annotator,item,value\n" + "".join(rows))
        result = import_file(study, file)
        assert (result.added, result.already) == (2, 2)
        assert study.status().judgments == 4


def test_importing_the_studys_own_export_changes_nothing(make_study, tmp_path):
    with Study.open(make_study()) as study:
        for annotator in ("ann", "bob"):
            rate(study, annotator)
        write_table(conventional_judgments(study), tmp_path / "own.csv")
        assert import_file(study, tmp_path / "own.csv").added == 0
        assert study.status().judgments == 2


def test_the_time_an_answer_took_is_imported(make_study, tmp_path):
    (tmp_path / "j.csv").write_text("annotator,item,value,seconds\nann,w0,5,3.5\nann,w1,6,\n")
    with Study.open(make_study()) as study:
        import_file(study, tmp_path / "j.csv")
        assert study.judgments()["seconds"].to_list() == [3.5, None]


def test_a_configuration_changed_by_another_process_is_noticed(make_study):
    folder = make_study(design="judgments = 2")
    with Study.open(folder) as old:
        rate(old, "ann")
        change(folder, "judgments = 2", "judgments = 1")
        with Study.open(folder) as new:
            rate(new, "bob")
            assert differing_picks(new.events()) == []
        with pytest.raises(StoreError, match="changed by another process"):
            old.ask("cleo")


def test_gold_and_groups_may_be_filled_in_later_but_not_what_people_see(make_study):
    folder = make_study(items=2)
    with Study.open(folder) as study:
        rate(study, "ann")
    (folder / "items.csv").write_text("id,text,group,gold,domain\nw0,word w0,A,1,news\nw1,word w1,B,2,\n")
    with Study.open(folder) as study:
        assert [(item.group, item.gold) for item in study.items] == [("A", "1"), ("B", "2")]
        assert [item.metadata for item in study.items] == [{"domain": "news"}, {}]
        assert differing_picks(study.events()) == []


def test_names_are_the_same_however_they_are_typed(make_study):
    with Study.open(make_study(items=["only"])) as study:
        rate(study, "José")
        assert study.ask(" José ") is None


@pytest.mark.parametrize("value", [10**400, -(10**400)])
def test_a_huge_number_is_outside_the_scale(make_study, value):
    with Study.open(make_study()) as study:
        task = study.ask("ann")
        with pytest.raises(AnswerError, match="outside the scale"):
            study.tell(task, {task.items[0].id: value})


def test_numbers_of_numpy_are_numbers(make_study):
    with Study.open(make_study()) as study:
        task = study.ask("ann")
        assert study.tell(task, {task.items[0].id: np.int64(5)}, seconds=np.float32(2)).answer == {task.items[0].id: 5}


def test_the_same_answer_in_another_form_is_a_retry(make_study):
    with Study.open(make_study()) as study:
        task = study.ask("ann")
        item = task.items[0].id
        study.tell(task, {item: 50})
        study.tell(task, {item: 50.0})
        study.revise(task.judgment_id, {item: 60})
        # The first answer arrives once more, after it was revised: the revision stands.
        assert study.tell(task, {item: 50}).answer == {item: 60}
        with pytest.raises(TaskError, match="another answer"):
            study.tell(task, {item: 70})


@pytest.mark.parametrize("bad", [{"reason": 5}, {"reason": "\ud800"}, {"reason": "x" * 3000}])
def test_a_reason_is_a_text(make_study, bad):
    with Study.open(make_study()) as study, pytest.raises(TaskError, match="reason"):
        study.flag(study.ask("ann"), **bad)


@pytest.mark.parametrize(
    "setting", ["lease_minutes = inf", "lease_minutes = 1e15", "lease_minutes = true", 'max_tasks = "3"']
)
def test_settings_of_people_are_sane(make_study, setting):
    with pytest.raises(ConfigError, match="annotators"):
        Study.open(make_study(extra=f"annotators = {{ {setting} }}"))


@pytest.mark.parametrize("design", ["judgments = true", 'judgments = "3"'])
def test_a_number_is_a_number(make_study, design):
    with pytest.raises(ConfigError, match="is not a number"):
        Study.open(make_study(design=design))


def test_opening_a_study_does_not_hold_up_those_who_work_in_it(make_study):
    """While the log is locked by a writer, a study can still be opened and read."""
    folder = make_study()
    with Study.open(folder) as study:
        rate(study, "ann")
        with study._log.write():
            began = time.monotonic()
            opened: list[int] = []

            def look() -> None:
                with Study.open(folder) as other:
                    opened.append(other.status().judgments)

            thread = threading.Thread(target=look)
            thread.start()
            thread.join(timeout=20)
            assert opened == [1]
            assert time.monotonic() - began < 20


def test_scales_that_round_past_each_other_can_be_scored(tmp_path):
    folder = tmp_path / "s"
    folder.mkdir()
    (folder / "items.csv").write_text("id,text\na,a\n")
    (folder / "study.toml").write_text(
        'title = "T"\nquestion = "Q"\nitems = "items.csv"\n'
        '[[stage]]\nshare = 0.5\nprotocol = { name = "direct", scale = [0.3, 0.9] }\n'
        '[[stage]]\nname = "two"\nshare = 0.5\nprotocol = { name = "direct", scale = [0, 100] }\n'
    )
    with Study.open(folder) as study:
        for annotator in ("ann", "bob"):
            task = study.ask(annotator)
            study.tell(task, {"a": 0.9 if task.stage == "direct" else 100})
        assert study.scores()["score"].to_list() == pytest.approx([0.9])
