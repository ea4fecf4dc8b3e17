"""Many simulated annotators at once, in threads and in processes, and the invariants that must hold afterwards."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import numpy as np

from steelyard import Study
from steelyard.simulate import answer_for
from steelyard.study import differing_picks
from steelyard.study.events import Event
from tests.sizes import FULL

SETUPS = {
    "per_item": ('name = "direct"', 'name = "per_item"\njudgments = {each}'),
    "random_tuples": ('name = "scored_ranking"\nsize = 3', 'name = "random_tuples"\njudgments = {each}'),
    "balanced_tuples": ('name = "best_worst"', 'name = "balanced_tuples"\nfactor = 2\nannotators_per_task = {each}'),
    "all_pairs": ('name = "pairwise"', 'name = "all_pairs"\nannotators_per_task = 1'),
    "match_quality": ('name = "scored_ranking"\nsize = 3', 'name = "match_quality"\nrounds = {each}'),
    "adaptive": ('name = "pairwise"', 'name = "adaptive"\njudgments = {each}'),
    "propagation": ('name = "direct"', 'name = "propagation"\nbelow = 50\nannotators_per_task = {each}'),
    "tournament": ('name = "pairwise"\nties = true', 'name = "tournament"\nannotators_per_source = 1'),
}
"""Protocol and settings for each design; `each` is the number of judgments per item, or annotators per task."""


def write_items(folder: Path, design: str, count: int) -> None:
    """Write items; for a tournament, five versions of each source."""
    if design == "tournament":
        rows = [f"s{n // 5}-{n % 5},version {n % 5} of {n // 5},source {n // 5}" for n in range(count)]
        text = "id,text,context\n" + "\n".join(rows)
    else:
        text = "id,text\n" + "\n".join(f"w{n},word {n}" for n in range(count))
    (folder / "items.csv").write_text(text + "\n")


def true_scores(study: Study) -> dict[str, float]:
    """Return a true score between 0 and 1 for each item, the same at every call."""
    values = np.random.default_rng(1).random(len(study.items))
    return {item.id: float(value) for item, value in zip(study.items, values, strict=True)}


def answer_as(study: Study, name: str, most: int, seed: int) -> list[str]:
    """Answer as one annotator, with occasional skips and releases; return the ids of acknowledged judgments."""
    rng = np.random.default_rng([seed, *name.encode()])
    answers = []
    for _ in range(most):
        task = study.ask(name)
        if task is None:
            break
        draw = rng.random()
        if draw < 0.05:
            study.skip(task, "cannot say")
        elif draw < 0.1:
            study.release(task)
        else:
            values = dict(zip(task.item_ids, rng.random(len(task.items)).tolist(), strict=True))
            answers.append(study.tell(task, answer_for(study.core.stage_of(task).protocol, values)).judgment_id)
    return answers


def in_threads(folder: Path, database: str, names: Sequence[str], most: int, threads: int = 16) -> list[str]:
    """Let all annotators answer concurrently in threads; return the ids of acknowledged judgments."""
    with Study.open(folder, database=database) as study, ThreadPoolExecutor(threads) as pool:
        done = pool.map(lambda name: answer_as(study, name, most, seed=1), names)
        return [judgment for judgments in done for judgment in judgments]


def _process(arguments: tuple[Path, str, Sequence[str], int]) -> list[str]:
    return in_threads(*arguments, threads=8)


def in_processes(
    folder: Path, database: str, names: Sequence[str], most: int, processes: int = 4 if FULL else 2
) -> list[str]:
    """Let all annotators answer concurrently in several processes; return the ids of acknowledged judgments."""
    with Study.open(folder, database=database):
        pass
    parts = [(folder, database, names[part::processes], most) for part in range(processes)]
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        return [judgment for judgments in pool.map(_process, parts) for judgment in judgments]


def check(study: Study, judgment_ids: Iterable[str]) -> None:
    """Compare the study's log with the acknowledged judgments and the limits of its design."""
    events = list(study.events())
    counted = Counter(event.judgment_id for event in events if event.kind == "judgment")
    acknowledged = list(judgment_ids)
    assert len(acknowledged) == len(set(acknowledged))
    assert set(counted) == set(acknowledged), "an answer was lost, or one that nobody gave is there"
    assert set(counted.values()) <= {1}, "an answer is there twice"
    check_shown_once(events)
    check_places(study, events)
    assert differing_picks(events) == []


def check_shown_once(events: list[Event]) -> None:
    """No annotator gets the same set of items twice, unless they released it."""
    assignments: Counter[tuple[object, ...]] = Counter()
    key_of = {}
    for event in events:
        if event.kind == "picked":
            key = (event.annotator, event.data.stage, tuple(sorted(event.data.items)))
            key_of[event.judgment_id] = key
            assignments[key] += 1
            assert assignments[key] == 1, f"{key} was shown twice"
        elif event.kind == "expired":
            assignments[key_of[event.judgment_id]] -= 1


def check_places(study: Study, events: list[Event]) -> None:
    """No planned task is leased to, or answered by, more annotators than its capacity."""
    places: Counter[tuple[object, ...]] = Counter()
    slot_of = {}
    for event in events:
        if event.kind == "picked" and event.data.slot is not None:
            slot_of[event.judgment_id] = slot = (event.data.stage, event.data.slot)
            places[slot] += 1
            assert places[slot] <= study.config.stages[slot[0]].design.capacity, f"slot {slot} is over-assigned"
        elif event.kind in {"expired", "skip"} and event.judgment_id in slot_of:
            places[slot_of[event.judgment_id]] -= 1


MODES = {"threads": in_threads, "processes": in_processes}
EVERYTHING = list(product(SETUPS, MODES))
