"""adaptive through real studies: people in any order, exclusions, replay, rebuilding."""

from __future__ import annotations

import numpy as np
import pytest
from polars.testing import assert_frame_equal
from scipy import stats

from steelyard import Study
from steelyard.designs.adaptive.state import AdaptiveState
from steelyard.simulate import answer_study_with_crowd, make_crowd
from steelyard.study import differing_picks, read_log, rebuild, write_log
from steelyard.study.state import StudyState
from tests.study.crowds import true_scores

# A handful of judgments leaves items undefeated; the models say so.
pytestmark = pytest.mark.filterwarnings("ignore::steelyard.errors.SteelyardWarning")

DESIGNS = {
    "pairwise": ('name = "pairwise"', "judgments = 5", 50),
    "best_worst": ('name = "best_worst"', 'judgments = 6\nobjective = "top"\ntop = 3', 30),
    "direct": ('name = "direct"', "judgments = 3", 60),
    "scored_ranking": ('name = "scored_ranking"\nsize = 4', "judgments = 6", 30),
}


def open_study(make_study, kind: str, extra: str = "") -> tuple[Study, int]:
    protocol, design, tasks = DESIGNS[kind]
    folder = make_study(protocol, f'name = "adaptive"\n{design}\n{extra}', items=20)
    return Study.open(folder), tasks


@pytest.mark.slow
@pytest.mark.parametrize("kind", DESIGNS)
def test_a_study_runs_to_its_end_replays_and_rebuilds(make_study, tmp_path, kind):
    study, tasks = open_study(
        make_study, kind, extra="[quality]\nrepeat_rate = 0.1\nrepeat_after = 2\noverlap_rate = 0.1"
    )
    with study:
        rng = np.random.default_rng(2)
        answer_study_with_crowd(study, make_crowd(8, rng), true_scores(study), rng)
        status = study.status()
        assert (status.stages[0].done, status.stages[0].total, status.stages[0].leased) == (tasks, tasks, 0)
        assert differing_picks(study.events()) == []
        write_log(study, tmp_path / "log.jsonl", real_ids=True)
        scores = study.scores()
    with rebuild(read_log(tmp_path / "log.jsonl"), tmp_path, f"sqlite:///{tmp_path / 'again.db'}") as again:
        assert_frame_equal(again.scores(), scores, check_exact=True)
        assert again.status() == status


@pytest.mark.slow
def test_skips_lapses_revisions_exclusions_and_new_items_replay_too(make_study):
    study, _ = open_study(make_study, "pairwise")
    rng = np.random.default_rng(3)
    crowd = make_crowd(5, rng)
    with study:
        truth = true_scores(study)
        answer_study_with_crowd(study, crowd, truth, rng, most=15)
        study.skip(study.ask("skipper"), "cannot judge")
        study.release(study.ask("sleeper"))
        rows = study.judgments()
        study.revise(rows["judgment_id"][0], {"winner": rows["items"][0][0]})
        study.annotators.exclude(crowd[0].name, "random answers")
        answer_study_with_crowd(study, crowd[1:], truth, rng, most=10)
        study.annotators.readmit(crowd[0].name)
    with (study.folder / "items.csv").open("a", encoding="utf-8") as file:
        file.write("".join(f"new{n},new word {n}\n" for n in range(4)))
    with Study.open(study.folder) as study:
        answer_study_with_crowd(study, crowd, true_scores(study), rng)
        assert differing_picks(study.events()) == []
        status = study.status().stages[0]
        assert (status.done, status.total, status.leased) == (60, 60, 0)
        judged = {item for items in study.judgments()["items"] for item in items}
        assert {f"new{n}" for n in range(4)} <= judged


def test_two_servers_of_one_database_ask_nothing_twice(make_study):
    study, tasks = open_study(make_study, "pairwise")
    with study, Study.open(study.folder) as other:
        rng = np.random.default_rng(4)
        truth, crowd = true_scores(study), make_crowd(8, rng)
        for turn in range(200):
            if answer_study_with_crowd((study, other)[turn % 2], crowd, truth, rng, most=3) == 0:
                break
        assert differing_picks(other.events()) == []
        assignments = [
            (row["annotator"], tuple(sorted(row["items"]))) for row in study.judgments().iter_rows(named=True)
        ]
        assert len(set(assignments)) == len(assignments) == tasks


@pytest.mark.slow
def test_answers_set_aside_no_longer_guide_the_questions(make_study):
    """A liar turns the scale upside down; without the liar's answers it is as it was."""
    study, _ = open_study(make_study, "pairwise", extra="explore = 0.0")
    with study:
        rng = np.random.default_rng(5)
        truth = true_scores(study)
        answer_study_with_crowd(study, make_crowd(4, rng), truth, rng, most=30)

        def believed() -> float:
            folded = StudyState(study.config.stages)
            for event in study.events():
                folded.apply(event)
            state = folded.progress[0].design_state
            assert isinstance(state, AdaptiveState)
            values = [truth[item.id] for item in study.items]
            return float(stats.spearmanr(state.mean, values).statistic)

        before = believed()
        for _ in range(15):
            task = study.ask("liar")
            study.tell(task, {"winner": min((item.id for item in task.items), key=truth.__getitem__)})
        assert believed() < before - 0.02
        study.annotators.exclude("liar", "lies")
        assert believed() > before - 0.05
