"""Checks, repeats and overlap in a running study."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import polars as pl
import pytest

from steelyard import Study
from steelyard.errors import ConfigError
from steelyard.study import differing_picks, parse_config, rebuild
from steelyard.study.check_plan import describe_checks
from steelyard.study.config.tables import Checks

pytestmark = pytest.mark.filterwarnings("ignore::steelyard.errors.SteelyardWarning")

CHECKS = "items,answer,feedback\n" + "".join(f"good {n}|bad {n},good {n},Good is better than bad.\n" for n in range(30))


@pytest.fixture
def checked(make_study):
    """Return a function that makes a pairwise study with checks."""

    def make(settings: str = "rate = 0.3", extra: str = "", judgments: int = 40, checks: str = CHECKS):
        folder = make_study(
            'name = "pairwise"',
            f'name = "random_tuples"\njudgments = {judgments}',
            items=12,
            extra=f'[quality]\nchecks = {{ file = "gold.csv", {settings.replace(chr(10), ", ")} }}\n{extra}',
        )
        (folder / "gold.csv").write_text(checks)
        return folder

    return make


def work(study: Study, annotator: str, accuracy: float, rng: np.random.Generator, most: int = 1000) -> None:
    """Answer; on checks right with some probability, otherwise the item of the lower number."""
    for _ in range(most):
        task = study.ask(annotator)
        if task is None:
            return
        good = [name for name in task.item_ids if name.startswith("good")]
        if good:
            winner = good[0] if rng.random() < accuracy else next(n for n in task.item_ids if n != good[0])
        else:
            winner = min(task.item_ids)
        study.tell(task, {"winner": winner}, seconds=2.0)


def test_checks_come_at_their_rate_and_do_not_count_in_the_scores(checked):
    with Study.open(checked("rate = 0.3")) as study:
        work(study, "ann", 1.0, np.random.default_rng(0), most=100)
        frame = study.judgments()
        checks = frame.filter(pl.col("purpose") == "check")
        assert 15 <= checks.height <= 30
        assert checks["right"].all()
        assert set(study.scores()["item"]) == {item.id for item in study.items}
        assert study.scores()["judgments"].sum() == 2 * (frame.height - checks.height)
        assert study.quality.check_results() == {"ann": (checks.height, checks.height)}


def test_nobody_gets_the_same_check_twice(checked):
    with Study.open(checked("rate = 0.9")) as study:
        work(study, "ann", 1.0, np.random.default_rng(0), most=100)
        picks = Counter(e.data.about for e in study.events(["picked"]) if e.data.purpose == "check")
        assert len(picks) == 30
        assert set(picks.values()) == {1}


@pytest.mark.slow
def test_the_side_of_the_right_answer_is_random(checked):
    with Study.open(checked("rate = 0.9")) as study:
        for number in range(5):
            work(study, f"ann-{number}", 1.0, np.random.default_rng(0), most=40)
        first = [e.data.items[0].startswith("good") for e in study.events(["picked"]) if e.data.purpose != "judgment"]
        assert 0.35 < np.mean(first) < 0.65


@pytest.mark.slow
def test_who_fails_the_checks_is_excluded_and_their_budget_is_asked_again(checked):
    rng = np.random.default_rng(1)
    with Study.open(checked("rate = 0.4")) as study:
        for number in range(4):
            work(study, f"honest-{number}", 0.95, rng, most=40)
        work(study, "guesser", 0.0, rng, most=60)
        assert list(study.annotators.excluded) == ["guesser"]
        assert "checks right" in study.annotators.excluded["guesser"]
        assert study.offer("guesser").reason_code == "excluded"
        counted = study.judgments().filter(~pl.col("set_aside") & (pl.col("purpose") != "check"))
        assert study.status().stages[0].done == counted.height


def test_three_wrong_answers_accuse_nobody(checked):
    with Study.open(checked("rate = 0.9")) as study:
        work(study, "ann", 0.0, np.random.default_rng(0), most=3)
        assert study.annotators.excluded == {}


def test_the_plain_rule_goes_by_the_share(checked):
    with Study.open(checked('rate = 0.9\nrule = "threshold"\nmin_checks = 10')) as study:
        work(study, "ann", 0.65, np.random.default_rng(3), most=200)
        right, asked = study.quality.check_results()["ann"]
        assert ("ann" in study.annotators.excluded) == (right / asked < 0.7)
        assert asked >= 10


def test_a_person_who_readmits_somebody_has_the_last_word(checked):
    with Study.open(checked("rate = 0.5")) as study:
        work(study, "ann", 0.0, np.random.default_rng(0), most=40)
        assert list(study.annotators.excluded) == ["ann"]
        study.annotators.readmit("ann", "they misread the instructions")
        work(study, "ann", 0.0, np.random.default_rng(0), most=10)
        assert study.annotators.excluded == {}


def test_a_disputed_check_counts_against_nobody_until_somebody_has_looked(checked):
    wrong = "items,answer\n" + "".join(f"good {n}|bad {n},bad {n}\n" for n in range(8))
    with Study.open(checked("rate = 0.9", checks=wrong)) as study:
        for number in range(8):
            work(study, f"ann-{number}", 1.0, np.random.default_rng(number), most=14)
        assert all(check.disputed for check in study.quality.checks() if check.right + check.wrong >= 5)
        assert study.annotators.excluded == {}
        for check in study.quality.checks():
            study.quality.resolve_check(check.key, "right")
        assert len(study.annotators.excluded) == 8
        for check in study.quality.checks():
            study.quality.resolve_check(check.key, "wrong")
        assert study.annotators.excluded == {}
        assert study.quality.check_results() == {}
        assert differing_picks(study.events()) == []


def test_loud_checks_say_what_is_right_and_the_first_answer_stands(checked):
    with Study.open(checked("rate = 0.9\nfeedback = true")) as study:
        task = next(t for t in iter(lambda: study.ask("ann"), None) if t.item_ids[0].startswith(("good", "bad")))
        bad = next(n for n in task.item_ids if n.startswith("bad"))
        good = next(n for n in task.item_ids if n.startswith("good"))
        feedback = study.quality.feedback(study.tell(task, {"winner": bad}))
        assert (feedback.right, feedback.expected) == (False, f"{good} above {bad}")
        assert feedback.text == "Good is better than bad."
        study.revise(task.judgment_id, {"winner": good})
        assert study.quality.check_results() == {"ann": (0, 1)}


def test_silent_checks_say_nothing_and_the_last_answer_stands(checked):
    with Study.open(checked("rate = 0.9")) as study:
        task = study.ask("ann")
        bad, good = (next(n for n in task.item_ids if n.startswith(side)) for side in ("bad", "good"))
        assert study.quality.feedback(study.tell(task, {"winner": bad})) is None
        study.revise(task.judgment_id, {"winner": good})
        assert study.quality.check_results() == {"ann": (1, 1)}


def test_a_study_with_checks_rebuilds_from_its_log_and_every_pick_replays(checked, tmp_path):
    rng = np.random.default_rng(5)
    with Study.open(
        checked("rate = 0.3", "repeat_rate = 0.2\nrepeat_after = 3\noverlap_rate = 0.2", judgments=12)
    ) as study:
        for turn in range(30):
            for name, accuracy in (("ann", 0.9), ("bob", 0.9), ("cleo", 0.1)):
                work(study, name, accuracy, rng, most=1 + turn % 3)
        events = list(study.events())
        assert {e.data.purpose for e in events if e.kind == "picked"} == {"judgment", "check", "repeat", "overlap"}
        assert differing_picks(events) == []
        with rebuild(events, study.folder, f"sqlite:///{tmp_path / 'again.db'}") as again:
            assert again.status() == study.status()
            assert again.scores().write_csv() == study.scores().write_csv()
            assert again.quality.check_results() == study.quality.check_results()


def test_a_repeat_comes_late_enough_only_once_and_does_not_count(make_study):
    folder = make_study(
        'name = "direct"',
        'name = "per_item"\njudgments = 2',
        items=40,
        extra="[quality]\nrepeat_rate = 0.4\nrepeat_after = 6\n",
    )
    with Study.open(folder) as study:
        while (task := study.ask("ann")) is not None:
            study.tell(task, dict.fromkeys(task.item_ids, 5))
        frame = study.judgments().with_row_index("place")
        assert set(study.scores()["judgments"]) == {1}
        repeats = frame.filter(pl.col("purpose") == "repeat")
        assert repeats.height > 8
        first = dict(frame.filter(pl.col("purpose") == "judgment").select(pl.col("items").list[0], "place").iter_rows())
        again = repeats["items"].list[0].to_list()
        assert len(set(again)) == len(again)
        between = [place - first[item] for item, place in zip(again, repeats["place"], strict=True)]
        assert min(between) > 6


def test_everybody_gets_the_overlap_tasks_once_and_they_count(make_study):
    folder = make_study(
        'name = "direct"', 'name = "per_item"\njudgments = 3', items=60, extra="[quality]\noverlap_rate = 0.25\n"
    )
    with Study.open(folder) as study:
        people = [f"ann-{number}" for number in range(6)]
        for _ in range(20):
            for name in people:
                if (task := study.ask(name)) is not None:
                    study.tell(task, dict.fromkeys(task.item_ids, 5))
        shared = [e.data.items[0] for e in study.events(["picked"]) if e.data.shared]
        frame = study.judgments().explode("items")
        assert 2 <= len(shared) <= 15
        per_item = dict(frame.group_by("items").len().iter_rows())
        # Those shared first have had time to reach everybody.
        assert [per_item[item] for item in shared[:2]] == [len(people)] * 2
        assert frame.group_by("annotator", "items").len()["len"].max() == 1
        assert study.scores()["judgments"].sum() == frame.height


def test_a_check_given_up_may_come_again(checked):
    with Study.open(checked("rate = 0.95", checks="items,answer\ngood|bad,good\n")) as study:
        task = study.ask("ann")
        assert set(task.item_ids) == {"good", "bad"}
        study.release(task)
        for _ in range(5):
            again = study.ask("ann")
            study.tell(again, {"winner": again.item_ids[0]})
        keys = [e.data.about for e in study.events(["picked"]) if e.data.purpose == "check"]
        assert len(keys) == 2


def test_checks_may_be_added_and_changed_while_the_study_runs(checked):
    folder = checked("rate = 0.9", checks="items,answer\ngood 1|bad 1,good 1\n")
    with Study.open(folder) as study:
        work(study, "ann", 1.0, np.random.default_rng(0), most=5)
        assert len(study.quality.checks()) == 1
    (folder / "gold.csv").write_text(CHECKS)
    with Study.open(folder) as study:
        work(study, "ann", 1.0, np.random.default_rng(0), most=20)
        assert len(study.quality.checks()) == 30
        assert study.quality.check_results()["ann"][1] > 5
        assert differing_picks(study.events()) == []
    with Study.open(folder) as study:
        kinds = [event.kind for event in study.events()]
        assert kinds.count("checks") == 2


def test_a_check_that_does_not_fit_the_protocol_is_named_with_its_line(checked):
    with pytest.raises(ConfigError, match=r"gold\.csv.*line 2.*shows 3 items"):
        Study.open(checked(checks="items,answer\na|b|c,a\n"))


def test_an_unknown_key_of_checks_is_named(checked):
    with pytest.raises(ConfigError, match=r"rat.*rate"):
        Study.open(checked("rat = 0.1"))


def test_checks_of_one_annotator_are_spread_over_their_tasks(checked):
    with Study.open(checked("rate = 0.2")) as study:
        work(study, "ann", 1.0, np.random.default_rng(0), most=100)
        places = [n for n, e in enumerate(study.events(["picked"])) if e.data.purpose == "check"]
        assert max(b - a for a, b in pairwise(places)) < 30


@pytest.mark.slow
def test_the_first_checks_come_early_one_in_each_part_of_the_first_tasks(checked):
    """With the default settings: four checks in the first 12 tasks, one of every three; then about one of twenty."""
    with Study.open(checked("rate = 0.05", judgments=200)) as study:
        for number in range(12):
            work(study, f"ann {number}", 1.0, np.random.default_rng(number), most=12)
            purposes = study.judgments().filter(pl.col("annotator") == f"ann {number}")["purpose"].to_list()
            parts = [purposes[start : start + 3].count("check") for start in range(0, 12, 3)]
            # The usual rate applies between a check and the next part, so a check may come before its part begins.
            assert np.all(np.cumsum(parts) >= [1, 2, 3, 4])
            assert sum(parts) <= 7
        work(study, "ann 0", 1.0, np.random.default_rng(99), most=75)
        later = study.judgments().filter(pl.col("annotator") == "ann 0")["purpose"].to_list()[12:]
        assert later.count("check") <= 12  # 3.75 expected


@pytest.mark.parametrize(("n_checks", "n_tasks", "expected"), [(0, 0, 1 / 3), (0, 1, 1 / 2), (0, 2, 1), (0, 9, 1)])
def test_a_check_is_certain_at_the_end_of_its_part(n_checks, n_tasks, expected):
    assert Checks(file="x").probability(n_checks, n_tasks) == pytest.approx(expected)


def test_many_checks_before_an_exclusion_do_not_crowd_out_the_tasks():
    assert Checks(file="x", min_checks=50).probability(0, 0) == pytest.approx(1 / 3)
    assert Checks(file="x", min_checks=50, min_checks_within=60).early_tasks == 60


def test_between_parts_and_afterwards_checks_come_at_the_usual_rate():
    rule = Checks(file="x", rate=0.05)
    assert rule.probability(1, 2) == 0.05
    assert rule.probability(1, 3) == pytest.approx(1 / 3)
    assert rule.probability(4, 12) == 0.05


@pytest.mark.slow
def test_careless_annotators_are_excluded_in_a_study_of_usual_size(checked):
    """Forty tasks each: those who guess are excluded with the default settings, and hardly anybody else."""
    with Study.open(checked("rate = 0.05", judgments=300)) as study:
        rng = np.random.default_rng(5)
        for number in range(20):
            work(study, f"ann {number}", 0.5 if number < 4 else 0.97, rng, most=40)
        excluded = set(study.annotators.excluded)
        assert excluded <= {f"ann {number}" for number in range(4)}
        # Of 6 checks, an annotator who guesses gets at most 2 right with probability .34, 3 with .31.
        assert len(excluded) >= 1


def test_the_plan_says_when_checks_can_act_and_what_prevents_it():
    base = {"title": "t", "question": "q", "items": "i.csv", "protocol": {"name": "direct"}}
    config = parse_config({**base, "quality": {"checks": {"file": "c.csv"}}})
    plan = describe_checks(config, 30)
    assert "4 checks within the first 12 tasks" in plan.sentences[0]
    assert plan.warnings == ()
    assert "needs 4 answered checks, and the number of checks is 3" in describe_checks(config, 3).warnings[0]
    short = parse_config({**base, "quality": {"checks": {"file": "c.csv"}}, "annotators": {"max_tasks": 10}})
    assert "min_checks_within = 10" in describe_checks(short, 30).warnings[0]
    assert describe_checks(parse_config(base), 0).sentences == ()
