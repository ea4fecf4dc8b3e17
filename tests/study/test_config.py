"""study.toml: defaults, and every error at once with its line."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest

from steelyard import Study, registry
from steelyard.errors import ConfigError, DataError, SteelyardError
from steelyard.renamed import RENAMED
from steelyard.study import read_config
from steelyard.study.config import parse_config
from steelyard.study.opening import check_study


def problems(make, toml: str, items: str = "id,text\na,a\nb,b\nc,c\nd,d\n") -> list[str]:
    folder = make()
    (folder / "study.toml").write_text(toml, encoding="utf-8")
    (folder / "items.csv").write_text(items, encoding="utf-8")
    with pytest.raises(SteelyardError) as caught:
        check_study(folder)
    return [str(problem) for problem in caught.value.problems]


ONE_SHARE = '[[stage]]\nshare = 0.5\nprotocol = { name = "direct" }\n[[stage]]\nprotocol = { name = "likert" }\n'
TUPLES_OF_ONE = '[protocol]\nname = "direct"\n[design]\nname = "random_tuples"\n'
BOTH = '[protocol]\nname = "direct"\n[[stage]]\nprotocol = { name = "direct" }\n'
GOOD = 'title = "T"\nquestion = "Q"\nitems = "items.csv"\n'


def test_only_four_keys_are_needed(make_study):
    config = read_config(make_study() / "study.toml")
    assert (config.stages[0].design.name, config.model.name) == ("per_item", "mean")
    assert config.annotators.lease_minutes == 30


@pytest.mark.parametrize(
    ("protocol", "design", "model"),
    [
        ('"likert"', "per_item", "mean"),
        ('"choice"\nlabels = ["a", "b"]', "per_item", "majority"),
        ('"pairwise"', "random_tuples", "bradley_terry"),
        ('"best_worst"', "random_tuples", "counting"),
        ('"scored_ranking"', "random_tuples", "easl"),
        ('"ranking"', "random_tuples", "plackett_luce"),
    ],
)
def test_defaults_follow_the_protocol(make_study, protocol, design, model):
    config = read_config(make_study(f"name = {protocol}") / "study.toml")
    assert config.stages[0].design.name == design
    assert config.model.name == model


def test_every_problem_comes_at_once_with_file_and_line(make_study):
    toml = (
        'titel = "T"\nquestion = ""\nitems = "items.csv"\n\n[protocol]\nname = "pairwize"\n\n[annotators]\nleas = 3\n'
    )
    messages = problems(make_study, toml, "id,text\na,a\na,b\n")
    assert len(messages) == 6
    assert any(re.match(r"study.toml line 1 \(titel\): unknown key 'titel'. Did you mean 'title'", p) for p in messages)
    assert any(p.startswith("study.toml (title): 'title' is missing.") for p in messages)
    assert any(p.startswith("study.toml line 2 (question)") for p in messages)
    assert any(p.startswith("study.toml line 6 (protocol.name)") and "'pairwise'" in p for p in messages)
    assert any(p.startswith("study.toml line 9 (annotators.leas)") and "lease_minutes" in p for p in messages)
    assert any(p.startswith("items.csv line 3") for p in messages)


@pytest.mark.parametrize(
    ("toml", "expected"),
    [
        ("version = 2\n" + GOOD, "study.toml line 1 (version): it was written for a newer version of Steelyard"),
        (GOOD, "study.toml (protocol): 'protocol' is missing"),
        (GOOD + "[protocol]\nname = 3\n", "protocol has no name"),
        (GOOD + '[protocol]\nname = "direct"\nskale = [0, 1]\n', "study.toml line 6 (protocol.skale): direct has no"),
        (GOOD + '[protocol]\nname = "direct"\n[design]\nname = "redundnt"\n', "study.toml line 7 (design.name)"),
        (GOOD + '[protocol]\nname = "direct"\n[design]\njudgments = 0\n', "study.toml line 7 (design.judgments)"),
        (GOOD + '[protocol]\nname = "direct"\n[model]\nname = "counting"\n', "counting needs choices or comparisons"),
        (GOOD + TUPLES_OF_ONE, "random_tuples shows items together"),
        (GOOD + '[protocol]\nname = "best_worst"\nsize = 9\n', "a task shows 9 items, but there are only 4"),
        (GOOD + BOTH, "[[stage]] and [protocol] cannot be combined"),
        (GOOD + '[[stage]]\nprotocol = { name = "direkt" }\n', "study.toml line 5 (stage.0.protocol.name)"),
        (
            GOOD + ONE_SHARE,
            "some stages have a share and others do not",
        ),
        (
            GOOD + '[[stage]]\nprotocol = { name = "direct" }\n[[stage]]\nprotocol = { name = "direct" }\n',
            "two stages are called 'direct'",
        ),
        (GOOD.replace("items.csv", "gone.csv") + '[protocol]\nname = "direct"\n', "gone.csv"),
        ("title = \n", "not valid TOML"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(make_study, toml, expected):
    messages = problems(make_study, toml)
    assert any(expected in problem for problem in messages), messages


def test_a_folder_without_a_study_says_how_to_make_one(tmp_path):
    with pytest.raises(ConfigError, match=r"no study.toml.*steelyard new"):
        Study.open(tmp_path)


def test_nothing_is_created_when_the_study_is_refused(make_study):
    folder = make_study("name = 'nonsense'")
    with pytest.raises(ConfigError):
        Study.open(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["items.csv", "study.toml"]


def test_items_can_be_added_while_a_study_runs(make_study):
    folder = make_study(items=2, design="judgments = 1")
    with Study.open(folder) as study:
        for _ in range(2):
            task = study.ask("ann")
            study.tell(task, {task.items[0].id: 1})
        assert study.offer("ann").complete
    with (folder / "items.csv").open("a") as file:
        file.write("new,a new word\n")
    with Study.open(folder) as study:
        task = study.ask("ann")
        assert task.item_ids == ("new",)


@pytest.mark.parametrize(
    ("change", "message"), [("w0,another text", "'w0' has changed"), ("", "no longer in the file")]
)
def test_items_that_people_judge_do_not_change_under_them(make_study, change, message):
    folder = make_study(items=2)
    Study.open(folder).close()
    text = (folder / "items.csv").read_text()
    (folder / "items.csv").write_text(text.replace("w0,word w0\n", change + "\n" if change else ""))
    with pytest.raises(DataError, match=message):
        Study.open(folder)
    (folder / "items.csv").write_text(text)
    Study.open(folder).close()


def test_the_protocol_cannot_change_once_people_were_asked_but_the_design_can(make_study):
    folder = make_study(design="judgments = 1")
    with Study.open(folder) as study:
        study.ask("ann")
    path = folder / "study.toml"
    good = path.read_text()
    path.write_text(good.replace("judgments = 1", "judgments = 3"))
    with Study.open(folder) as study:
        assert study.status().stages[0].total == 18
    path.write_text(good.replace('name = "direct"', 'name = "likert"'))
    with pytest.raises(ConfigError, match="protocol has changed since the first judgment"):
        Study.open(folder)


@pytest.mark.parametrize(
    ("design", "field", "new_name"),
    [
        ({"name": "information_gain"}, "design.name", "adaptive"),
        ({"name": "redundant"}, "design.name", "per_item"),
        ({"name": "adaptive", "aim": "scores"}, "design.aim", "objective"),
        ({"name": "adaptive", "first_looks": 2}, "design.first_looks", "initial_views"),
        ({"name": "tournament", "patience_minutes": 5}, "design.patience_minutes", "hold_minutes"),
        ({"name": "tournament", "annotators": 2}, "design.annotators", "annotators_per_source"),
        ({"name": "adaptive", "annotators": 2}, "design.annotators", "max_annotators_per_task"),
        *(
            ({"name": name, "annotators": 2}, "design.annotators", "annotators_per_task")
            for name in ("all_pairs", "random_tuples", "balanced_tuples", "propagation")
        ),
    ],
)
@pytest.mark.parametrize("in_stage", [False, True])
def test_a_former_name_is_refused_with_the_new_one(design, field, new_name, in_stage):
    tables = {"protocol": {"name": "pairwise"}, "design": design}
    data = {"title": "t", "question": "q", "items": "items.csv"}
    with pytest.raises(ConfigError) as refusal:
        parse_config(data | ({"stage": [tables]} if in_stage else tables))
    (problem,) = refusal.value.problems
    assert problem.field == ("stage.0." if in_stage else "") + field
    assert problem.remedy == f"It is now called '{new_name}'."


FORMER_KEYS = [
    ("people", {}, "annotators"),
    ("people.tasks", 3, "max_tasks"),
    ("people.revise", 3, "revisable_answers"),
    ("quality.repeats", 0.1, "repeat_rate"),
    ("quality.overlap", 0.1, "overlap_rate"),
    ("quality.checks.at_least", 3, "min_checks"),
    ("quality.checks.loud", True, "feedback"),
    ("quality.checks.pass", 0.8, "min_accuracy"),
    ("quality.checks.rule.plain", "plain", "threshold"),
    ("quality.qualification.pass", 0.8, "min_accuracy"),
    ("stop.looks", 3, "interim_analyses"),
    ("link.participant", "rid", "participant_parameter"),
    ("link.study", "project", "study_parameter"),
    ("link.session", "visit", "session_parameter"),
    ("prolific.approved", 3, "min_approved"),
    ("prolific.approval_rate", 90, "min_approval_rate"),
    ("prolific.minutes", 5, "estimated_minutes"),
]
REQUIRED = {
    "quality.checks": {"file": "checks.csv"},
    "quality.qualification": {"file": "test.csv"},
    "stop": {"measure": "split_half", "target": 0.9},
    "prolific": {"places": 3},
}
"""Keys that a table must have."""


@pytest.mark.parametrize(("former", "value", "new_name"), FORMER_KEYS)
def test_a_former_key_is_refused_with_the_new_one(former, value, new_name):
    path = former.removesuffix(".plain")
    *tables, key = path.split(".")
    data: dict = {"title": "t", "question": "q", "items": "items.csv", "protocol": {"name": "direct"}}
    table = data
    for depth, name in enumerate(tables, start=1):
        table = table.setdefault(name, dict(REQUIRED.get(".".join(tables[:depth]), {})))
    table[key] = value
    with pytest.raises(ConfigError) as refusal:
        parse_config(data)
    remedies = {problem.field: problem.remedy for problem in refusal.value.problems}
    assert remedies[path] == f"It is now called '{new_name}'."
    assert len(remedies) == (2 if former.startswith("people.") else 1)


def test_every_former_key_is_tested():
    of_settings = ("protocols.", "designs.", "models.", "protocol.", "design.", "model.", "population.")
    assert {key: name for key, name in RENAMED.items() if not key.startswith(of_settings)} == {
        former: new_name for former, _, new_name in FORMER_KEYS
    }


def test_every_new_name_exists():
    for former, name in RENAMED.items():
        kind, _, key = former.partition(".")
        if kind in {"protocols", "designs", "models"}:
            assert name in registry.names(kind)
            assert key not in registry.names(kind)
        elif kind in {"protocol", "design", "model"}:
            classes = [registry.find(f"{kind}s", each) for each in registry.names(f"{kind}s")]
            assert any(name in {field.name for field in fields(cls)} for cls in classes), former
