"""The log alone is the study."""

from __future__ import annotations

import json

import numpy as np
import pytest
from msgspec import structs

from steelyard import Study
from steelyard.errors import DataError, StoreError
from steelyard.simulate import answer_study_with_crowd, make_crowd
from steelyard.study import differing_picks, read_log, rebuild, write_log

# A handful of judgments leaves items undefeated; the models say so.
pytestmark = pytest.mark.filterwarnings("ignore::steelyard.errors.SteelyardWarning")

PROTOCOLS = {
    "direct": 'name = "direct"',
    "likert": 'name = "likert"\ncriteria = { adequacy = {}, fluency = {} }',
    "choice": 'name = "choice"\nlabels = ["yes", "no"]',
    "pairwise": 'name = "pairwise"',
    "best_worst": 'name = "best_worst"',
    "scored_ranking": 'name = "scored_ranking"',
    "ranking": 'name = "ranking"',
}


def lively(folder, database=None):
    """A study in which everything that can happen has happened."""
    study = Study.open(folder, database=database)
    rng = np.random.default_rng(5)
    truth = {item.id: float(rng.random()) for item in study.items}
    crowd = make_crowd(6, rng)
    answer_study_with_crowd(study, crowd, truth, rng, most=15)
    study.skip(study.ask("skipper"), "cannot judge")
    study.flag(study.ask("flagger"), "odd")
    answer_study_with_crowd(study, crowd, truth, rng, most=15)
    first, last = study.judgments()["judgment_id"][0], study.judgments()
    study.revise(first, json.loads(last["answer"][0]))
    return study


@pytest.mark.slow
@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_log_alone_rebuilds_the_same_scores_byte_for_byte(make_study, tmp_path, name):
    with lively(make_study(PROTOCOLS[name], items=12)) as study:
        write_log(study, tmp_path / "log.jsonl", real_ids=True)
        scores, judgments, status = study.scores(), study.judgments(), study.status()
    database = f"sqlite:///{tmp_path / 'again.db'}"
    with rebuild(read_log(tmp_path / "log.jsonl"), tmp_path / "elsewhere", database) as again:
        assert again.scores().write_csv().encode() == scores.write_csv().encode()
        assert again.judgments().equals(judgments)
        assert again.status() == status
        write_log(again, tmp_path / "again.jsonl", real_ids=True)
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "log.jsonl").read_bytes()


def test_a_log_moves_between_engines(make_study, tmp_path, postgres_url):
    with lively(make_study(PROTOCOLS["scored_ranking"], items=12)) as study:
        scores = study.scores()
        with rebuild(study.events(), tmp_path, postgres_url) as again:
            assert again.scores().write_csv() == scores.write_csv()


@pytest.mark.slow
def test_open_tasks_survive_a_rebuild(make_study, tmp_path):
    with lively(make_study(items=12)) as study:
        task = study.ask("flagger")
        with rebuild(study.events(), tmp_path, f"sqlite:///{tmp_path / 'again.db'}") as again:
            assert again.ask("flagger") == task


@pytest.mark.slow
@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_pick_replays_to_the_same_task(make_study, name):
    with lively(make_study(PROTOCOLS[name], items=12)) as study:
        assert differing_picks(study.events()) == []


def test_a_pick_that_no_design_would_make_is_found(make_study):
    with lively(make_study(items=12)) as study:
        events = list(study.events())
    place = next(n for n, event in enumerate(events) if event.kind == "picked")
    item_ids = events[place].data.items
    other = next(item.id for item in events[0].data.items if item.id not in item_ids)
    events[place] = structs.replace(events[place], data=structs.replace(events[place].data, items=(other,)))
    assert events[place].seq in differing_picks(events)


def test_a_pick_records_how_it_was_made(make_study):
    with Study.open(make_study(design="judgments = 4", items=8, extra="seed = 17")) as study:
        study.ask("ann")
        before, pick = list(study.events())[-2:]
    assert pick.kind == "picked"
    assert {key: getattr(pick.data, key) for key in ("design", "settings", "seed", "round", "weight", "state")} == {
        "design": "per_item",
        "settings": {"judgments": 4, "document": "", "hold_minutes": 30.0},
        "seed": 17,
        "round": 0,
        "weight": 1.0,
        "state": before.digest,
    }
    # One of eight items, none of them asked before.
    assert pick.data.propensity == pytest.approx(1 / 8)


def test_another_seed_asks_in_another_order(make_study):
    orders = []
    for number, seed in enumerate((1, 2)):
        with Study.open(make_study(items=30, extra=f"seed = {seed}", name=f"s{number}")) as study:
            orders.append([study.ask(f"a{n}").item_ids for n in range(10)])
    assert orders[0] != orders[1]


@pytest.mark.slow
def test_an_altered_log_is_refused_whole(make_study, tmp_path):
    with lively(make_study(items=12)) as study:
        write_log(study, tmp_path / "log.jsonl", real_ids=True)
    lines = (tmp_path / "log.jsonl").read_text().splitlines()
    place = next(n for n, line in enumerate(lines) if '"kind":"judgment"' in line)
    event = json.loads(lines[place])
    event["data"]["answer"] = {event["data"]["items"][0]: 99}
    lines[place] = json.dumps(event)
    (tmp_path / "log.jsonl").write_text("\n".join(lines))
    database = f"sqlite:///{tmp_path / 'again.db'}"
    with pytest.raises(StoreError, match=f"altered at or before event {event['seq']}"):
        rebuild(read_log(tmp_path / "log.jsonl"), tmp_path, database)
    with lively(make_study(items=12, name="other")) as study, rebuild(study.events(), tmp_path, database) as again:
        assert again.status() == study.status()


def test_a_line_that_is_no_event_is_named(tmp_path):
    (tmp_path / "log.jsonl").write_text('{"seq": 1}\n')
    with pytest.raises(DataError, match=r"log\.jsonl line 1"):
        list(read_log(tmp_path / "log.jsonl"))
