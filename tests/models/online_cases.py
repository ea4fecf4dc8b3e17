"""Small comparisons to feed models with, by hand and by hypothesis."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from steelyard.errors import SteelyardWarning
from steelyard.models.fit import Fit, Model
from steelyard.observations import UNKNOWN, Comparisons, Index, Observations

Row = tuple[str, str, int]


def comparisons_of(
    rows: Sequence[Row],
    *,
    items: Sequence[str] | None = None,
    annotator: Sequence[str] | None = None,
    task: Sequence[str] | None = None,
) -> Comparisons:
    """Build comparisons from (left, right, outcome), with annotators and tasks by name."""
    index = Index(items if items is not None else sorted({name for row in rows for name in row[:2]}))
    people, tasks = Index(sorted(set(annotator or ()))), Index(sorted(set(task or ())))
    nobody = np.full(len(rows), UNKNOWN, np.int32)
    return Comparisons(
        items=index,
        annotators=people,
        tasks=tasks,
        annotator=nobody if annotator is None else people.codes(list(annotator)),
        task=nobody if task is None else tasks.codes(list(task)),
        left=index.codes([row[0] for row in rows]),
        right=index.codes([row[1] for row in rows]),
        outcome=np.array([row[2] for row in rows], np.int8),
    )


def random_comparisons(n: int, items: int, seed: int, *, ties: float = 0.2, annotators: int = 0) -> Comparisons:
    """Draw comparisons of Bradley–Terry items."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=items)
    left = rng.integers(0, items, n)
    right = (left + rng.integers(1, items, n)) % items
    wins = np.where(rng.random(n) < 1 / (1 + np.exp(theta[right] - theta[left])), 1, -1)
    return Comparisons(
        items=Index(f"i{i}" for i in range(items)),
        annotators=Index(f"w{a}" for a in range(annotators)),
        annotator=rng.integers(0, annotators, n).astype(np.int32) if annotators else np.full(n, UNKNOWN, np.int32),
        left=left.astype(np.int32),
        right=right.astype(np.int32),
        outcome=np.where(rng.random(n) < ties, 0, wins).astype(np.int8),
    )


@st.composite
def some_comparisons(draw: st.DrawFn, *, with_tasks: bool | None = None) -> Comparisons:
    """Any few comparisons of up to six items, with or without tasks that interleave."""
    n_items = draw(st.integers(2, 6))
    pair = st.tuples(st.integers(0, n_items - 1), st.integers(1, n_items - 1), st.integers(-1, 1), st.integers(0, 4))
    rows = draw(st.lists(pair, min_size=1, max_size=25))
    tasks = draw(st.booleans()) if with_tasks is None else with_tasks
    left = np.array([row[0] for row in rows], np.int32)
    shift = np.array([row[1] for row in rows], np.int32)
    return Comparisons(
        items=Index(f"i{i}" for i in range(n_items)),
        tasks=Index(f"t{t}" for t in range(5)),
        task=np.array([row[3] if tasks else UNKNOWN for row in rows], np.int32),
        left=left,
        right=((left + shift) % n_items).astype(np.int32),
        outcome=np.array([row[2] for row in rows], np.int8),
    )


def batches_of(comparisons: Comparisons) -> list[list[tuple[int, int, int]]]:
    """Cut comparisons into mini-batches, the plain way: by task, in the order in which tasks first come."""
    pairs_by_task: dict[int, list[tuple[int, int, int]]] = {}
    for row in range(len(comparisons)):
        key = int(comparisons.task[row]) if comparisons.knows_tasks else row
        pairs_by_task.setdefault(key, []).append(
            (int(comparisons.left[row]), int(comparisons.right[row]), int(comparisons.outcome[row]))
        )
    return list(pairs_by_task.values())


def relabelled(comparisons: Comparisons, order: Sequence[int]) -> Comparisons:
    """Give item i the code order[i], and its name with it."""
    code = np.asarray(order, np.int32)
    names = [""] * len(code)
    for old, new in enumerate(code):
        names[new] = comparisons.items[old]
    return Comparisons(
        items=Index(names),
        annotators=comparisons.annotators,
        tasks=comparisons.tasks,
        annotator=comparisons.annotator,
        task=comparisons.task,
        left=code[comparisons.left],
        right=code[comparisons.right],
        outcome=comparisons.outcome,
    )


def quiet_fit(model: Model, observations: Observations) -> Fit:
    """Fit without the warnings that small examples bring on, such as undefeated items."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SteelyardWarning)
        return model.fit(observations)


def check_intervals(fit: Fit) -> None:
    """Assert that every number is finite and every interval holds its score and rank, as the table promises."""
    table = fit.scores.drop_nulls("score")
    for column in ("score", "unit_score"):
        assert np.isfinite(table[column].to_numpy()).all()
    assert (table["unit_score"] >= 0).all()
    assert (table["unit_score"] <= 1).all()
    sure = table.drop_nulls("lower")
    assert np.isfinite(sure.select("sd", "lower", "upper").to_numpy()).all()
    assert (sure["lower"] <= sure["score"]).all()
    assert (sure["score"] <= sure["upper"]).all()
    ranked = sure.drop_nulls("rank_lower")
    assert (ranked["rank_lower"] <= ranked["rank"]).all()
    assert (ranked["rank"] <= ranked["rank_upper"]).all()
    assert table.filter(table["lower"].is_null())["interval"].is_null().all()
