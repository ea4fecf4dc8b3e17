"""match_quality through real studies: people in any order, threads, replay, rebuilding."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from scipy import stats

from steelyard import Study
from steelyard.simulate import answer_study_with_crowd, make_crowd
from steelyard.study import differing_picks, read_log, rebuild, write_log
from tests.study.crowds import true_scores

# A handful of judgments leaves items undefeated; the models say so.
pytestmark = pytest.mark.filterwarnings("ignore::steelyard.errors.SteelyardWarning")

SCORED = 'name = "scored_ranking"\nsize = 5'
DESIGNS = {
    "rounds": (SCORED, "rounds = 5", 30),
    "continuous": (SCORED, 'mode = "continuous"\nrounds = 5', 30),
    "waiting": (SCORED, 'when_waiting = "wait"\nrounds = 4', 24),
    "pairwise": ('name = "pairwise"', 'model = "trueskill"\nrounds = 2', 30),
    "best_worst": ('name = "best_worst"', 'model = "bounded_ranking"\nmode = "continuous"\nrounds = 4', 28),
    "direct": ('name = "direct"', "rounds = 2", 60),
}


def open_study(make_study, kind: str = "rounds", extra: str = "") -> tuple[Study, int]:
    protocol, design, tasks = DESIGNS[kind]
    folder = make_study(protocol, f'name = "match_quality"\n{design}\n{extra}', items=30)
    return Study.open(folder), tasks


@pytest.mark.slow
@pytest.mark.parametrize("kind", DESIGNS)
def test_a_study_runs_to_its_end_replays_and_rebuilds(make_study, tmp_path, kind):
    study, tasks = open_study(make_study, kind)
    with study:
        rng = np.random.default_rng(2)
        assert answer_study_with_crowd(study, make_crowd(8, rng), true_scores(study), rng) == tasks
        status = study.status()
        assert (status.stages[0].done, status.stages[0].total, status.stages[0].leased) == (tasks, tasks, 0)
        assert differing_picks(study.events()) == []
        write_log(study, tmp_path / "log.jsonl", real_ids=True)
        scores = study.scores()
    with rebuild(read_log(tmp_path / "log.jsonl"), tmp_path, f"sqlite:///{tmp_path / 'again.db'}") as again:
        assert again.scores().write_csv() == scores.write_csv()
        assert again.status() == status


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["rounds", "continuous", "pairwise"])
def test_skips_lapses_revisions_and_exclusions_replay_too(make_study, kind):
    study, tasks = open_study(make_study, kind)
    with study:
        rng = np.random.default_rng(3)
        crowd, truth = make_crowd(5, rng), true_scores(study)
        answer_study_with_crowd(study, crowd, truth, rng, most=8)
        study.skip(study.ask("skipper"), "cannot judge")
        given_up = study.ask("sleeper")
        study.release(given_up)
        answer_study_with_crowd(study, crowd, truth, rng, most=4)
        rows = study.judgments()
        study.revise(rows["judgment_id"][0], _other_answer(study, rows["items"][0].to_list()))
        study.annotators.exclude(crowd[0].name, "random answers")
        answer_study_with_crowd(study, crowd[1:], truth, rng, most=4)
        study.annotators.readmit(crowd[0].name)
        answer_study_with_crowd(study, crowd, truth, rng)
        assert differing_picks(study.events()) == []
        status = study.status().stages[0]
        assert status.leased == 0
        assert status.done == status.total == tasks


def _other_answer(study: Study, items: list[str]) -> object:
    protocol = study.config.stages[0].protocol
    return {"winner": items[0]} if protocol.name == "pairwise" else dict.fromkeys(items, 50)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["rounds", "continuous"])
def test_two_threads_on_one_study_lose_nothing_and_ask_nothing_twice(make_study, kind):
    study, tasks = open_study(make_study, kind)
    with study:
        rng = np.random.default_rng(4)
        assert answer_study_with_crowd(study, make_crowd(8, rng), true_scores(study), rng, threads=2) == tasks
        _check(study, tasks)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["rounds", "continuous"])
def test_two_servers_of_one_database_keep_the_same_plan(make_study, kind):
    """Each folds the other's events; picks that a repeat or a common task takes the place of come to nothing."""
    study, tasks = open_study(
        make_study, kind, extra="[quality]\nrepeat_rate = 0.1\nrepeat_after = 2\noverlap_rate = 0.1"
    )
    failures: list[BaseException] = []

    def serve(number: int) -> None:
        try:
            with Study.open(study.folder) as own:
                rng = np.random.default_rng(number)
                crowd = make_crowd(8, np.random.default_rng(0))[number::2]
                answer_study_with_crowd(own, crowd, true_scores(own), rng)
        except BaseException as error:
            failures.append(error)

    with study:
        servers = [threading.Thread(target=serve, args=(number,)) for number in range(2)]
        for server in servers:
            server.start()
        for server in servers:
            server.join()
        assert failures == []
        assert differing_picks(study.events()) == []
        status = study.status().stages[0]
        assert (status.done, status.total, status.leased) == (tasks, tasks, 0)


def _check(study: Study, tasks: int) -> None:
    assert differing_picks(study.events()) == []
    frame = study.judgments()
    assert frame.height == tasks
    assignments = [(row["annotator"], tuple(sorted(row["items"]))) for row in frame.iter_rows(named=True)]
    assert len(set(assignments)) == len(assignments)


def test_groups_are_judged_for_one_source_at_a_time(make_study):
    folder = make_study(SCORED, 'name = "match_quality"\nby = "group"\nrounds = 10\ntasks_per_round = 3')
    rows = [f"s{s}-{c},output {s} {c},sys{s},source {c}" for s in range(7) for c in range(6)]
    (folder / "items.csv").write_text("\n".join(["id,text,group,context", *rows]) + "\n", encoding="utf-8")
    with Study.open(folder) as study:
        rng = np.random.default_rng(5)
        truth = {item.id: int(item.id[1]) / 7 for item in study.items}
        assert answer_study_with_crowd(study, make_crowd(6, rng), truth, rng) == 30
        assert differing_picks(study.events()) == []
        for items in study.judgments()["items"]:
            assert len({name.split("-")[1] for name in items}) == 1
            assert len({name.split("-")[0] for name in items}) == 5
        scores = study.scores(by="group")
        value = [int(name.removeprefix("sys")) for name in scores["item"]]
        assert stats.spearmanr(scores["score"], value).statistic > 0.8


def test_items_added_to_the_file_join_a_running_study(make_study):
    study, _ = open_study(make_study)
    with study:
        rng = np.random.default_rng(6)
        answer_study_with_crowd(study, make_crowd(4, rng), true_scores(study), rng, most=10)
    with (study.folder / "items.csv").open("a", encoding="utf-8") as file:
        file.write("".join(f"new{n},new word {n}\n" for n in range(5)))
    with Study.open(study.folder) as study:
        rng = np.random.default_rng(7)
        assert answer_study_with_crowd(study, make_crowd(4, rng), true_scores(study), rng) == 5 * 7 - 10
        assert differing_picks(study.events()) == []
        judged = {item for items in study.judgments()["items"] for item in items}
        assert {f"new{n}" for n in range(5)} <= judged
