"""A study simulated in memory is the study itself without its store."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from steelyard import registry
from steelyard.errors import ConfigError, DataError
from steelyard.observations import Observations
from steelyard.records import Item
from steelyard.simulate import (
    Population,
    SimulatedAnnotators,
    answer_study,
    answer_study_with_crowd,
    make_crowd,
    simulate_study,
)
from steelyard.simulate.population import SimulatedAnnotator
from steelyard.study import Study
from steelyard.study.opening import check_study, read_checks
from tests.simulate.helpers import PROTOCOLS, make_annotators, make_config, make_items

CROWDED = Population(
    careless=0.3, drift=0.1, fatigue=0.5, lapse_growth=0.1, together=0.7, context_shift=0.05, confusion=0.2, lapse=0.1
)
STAGES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"name": "direct"}, {"name": "per_item", "judgments": 3}),
    ({"name": "direct", "items_per_page": 4}, {"name": "per_item", "judgments": 3}),
    ({"name": "pairwise"}, {"name": "random_tuples", "judgments": 4}),
    ({"name": "best_worst"}, {"name": "random_tuples", "judgments": 4, "annotators_per_task": 2}),
    ({"name": "best_worst"}, {"name": "balanced_tuples", "factor": 1, "annotators_per_task": 2}),
    ({"name": "pairwise"}, {"name": "all_pairs"}),
    ({"name": "scored_ranking"}, {"name": "match_quality", "rounds": 3}),
    ({"name": "scored_ranking"}, {"name": "match_quality", "rounds": 3, "mode": "continuous"}),
    ({"name": "pairwise"}, {"name": "adaptive", "judgments": 4}),
    ({"name": "direct"}, {"name": "adaptive", "judgments": 3}),
]
KNOWN = [stage for stage in STAGES if stage[1]["name"] in registry.names("designs")]


def same(a: Observations, b: Observations) -> bool:
    """Whether two sets of observations hold the same rows, whatever they call their tasks."""
    names = ("item", "value", "label", "left", "right", "outcome", "shown", "best", "worst", "start", "rank")
    ours = [a.annotators[int(code)] for code in a.annotator]
    return (
        type(a) is type(b)
        and ours == [b.annotators[int(code)] for code in b.annotator]
        and all(np.array_equal(getattr(a, name), getattr(b, name)) for name in names if hasattr(a, name))
    )


QUALITY = """
[quality]
repeat_rate = 0.15
repeat_after = 2
overlap_rate = 0.15
[quality.checks]
file = "checks.csv"
rate = 0.3
min_checks = 1
rule = "threshold"
"""
CHECKS = {
    "direct": [("item-1", "0..45"), ("item-2", "30..100"), ("item-3", "50..60"), ("elsewhere", "0..100")],
    "pairwise": [("item-1|item-2", "item-2"), ("item-0|elsewhere", "item-0"), ("item-6|item-4", "item-4")],
}


def write_study(folder, protocol, design, items, extra=""):
    lines = ["id,text", *(f"{item.id},{item.text}" for item in items)]
    (folder / "items.csv").write_text("\n".join(lines) + "\n")
    tables = [
        f"[{name}]\n" + "".join(f"{key} = {toml(value)}\n" for key, value in table.items())
        for name, table in (("protocol", protocol), ("design", design))
    ]
    (folder / "study.toml").write_text(
        'title = "T"\nquestion = "Q"\nitems = "items.csv"\nseed = 4\n' + "".join(tables) + extra
    )


@pytest.mark.slow
@pytest.mark.parametrize(("protocol", "design"), KNOWN, ids=str)
def test_a_simulated_study_asks_exactly_the_tasks_of_a_real_study(protocol, design, tmp_path):
    items = make_items(11)
    config = make_config(protocol, design, seed=4)
    write_study(tmp_path, protocol, design, items)
    simulated = simulate_study(config, items, make_annotators(7, items), np.random.default_rng(1))
    with Study.open(tmp_path) as study:
        assert answer_study(study, make_annotators(7, items), np.random.default_rng(1)) == len(simulated)
        frame = study.judgments()
        assert frame["items"].to_list() == [list(ids) for ids in simulated.stages[0].items]
        assert frame["annotator"].to_list() == simulated.stages[0].annotators
        kind = config.stages[0].protocol.kinds[0]
        ours, theirs = simulated.observations(), study.observations(kind)
    assert set(ours) == set(theirs)
    assert all(same(ours[name], theirs[name]) for name in ours)


@pytest.mark.slow
@pytest.mark.parametrize("has_checks", [False, True], ids=["repeats and overlap", "checks too"])
@pytest.mark.parametrize(
    ("protocol", "design"),
    [
        ({"name": "direct"}, {"name": "per_item", "judgments": 5}),
        ({"name": "pairwise"}, {"name": "random_tuples", "judgments": 8}),
        ({"name": "pairwise"}, {"name": "adaptive", "judgments": 8}),
    ],
    ids=str,
)
def test_checks_repeats_and_overlap_are_simulated_as_a_real_study_asks_them(protocol, design, has_checks, tmp_path):
    items = make_items(11)
    write_study(tmp_path, protocol, design, items, QUALITY if has_checks else QUALITY.partition("[quality.checks]")[0])
    rows = [f"{shown},{answer}" for shown, answer in CHECKS[protocol["name"]]]
    (tmp_path / "checks.csv").write_text("\n".join(["items,answer", *rows]) + "\n")
    config, _ = check_study(tmp_path)
    crowd = [*items, Item("elsewhere", "shown in a check only")]
    simulated = simulate_study(
        config,
        items,
        make_annotators(9, crowd, population=CROWDED),
        np.random.default_rng(1),
        checks=read_checks(tmp_path, config, items),
    )
    with Study.open(tmp_path) as study:
        assert answer_study(study, make_annotators(9, crowd, population=CROWDED), np.random.default_rng(1)) == len(
            simulated
        )
        theirs = list(study.stream_judgments())
        excluded = study.annotators.excluded
        observations = study.observations(config.stages[0].protocol.kinds[0])
    ours = simulated.judgments(0)
    compared = ("annotator", "items", "answer", "purpose", "right", "set_aside", "seq")
    for name in compared:
        assert [getattr(j, name) for j in ours] == [getattr(j, name) for j in theirs], name
    assert {j.purpose for j in ours} == {"judgment", "repeat", "overlap", *({"check"} if has_checks else ())}
    assert simulated.log.state.excluded == excluded
    assert bool(excluded) == has_checks
    assert simulated.learns == (has_checks or design["name"] == "adaptive")
    assert all(same(simulated.observations()[name], observations[name]) for name in observations)


def test_a_tournament_with_an_adequacy_stage_is_simulated_as_it_is_run(tmp_path):
    """Designs that listen to answers, the second to those of the first stage."""
    (tmp_path / "items.csv").write_text(
        "id,text,context,reference\n"
        + "".join(f"s{s}-{n},text {s} {n},Sentence {s},text {s} 0\n" for s in range(4) for n in range(5))
    )
    (tmp_path / "study.toml").write_text(
        'title = "T"\nquestion = "Q"\nitems = "items.csv"\nmodel = { name = "dominance" }\n'
        '[[stage]]\nname = "tournament"\nprotocol = { name = "pairwise" }\ndesign = { name = "tournament" }\n'
        '[[stage]]\nname = "adequacy"\nprotocol = { name = "choice", labels = ["no", "yes"] }\n'
        'design = { name = "propagation" }\n'
    )
    config, items = check_study(tmp_path)
    simulated = simulate_study(config, items, make_annotators(3, items), np.random.default_rng(1))
    assert simulated.complete
    with Study.open(tmp_path) as study:
        answer_study(study, make_annotators(3, items), np.random.default_rng(1))
        frame = study.judgments()
    ours = [event.data for event in simulated.log.events(["judgment"])]
    assert {0, 1} == {data.stage for data in ours}
    assert frame["items"].to_list() == [list(data.items) for data in ours]


def toml(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", PROTOCOLS, ids=str)
@pytest.mark.parametrize("population", [Population(), CROWDED], ids=["plain", "crowded"])
def test_answers_given_all_at_once_are_those_given_one_by_one(protocol, population):
    items = make_items(30)
    config = make_config(protocol)
    at_once = simulate_study(config, items, make_annotators(12, items, population=population), np.random.default_rng(2))
    people = make_annotators(12, items, population=population)
    tasks, asking = at_once.stages[0], config.stages[0].protocol
    for number, (annotator, ids) in enumerate(zip(tasks.annotators, tasks.items, strict=True)):
        answer = people.answer(annotator, asking, ids)
        assert answer == at_once.answer(0, number)
        asking.validate(ids, answer)


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=str)
def test_observations_all_at_once_are_those_of_the_protocol(protocol):
    """The columns are built without `Protocol.observations`, which stays the only place that defines them."""
    from steelyard.study.observing import collect

    items = make_items(30)
    config = make_config(protocol)
    study = simulate_study(config, items, make_annotators(12, items, population=CROWDED), np.random.default_rng(2))
    at_once = study.observations()
    kind = config.stages[0].protocol.kinds[0]
    plain = collect(kind, study.judgments(0), {config.stages[0].name: config.stages[0].protocol}, study.index)
    assert set(at_once) == set(plain)
    for criterion in plain:
        assert len(plain[criterion]) > 0
        assert same(at_once[criterion], plain[criterion])


def test_the_first_judgments_of_a_study_are_a_smaller_study():
    items = make_items(20)
    long = simulate_study(
        make_config({"name": "direct"}, {"judgments": 6}), items, make_annotators(9, items), np.random.default_rng(3)
    )
    short = simulate_study(
        make_config({"name": "direct"}, {"judgments": 4}), items, make_annotators(9, items), np.random.default_rng(3)
    )
    assert len(short) == 80
    assert same(long.observations(most=80)[""], short.observations()[""])


def test_the_order_of_the_truth_does_not_change_the_answers():
    items = make_items(20)
    truth = Population().truth([item.id for item in items], np.random.default_rng(5))
    turned = {item: truth[item] for item in reversed(truth)} | {"elsewhere": 0.5}
    result = []
    for task in (truth, turned):
        people = SimulatedAnnotators(make_crowd(6, np.random.default_rng(0)), task, np.random.default_rng(1))
        study = simulate_study(make_config({"name": "scored_ranking"}), items, people, np.random.default_rng(2))
        result.append(study.observations()[""])
    assert same(*result)


def test_two_stages_of_one_protocol_are_answered_apart():
    items = make_items(10)
    stage = {"protocol": {"name": "direct"}, "design": {"judgments": 3}}
    config = make_config({}, stage=[{**stage, "name": "before"}, {**stage, "name": "after"}])
    study = simulate_study(config, items, make_annotators(6, items), np.random.default_rng(0))
    people = make_annotators(6, items)
    for number, tasks in enumerate(study.stages):
        for place, (annotator, ids) in enumerate(zip(tasks.annotators, tasks.items, strict=True)):
            answer = people.answer(annotator, config.stages[number].protocol, ids)
            assert answer == study.answer(number, place)


def test_it_reports_that_the_requested_number_was_reached():
    items = make_items(10)
    study = simulate_study(
        make_config({"name": "direct"}), items, make_annotators(12, items), np.random.default_rng(0), most=7
    )
    assert (len(study), study.complete, study.ended) == (7, False, "The requested number of judgments was reached.")


def test_other_people_can_answer_the_same_tasks():
    items = make_items(20)
    first = simulate_study(
        make_config({"name": "best_worst"}), items, make_annotators(9, items), np.random.default_rng(3)
    )
    again = first.answered_by(make_annotators(9, items, seed=1))
    ours, theirs = first.observations()[""], again.observations()[""]
    assert (ours.shown == theirs.shown).all()
    assert (ours.best != theirs.best).any()
    with pytest.raises(DataError, match="names of the annotators differ"):
        first.answered_by(make_annotators(8, items))
    with pytest.raises(DataError, match="answered before"):
        first.answered_by(first.annotators)


def test_a_design_that_learns_must_be_simulated_again():
    items = make_items(12)
    config = make_config({"name": "scored_ranking"}, {"name": "match_quality", "rounds": 2})
    study = simulate_study(config, items, make_annotators(5, items), np.random.default_rng(0))
    assert study.learns
    with pytest.raises(ConfigError, match="Simulate the study again"):
        study.answered_by(make_annotators(5, items, seed=1))


def test_people_stop_at_their_quota_and_too_few_people_are_told():
    items = make_items(10)
    limited = make_config({"name": "direct"}, {"judgments": 5}, annotators={"max_tasks": 3})
    study = simulate_study(limited, items, make_annotators(4, items), np.random.default_rng(0))
    assert len(study) == 12
    assert not study.complete
    few = simulate_study(
        make_config({"name": "direct"}, {"judgments": 5}), items, make_annotators(3, items), np.random.default_rng(0)
    )
    assert (len(few), few.complete) == (30, False)
    assert "every item" in few.ended


def test_stages_in_sequence_reach_people_who_had_to_wait():
    items = make_items(6)
    config = make_config(
        {},
        stage=[
            {"protocol": {"name": "direct"}, "design": {"judgments": 2}},
            {"protocol": {"name": "pairwise"}, "design": {"judgments": 2}},
        ],
    )
    study = simulate_study(config, items, make_annotators(5, items), np.random.default_rng(0))
    assert study.complete
    assert [len(stage.items) for stage in study.stages] == [12, 6]


def test_threads_share_the_people_and_over_assign_nothing(make_study):
    folder = make_study(design="judgments = 4", items=12)
    truth = {f"w{number}": number / 12 for number in range(12)}
    with Study.open(folder) as study:
        count = answer_study_with_crowd(
            study, make_crowd(10, np.random.default_rng(0)), truth, np.random.default_rng(0), threads=4
        )
        frame = study.judgments()
    assert count == frame.height == 48
    assert frame["seconds"].is_not_null().all()
    assert set(frame["items"].explode().value_counts()["count"]) == {4}


def test_a_failure_in_a_thread_is_not_lost(make_study):
    folder = make_study(items=4)
    people = SimulatedAnnotators(
        [SimulatedAnnotator("a"), SimulatedAnnotator("b")], {"w0": 0.5}, np.random.default_rng(0)
    )
    with Study.open(folder) as study, pytest.raises(Exception, match="unknown id"):
        answer_study(study, people, np.random.default_rng(0), threads=2)
