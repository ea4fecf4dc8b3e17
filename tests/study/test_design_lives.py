"""Random lives of studies with planned designs: nothing is lost, asked twice, or replayed otherwise."""

from __future__ import annotations

import pytest

from steelyard.designs import NoTask
from tests.study.test_random_lives import STEPS, Life

pytestmark = pytest.mark.filterwarnings("ignore::steelyard.errors.SteelyardWarning")

SETUPS = {
    "tuples": ('name = "best_worst"', 'name = "balanced_tuples"\nfactor = 1.5\nannotators_per_task = 2', 9),
    "pairs": ('name = "pairwise"', 'name = "all_pairs"\nannotators_per_task = 2', 5),
    "tournament": ('name = "pairwise"', 'name = "tournament"\nannotators_per_source = 2\nfollow_up = true', 6),
}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("setup", SETUPS)
def test_whatever_happens_every_answer_is_there_once_and_the_log_tells_it_all(make_study, tmp_path, setup, seed):
    protocol, design, items = SETUPS[setup]
    life = Life(make_study(protocol, design, items=items), tmp_path, seed)
    for _ in range(90):
        STEPS[int(life.rng.integers(len(STEPS)))](life)
    life.check()
    life.study.close()


@pytest.mark.slow
@pytest.mark.parametrize("setup", SETUPS)
def test_people_enough_bring_it_to_its_end(make_study, tmp_path, setup):
    protocol, design, items = SETUPS[setup]
    life = Life(make_study(protocol, design, items=items), tmp_path, 7)
    for _ in range(60):
        STEPS[int(life.rng.integers(len(STEPS)))](life)
    life.now += 60 * 60 * 10**6
    for person in [*(f"ann-{n}" for n in range(3)), *(f"new-{n}" for n in range(30))] * 2:
        while (task := life.study.ask(person)) is not None:
            life.answers[task.judgment_id] = life.study.tell(task, life.answer(task)).answer
    (stage,) = life.study.status().stages
    assert life.study.offer("newcomer").complete
    assert stage.done == stage.total
    assert stage.leased == 0
    life.check()
    life.study.close()


CHANGES = [
    ('name = "best_worst"', 'name = "balanced_tuples"\nfactor = 1', 'name = "balanced_tuples"\nfactor = 2'),
    (
        'name = "best_worst"',
        'name = "balanced_tuples"\nannotators_per_task = 3',
        'name = "balanced_tuples"\nannotators_per_task = 1',
    ),
    (
        'name = "best_worst"',
        'name = "random_tuples"\njudgments = 4',
        'name = "balanced_tuples"\nannotators_per_task = 1',
    ),
    ('name = "pairwise"', 'name = "all_pairs"', 'name = "tournament"'),
    ('name = "pairwise"', 'name = "tournament"', 'name = "all_pairs"'),
    ('name = "pairwise"', 'name = "tournament"', 'name = "tournament"\nannotators_per_source = 2\nfollow_up = true'),
]


@pytest.mark.slow
@pytest.mark.parametrize(("protocol", "before", "after"), CHANGES)
def test_a_design_may_change_while_the_study_runs(make_study, tmp_path, protocol, before, after):
    life = Life(make_study(protocol, before, items=9), tmp_path, 5)
    for _ in range(50):
        STEPS[int(life.rng.integers(len(STEPS)))](life)
    path = life.folder / "study.toml"
    path.write_text(path.read_text().replace(before, after))
    life.reopen()
    for _ in range(50):
        STEPS[int(life.rng.integers(len(STEPS)))](life)
    life.now += 60 * 60 * 10**6
    for person in [*(f"ann-{n}" for n in range(3)), *(f"new-{n}" for n in range(30))] * 2:
        while (task := life.study.ask(person)) is not None:
            life.answers[task.judgment_id] = life.study.tell(task, life.answer(task)).answer
    nothing = life.study.offer("newcomer")
    assert isinstance(nothing, NoTask)
    assert nothing.complete
    life.check()
    life.study.close()
