"""A person is forgotten: gone from the database to the byte, and the log is still a log."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from msgspec import structs

from steelyard import Study
from steelyard.errors import StoreError, TaskError
from steelyard.simulate import answer_for
from steelyard.study import differing_picks, exported_log, forget, read_log, rebuild, write_log
from steelyard.study.forgetting import descends_from, effect, preview, take_out
from steelyard.study.importing import import_file
from steelyard.study.rebuild import check_chain
from tests.study.test_random_lives import STEPS, Life

pytestmark = pytest.mark.filterwarnings("ignore::steelyard.errors.SteelyardWarning")

NAME = "Zaphod Beeblebrox"
DESIGNS = {
    "per_item": ('name = "direct"', 'name = "per_item"\njudgments = 3', 5),
    "random_tuples": ('name = "pairwise"', 'name = "random_tuples"\njudgments = 4\nannotators_per_task = 2', 5),
    "balanced_tuples": ('name = "best_worst"', 'name = "balanced_tuples"\nfactor = 1.5\nannotators_per_task = 2', 9),
    "all_pairs": ('name = "pairwise"', 'name = "all_pairs"\nannotators_per_task = 2', 5),
    "tournament": ('name = "pairwise"', 'name = "tournament"\nannotators_per_source = 2\nfollow_up = true', 6),
    "match_quality": ('name = "scored_ranking"\nsize = 3', 'name = "match_quality"\nrounds = 6', 7),
    "continuous": ('name = "scored_ranking"\nsize = 3', 'name = "match_quality"\nmode = "continuous"\nrounds = 6', 7),
    "adaptive": ('name = "pairwise"', 'name = "adaptive"\njudgments = 5', 7),
    "propagation": ('name = "direct"', 'name = "propagation"\nbelow = 50\nannotators_per_task = 2', 6),
}


def tables(path: Path) -> dict[str, list[tuple[object, ...]]]:
    with sqlite3.connect(path) as database:
        rows = {
            name: database.execute(f"SELECT * FROM {name} ORDER BY 1, 2").fetchall() for name in ("events", "tasks")
        }
    database.close()
    return rows


def bytes_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir() if path.name.startswith("study.db"))


def worked(folder, *, database=None):
    """A study in which the person did everything a person can."""
    study = Study.open(folder, database=database)
    rng = np.random.default_rng(3)
    for name in ("ann", NAME, "bob"):
        study.annotators.record_consent(name)
        study.access.grant("session", annotator=name)
        study.access.grant("invite", annotator=name, note="resume")
        for _ in range(4):
            task = study.ask(name)
            value = {item: float(rng.integers(101)) for item in task.item_ids}
            study.tell(task, value, seconds=2.5)
        study.revise(task.judgment_id, {task.items[0].id: 7.0})
        study.flag(task, f"{name} wrote this themselves")
        study.skip(study.ask(name), f"{name} does not know")
        study.ask(name)
    study.annotators.exclude("bob", f"the same person as {NAME}, it seems")
    study.annotators.exclude(NAME, "slow")
    study.annotators.readmit(NAME, "no, fast")
    return study


def test_not_a_byte_of_a_person_is_left_in_the_files(make_study):
    folder = make_study()
    with worked(folder) as study:
        assert NAME.encode() in bytes_of(folder)
        done = forget(study, NAME)
        assert done.left == ""
        left = bytes_of(folder)
    for trace in (NAME, "wrote this themselves", "does not know", "no, fast"):
        gone = trace.encode() if trace in (NAME, "no, fast") else f"{NAME} {trace}".encode()
        assert gone not in left
    assert b"ann wrote this themselves" in left
    assert b"the same person as [forgotten], it seems" in left


def test_what_is_known_of_a_person_is_gone_and_others_keep_theirs(make_study):
    with worked(make_study()) as study:
        others = study.judgments().filter(pl.col("annotator") != NAME)
        done = forget(study, NAME)
        assert (done.judgments, done.revisions, done.tokens, done.mentions) == (4, 1, 2, 1)
        assert study.judgments().equals(others)
        assert study.access.of(NAME) == []
        assert len(study.access.of("ann")) == 2
        assert NAME not in study.annotators.names()
        assert not study.annotators.progress(NAME).answered
        assert study.status().annotators == 2
        # Who comes back under the name begins anew.
        assert study.ask(NAME) is not None
        with pytest.raises(TaskError, match="there is no annotator 'nobody'"):
            forget(study, "nobody")


def test_the_log_stays_a_log(make_study, tmp_path):
    folder = make_study()
    with worked(folder) as study:
        before = [event.seq for event in study.events()]
        old_head = list(study.events())[-1].digest
        forget(study, NAME)
        events = list(study.events())
        assert [event.seq for event in events][: len(before)] == before
        check_chain(events)
        assert events[-1].kind == "forgotten"
        # No digest has changed, so an earlier export can be recognized.
        assert events[len(before) - 1].digest == old_head
        assert descends_from(study, old_head)
        assert not descends_from(study, "0" * 32)
        assert NAME not in "".join(event.line() for event in events)
        assert differing_picks(events) == []
        scores, status = study.scores(), study.status()
        with rebuild(events, folder, f"sqlite:///{tmp_path / 'again.db'}") as again:
            assert again.scores().equals(scores)
            assert again.status() == status
        assert tables(tmp_path / "again.db") == tables(folder / "study.db")
        # Neither the events that replaced others nor the tombstone can be altered unnoticed.
        place = next(n for n, event in enumerate(events) if event.kind == "withdrawn" and event.seal.count(":"))
        altered = structs.replace(events[place], at=events[place].at + 1)
        with pytest.raises(StoreError, match="forgotten annotator were altered"):
            check_chain([*events[:place], altered, *events[place + 1 :]])
        with pytest.raises(StoreError, match="altered"):
            check_chain(
                [*events[:-1], structs.replace(events[-1], text=events[-1].text.replace("replaced", "replaces"))]
            )


def test_a_withdrawn_task_takes_no_answer(make_study):
    with worked(make_study()) as study:
        out = study.ask(NAME)
        forget(study, NAME)
        with pytest.raises(TaskError, match="withdrawn"):
            study.tell(out.judgment_id, {out.items[0].id: 5.0})
        with pytest.raises(TaskError):
            study.tell(out, {out.items[0].id: 5.0})


def test_another_process_notices_and_begins_anew(make_study):
    """Its state included the annotator; the tombstone makes it read the log again."""
    folder = make_study()
    with worked(folder) as study, Study.open(folder) as other, Study.open(folder) as third:
        assert other.annotators.progress(NAME).answered == third.annotators.progress(NAME).answered == 4
        forget(study, NAME)
        assert other.annotators.progress(NAME).answered == 0
        # The third finds out while it writes.
        task = third.ask("cleo")
        third.tell(task, {task.items[0].id: 1.0})
        assert third.status() == other.status() == study.status()
        assert third.privacy.generation > 0


def test_forgetting_says_what_it_does_to_the_scores(make_study, tmp_path):
    """By hand: three people, one item each twice; without the third the means are those of the first two."""
    folder = make_study(items=["a", "b"], design="judgments = 3")
    answers = {"ann": (10, 20), "bob": (30, 40), "cleo": (95, 0)}
    with Study.open(folder) as study:
        for name, values in answers.items():
            for task in study.ask(name, 2):
                study.tell(task, {task.items[0].id: values["ab".index(task.items[0].id)]})
        report = preview(study, "cleo")
        assert study.status().judgments == 6
        done = forget(study, "cleo")
    assert report.effect == done.effect
    assert (done.effect.items, done.effect.changed, done.effect.lost, done.effect.ranks) == (2, 2, 0, 2)
    item, was, now = done.effect.largest
    assert (item, was, now) == ("a", pytest.approx(45), pytest.approx(20))
    assert done.effect.largest_rank == ("a", 1, 2)
    assert (report.again, done.again) == (2, 2)


def test_the_last_judge_of_an_item_takes_its_score_along():
    before = pl.DataFrame({"item": ["a", "b"], "score": [1.0, 2.0], "rank": [2, 1]})
    after = pl.DataFrame({"item": ["a", "b"], "score": [1.0, None], "rank": [1, None]})
    result = effect(before, after)
    assert (result.changed, result.lost, result.ranks) == (0, 1, 1)
    assert effect(before, None) is None
    labels = pl.DataFrame({"item": ["a"], "label": ["x"]})
    assert effect(labels, labels.with_columns(label=pl.lit("y"))).changed == 1


def test_imported_judgments_of_a_person_go_too(make_study, tmp_path):
    folder = make_study(design="judgments = 2")
    (tmp_path / "j.csv").write_text(f"annotator,item,value\n{NAME},w0,5\nann,w0,7\n")
    with Study.open(folder) as study:
        import_file(study, tmp_path / "j.csv")
        done = forget(study, NAME)
        assert (done.judgments, done.again) == (1, 1)
        assert study.judgments()["annotator"].to_list() == ["ann"]
        assert NAME.encode() not in bytes_of(folder)
        with rebuild(study.events(), folder, f"sqlite:///{tmp_path / 'again.db'}") as again:
            assert again.status() == study.status()


def test_somebody_who_was_only_invited_can_be_forgotten(make_study):
    with Study.open(make_study()) as study:
        study.access.grant("invite", annotator=NAME)
        last = study.last_seq()
        assert forget(study, NAME).tokens == 1
        assert study.access.grants("invite") == []
        assert study.last_seq() == last


@pytest.mark.postgres
def test_postgresql_forgets_and_says_what_is_left(make_study, postgres_url):
    with worked(make_study(), database=postgres_url) as study:
        done = forget(study, NAME)
        assert "VACUUM FULL" in done.left
        check_chain(study.events())
        assert NAME not in "".join(event.line() for event in study.events())
        assert study.ask("cleo") is not None


class Forgetful(Life):
    """A life in which people are forgotten, too."""

    def forget(self) -> None:
        name = f"ann-{self.rng.integers(3)}"
        if name not in self.study.annotators.names():
            return
        own = {task.judgment_id for task in self.seen if task.annotator == name}
        self.answers = {key: answer for key, answer in self.answers.items() if key not in own}
        self.seen = [task for task in self.seen if task.annotator != name]
        take_out(self.study, name)


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS)
def test_whenever_a_person_is_forgotten_the_rest_goes_on(make_study, tmp_path, design):
    protocol, chosen, items = DESIGNS[design]
    life = Forgetful(make_study(protocol, chosen, items=items), tmp_path, len(design))
    steps = [*STEPS, Forgetful.forget]
    for step in range(60):
        (Forgetful.forget if step == 45 else steps[int(life.rng.integers(len(steps)))])(life)
    assert any(event.kind == "forgotten" for event in life.study.events())
    life.now += 60 * 60 * 10**6
    for person in [*(f"ann-{n}" for n in range(3)), *(f"new-{n}" for n in range(9))] * 2:
        while (task := life.study.ask(person)) is not None:
            life.answers[task.judgment_id] = life.study.tell(task, life.answer(task)).answer
    assert life.study.offer("newcomer").complete
    life.check()
    life.study.close()


# Pseudonyms


def test_exports_name_nobody_and_everybody_alike_everywhere(make_study, tmp_path):
    with worked(make_study()) as study:
        write_log(study, tmp_path / "log.jsonl")
        assert study.privacy.pseudonym(NAME) == study.privacy.names().called[NAME]
        text = (tmp_path / "log.jsonl").read_text()
        assert not any(name in text for name in (NAME, '"ann"', '"bob"'))
        assert f"the same person as {study.privacy.pseudonym(NAME)}" in text
        assert study.privacy.secret not in text
        with rebuild(read_log(tmp_path / "log.jsonl"), tmp_path, f"sqlite:///{tmp_path / 'again.db'}") as again:
            assert set(again.judgments()["annotator"]) == {
                study.privacy.pseudonym(name) for name in ("ann", NAME, "bob")
            }
            assert again.scores().select("item", "score").equals(study.scores().select("item", "score"))
            assert again.privacy.secret != study.privacy.secret
        forget(study, "ann")
        check_chain(exported_log(study))


@pytest.mark.slow
def test_a_pseudonym_is_the_same_tomorrow_and_another_in_another_study(make_study):
    folder = make_study()
    with Study.open(folder) as study:
        first = study.privacy.pseudonym("ann")
    with Study.open(folder) as study, Study.open(make_study(name="other")) as other:
        assert study.privacy.pseudonym("ann") == first
        assert other.privacy.pseudonym("ann") != first
        assert len({study.privacy.pseudonym(f"a{n}") for n in range(10_000)}) == 10_000


def test_what_was_exported_is_not_imported_twice(make_study, tmp_path):
    from steelyard.formats import write_table
    from steelyard.study.exporting import conventional_judgments, people_table

    (tmp_path / "j.csv").write_text("annotator,item,value\nann,w0,5\nzoe,w1,7\n")
    with worked(make_study()) as study:
        import_file(study, tmp_path / "j.csv")
        before = study.status()
        write_table(conventional_judgments(study), tmp_path / "out.csv")
        text = (tmp_path / "out.csv").read_text()
        assert study.privacy.pseudonym("ann") in text
        assert NAME not in text
        assert import_file(study, tmp_path / "out.csv").added == 0
        assert study.status() == before
        # A row added to the file by hand is that person's, under the name the study knows.
        (tmp_path / "more.csv").write_text(f"annotator,item,value\n{study.privacy.pseudonym('zoe')},w2,9\n")
        assert import_file(study, tmp_path / "more.csv").added == 1
        assert study.annotators.counted("zoe") == 2
        table = people_table(study)
        assert dict(zip(table["annotator"], table["pseudonym"], strict=True))["zoe"] == study.privacy.pseudonym("zoe")


def test_agreement_of_an_export_is_that_of_the_study(make_study, tmp_path):
    from steelyard.formats import read_judgments, write_table
    from steelyard.reliability import agreement
    from steelyard.study.exporting import conventional_judgments

    with Study.open(make_study(design="judgments = 4")) as study:
        rng = np.random.default_rng(1)
        for name in ("ann", "bob", "cleo", "dan"):
            while (task := study.ask(name)) is not None:
                value = float(task.items[0].id[1:]) / 10 + 0.2 * rng.random()
                study.tell(task, answer_for(study.core.stage_of(task).protocol, {task.items[0].id: value}))
        own = {}
        for real in (False, True):
            write_table(conventional_judgments(study, real_ids=real), tmp_path / "out.csv")
            read = read_judgments(tmp_path / "out.csv", scale=(0, 100)).observations
            own[real] = {figure.key: figure.value for figure in agreement(read).statistics if "split" not in figure.key}
    assert own[False] == pytest.approx(own[True])
    assert any(value is not None for value in own[True].values())


def test_answers_that_arrive_meanwhile_do_not_make_the_count_negative(make_study, monkeypatch):
    """The scores are computed before the log is rewritten, which takes long in a large study; others go on judging."""
    with Study.open(make_study('name = "direct"', 'name = "per_item"\njudgments = 3', items=6)) as study:

        def answer(annotator: str, count: int) -> None:
            for task in (study.ask(annotator) for _ in range(count)):
                study.tell(task, {task.item_ids[0]: 50})

        answer(NAME, 2)
        answer("ann", 1)
        fit = study.fit

        def slow_fit(**options):
            answer("bea" if study.status().judgments < 5 else "cho", 4)
            return fit(**options)

        monkeypatch.setattr(study, "fit", slow_fit)
        assert forget(study, NAME).again == 2
