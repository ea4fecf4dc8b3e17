"""Checkpoints change nothing but the time it takes to open a study."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter, defaultdict, deque
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from steelyard import Study, registry
from steelyard.designs import saved_state
from steelyard.designs.progress import ShownSets
from steelyard.study import checkpoints
from steelyard.study import events as ev
from steelyard.study.checkpoints import FOLDER, Checkpoints
from steelyard.study.forgetting import forget
from steelyard.study.state import StudyState
from tests.study.test_random_lives import STEPS, Life

pytestmark = pytest.mark.filterwarnings("ignore::steelyard.errors.SteelyardWarning")

SETUPS = {
    "per_item": ('name = "direct"', 'name = "per_item"\njudgments = 3', 5),
    "pages": ('name = "likert"\nitems_per_page = 3', 'name = "per_item"\njudgments = 2', 5),
    "random_tuples": ('name = "pairwise"', 'name = "random_tuples"\njudgments = 4\nannotators_per_task = 2', 6),
    "balanced_tuples": ('name = "best_worst"', 'name = "balanced_tuples"\nfactor = 1.5\nannotators_per_task = 2', 9),
    "all_pairs": ('name = "pairwise"', 'name = "all_pairs"\nannotators_per_task = 2', 5),
    "tournament": ('name = "pairwise"', 'name = "tournament"\nannotators_per_source = 2\nfollow_up = true', 6),
    "match_quality": ('name = "pairwise"', 'name = "match_quality"\nmodel = "trueskill"\nrounds = 6', 8),
    "match_quality online": (
        'name = "best_worst"',
        'name = "match_quality"\nmodel = "bounded_ranking"\nmode = "continuous"',
        9,
    ),
    "adaptive": ('name = "pairwise"', 'name = "adaptive"\njudgments = 6', 6),
    "adaptive ratings": ('name = "direct"', 'name = "adaptive"\njudgments = 5', 6),
    "propagation": ('name = "direct"', 'name = "propagation"\nbelow = 50\nannotators_per_task = 2', 6),
}


def plain(value: Any, path: tuple[int, ...] = ()) -> Any:
    """Return what a state consists of, to compare two of them; a cycle ends where it begins."""
    if id(value) in path:
        return "…"
    path = (*path, id(value))
    if isinstance(value, dict):
        result: Any = [(plain(key, path), plain(one, path)) for key, one in value.items()]
    elif isinstance(value, set | frozenset):
        result = sorted((plain(one, path) for one in value), key=repr)
    elif isinstance(value, list | tuple):
        result = [plain(one, path) for one in value]
    elif isinstance(value, ev.ConfigChanged):
        # In the order of study.toml in the process that wrote it, sorted when it is read.
        result = value.text()
    elif isinstance(value, saved_state.SavedRecords):
        result = {name: plain(value[name], path) for name in sorted(value)}
    elif isinstance(value, ShownSets):
        result = plain(value.__getstate__(), path)
    elif type(value).__module__.startswith("steelyard"):
        slots = [name for one in type(value).__mro__ for name in getattr(one, "__slots__", ())]
        names = sorted({*getattr(value, "__dict__", {}), *slots})
        result = type(value).__name__, {name: plain(getattr(value, name, None), path) for name in names}
    else:
        result = (str(value.dtype), repr(value.tolist())) if isinstance(value, np.ndarray) else repr(value)
    return result


def differences(one: Any, other: Any, where: str = "") -> list[str]:
    """Name the parts in which two states differ."""
    if one == other:
        return []
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return [text for key in one for text in differences(one[key], other[key], f"{where}.{key}")]
    if isinstance(one, list | tuple) and isinstance(other, list | tuple) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return [text for place, (a, b) in pairs for text in differences(a, b, f"{where}[{place}]")]
    return [f"{where}: {one!r:.300} != {other!r:.300}"]


def folded(study: Study) -> StudyState:
    """Fold the whole log, without any checkpoint."""
    state = StudyState(study.config.stages)
    for event in study.events():
        state.apply(event)
    state.config_fixed_at = study.core.log._state.config_fixed_at
    return state


class SavedLife(Life):
    """A life in which every opening continues from a checkpoint."""

    restored = 0

    def reopen(self) -> None:
        with self.study._log.read():
            self.study._log.save_checkpoint(least=1)
        super().reopen()
        with self.study._log.read():
            self.restored += self.study._log._checkpoint_seq > 0


def test_every_design_is_tested():
    assert {design.split('"')[1] for _, design, _ in SETUPS.values()} == set(registry.names("designs"))


@pytest.mark.slow
@pytest.mark.parametrize("setup", SETUPS)
def test_a_restored_state_equals_the_folded_one_and_makes_the_same_picks(make_study, tmp_path, setup):
    protocol, design, items = SETUPS[setup]
    life = SavedLife(make_study(protocol, design, items=items), tmp_path, 11)
    for number in range(100):
        STEPS[int(life.rng.integers(len(STEPS)))](life)
        if number % 25 == 24:
            life.reopen()
    assert life.restored >= 4
    # A state that was folded only, saved and restored. The one that made the picks has caches besides.
    state = folded(life.study)
    saved = saved_state.load(saved_state.save(state.to_checkpoint()))
    restored = StudyState.of_checkpoint(state.stages, saved, state.config_fixed_at)
    assert differences(plain(restored), plain(state)) == []
    # Every pick is made again from a state that was folded without checkpoints.
    life.check()
    life.study.close()


@pytest.fixture
def saved_study(make_study) -> Path:
    """A study with some answers and a checkpoint."""
    folder: Path = make_study('name = "pairwise"', 'name = "random_tuples"\njudgments = 4\nannotators_per_task = 2')
    with Study.open(folder) as study:
        for _ in range(6):
            for name in ("ann", "bea"):
                task = study.ask(name)
                assert task is not None
                study.tell(task, {"winner": task.item_ids[0]})
    # From a state that made no picks: those leave caches, which have no other effect.
    with Study.open(folder) as study, study._log.read():
        assert study._log.save_checkpoint(least=1)
    return folder


def is_restored(folder: Path) -> bool:
    """Open a study; compare its state with the folded log; return whether it continued from a checkpoint."""
    with Study.open(folder) as study, study._log.read() as state:
        assert differences(plain(state), plain(folded(study))) == []
        return study._log._checkpoint_seq > 0


def test_a_checkpoint_is_used(saved_study):
    assert is_restored(saved_study)


@pytest.mark.parametrize("keep", [0, 10, 100, 300, 0.5, 0.99, -1])
def test_a_truncated_checkpoint_is_ignored(saved_study, keep):
    path = saved_study / FOLDER / "state"
    data = path.read_bytes()
    path.write_bytes(data[: round(keep * len(data)) if isinstance(keep, float) else keep])
    assert not is_restored(saved_study)


@pytest.mark.slow
def test_a_checkpoint_with_one_wrong_byte_is_ignored(saved_study):
    path = saved_study / FOLDER / "state"
    data = path.read_bytes()
    for place in range(0, len(data), len(data) // 60):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with Study.open(saved_study) as study, study._log.read():
            assert study._log._checkpoint_seq == 0, place


def test_a_checkpoint_of_another_study_is_ignored(saved_study, make_study):
    other = make_study(
        'name = "pairwise"', 'name = "random_tuples"\njudgments = 4\nannotators_per_task = 2', name="other"
    )
    Study.open(other).close()
    (other / FOLDER).mkdir()
    (other / FOLDER / "state").write_bytes((saved_study / FOLDER / "state").read_bytes())
    assert not is_restored(other)


def test_a_checkpoint_of_other_settings_or_other_code_is_ignored(saved_study, monkeypatch):
    config = saved_study / "study.toml"
    text = config.read_text()
    config.write_text(text.replace("judgments = 4", "judgments = 6"))
    assert not is_restored(saved_study)
    config.write_text(text)
    assert is_restored(saved_study)
    monkeypatch.setattr(checkpoints, "code_digest", lambda: "another version")
    assert not is_restored(saved_study)
    # One that is of no use does not keep a new one from being written.
    with Study.open(saved_study) as study, study._log.read():
        assert study._log.save_checkpoint(least=1)
    assert is_restored(saved_study)


def test_a_log_that_was_rewritten_has_no_checkpoint(saved_study):
    with Study.open(saved_study) as study:
        forget(study, "ann")
        assert not list((saved_study / FOLDER).iterdir())
    assert not is_restored(saved_study)


def test_a_checkpoint_cannot_run_code(tmp_path):
    names = (
        "os.system",
        "subprocess.Popen",
        "builtins.eval",
        "steelyard.study.study.Path",
        "steelyard.study.study.Study",
    )
    for name in names:
        module, _, attribute = name.rpartition(".")
        for form in (["class", module, attribute], ["object", module, attribute, []], ["own", module, attribute, {}]):
            with pytest.raises(saved_state.ForeignStateError):
                saved_state.load(msgspec.msgpack.encode(["list", [form]]))
    with pytest.raises(KeyError):
        saved_state.load(msgspec.msgpack.encode(["call", "os", "system", [f"touch {tmp_path / 'owned'}"]]))
    with pytest.raises(saved_state.ForeignStateError):
        saved_state.load(msgspec.msgpack.encode(["array", "|O", [1], bytes(8), False]))


def test_saving_keeps_shared_objects_shared_and_cycles_closed():
    shared = Counter({"a": 1})
    cycle: list[Any] = [shared, (shared, 2**70, -1.5, None)]
    cycle.append(cycle)
    values = {"cycle": cycle, "numbers": np.arange(6, dtype=np.int32).reshape(2, 3), "scalar": np.float64(2.5)}
    values |= {"times": deque([3, 1], maxlen=4), "by": defaultdict(list, {(1, "b"): [1]}), "set": {1, 2}}
    loaded = saved_state.load(saved_state.save(values))
    assert loaded["cycle"][2] is loaded["cycle"]
    assert loaded["cycle"][0] is loaded["cycle"][1][0]
    assert loaded["cycle"][1] == (shared, 2**70, -1.5, None)
    assert type(loaded["cycle"][0]) is Counter
    assert loaded["numbers"].dtype == np.int32
    assert loaded["numbers"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert type(loaded["scalar"]) is np.float64
    assert (loaded["times"], loaded["times"].maxlen) == (deque([3, 1]), 4)
    assert loaded["by"]["new"] == []
    assert loaded["by"][1, "b"] == [1]
    assert loaded["set"] == {1, 2}


def test_a_read_only_folder_is_no_obstacle(saved_study, monkeypatch):
    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError("read-only")

    monkeypatch.setattr(Checkpoints, "_replace", refuse)
    with Study.open(saved_study) as study:
        study._log.read()
        assert not study._log.save_checkpoint(least=0)
        assert study.status().judgments == 12


@pytest.mark.slow
def test_a_process_killed_while_it_writes_leaves_the_study_as_it_was(saved_study):
    """The child writes checkpoints without pause; whenever it is killed, the next opening has the same state."""
    rng = np.random.default_rng(3)
    files = Checkpoints(saved_study)
    before = (files.folder / "state").read_bytes()
    unfinished = 0
    for _ in range(8):
        child = os.fork()
        if child == 0:
            while True:
                files._replace("state", before)
                files._replace("state", before, *[b"padding " * 500] * 2000)
        time.sleep(float(rng.uniform(0.05, 0.2)))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        unfinished += len(list(files.folder.glob("*.part")))
        is_restored(saved_study)
    assert unfinished, "no kill hit a file that was being written"
