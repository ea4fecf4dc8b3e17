"""Crowds with a known truth for the calibrated scale: each gives observations, and the scores to be found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from steelyard.observations import Choices, Comparisons, FloatArray, Index, Mixed, Observations, Rankings, Ratings

Scene = Callable[[np.random.Generator], tuple[Observations, FloatArray]]


def _who(items: int, people: int, annotator: NDArray[np.integer]) -> dict[str, Any]:
    return {
        "items": Index([f"i{n:04d}" for n in range(items)]),
        "annotators": Index([f"w{n:03d}" for n in range(people)]),
        "annotator": annotator.astype(np.int32),
    }


def rated(
    rng: np.random.Generator,
    *,
    items: int = 100,
    people: int = 25,
    each: int = 6,
    bias: float = 0.08,
    use: float = 0.2,
    random: float = 0.0,
    steps: int = 0,
    page: float = 0.0,
) -> tuple[Ratings, FloatArray]:
    """Draw sliders, or scales of `steps` + 1 steps; the truth is what is usually answered."""
    noise, spread = 0.18, 0.25
    x = rng.normal(0.5, spread, items)
    point, slope = rng.normal(0, bias, people), rng.normal(1, use, people)
    sd = noise * np.exp(rng.normal(0, 0.25, people))
    item = np.repeat(np.arange(items), each).astype(np.int32)
    who = np.concatenate([rng.choice(people, each, replace=False) for _ in range(items)])
    task = who * 1000 + item // 5
    task = np.unique(task, return_inverse=True)[1].astype(np.int32)
    shift = rng.normal(0, page, task.max() + 1)
    answers = 0.5 + point[who] + slope[who] * (x[item] - 0.5) + shift[task] + sd[who] * rng.standard_normal(len(item))
    spammer = np.arange(people) < round(random * people)
    answers = np.clip(np.where(spammer[who], rng.random(len(item)), answers), 0, 1)
    value = np.round(answers * steps) / steps if steps else answers
    # The mean of a response cut at the ends, or of its step; the noise of a typical annotator is a bit above 0.18.
    sd_usual = float(np.sqrt(noise**2 * np.exp(0.25**2) + bias**2))
    edges = (np.arange(steps) + 0.5) / max(steps, 1)
    truth = special.ndtr((x[:, None] - edges) / sd_usual).mean(axis=1) if steps else _cut(x, sd_usual)
    shared = _who(items, people, who)
    if page:
        shared |= {"tasks": Index([f"t{n}" for n in range(len(shift))]), "task": task}
    return Ratings(item=item, value=100 * value, scale=(0.0, 100.0), **shared), 100 * truth


def _cut(x: FloatArray, sd: float) -> FloatArray:
    """Return the mean of Gaussian responses that are cut at 0 and 1."""
    u, v = x / sd, (x - 1) / sd
    gap = (np.exp(-(u**2) / 2) - np.exp(-(v**2) / 2)) / np.sqrt(2 * np.pi)
    return np.asarray(sd * (u * special.ndtr(u) - v * special.ndtr(v) + gap))


def compared(
    rng: np.random.Generator,
    *,
    items: int = 100,
    people: int = 25,
    each: int = 15,
    margin: float = 0.0,
    random: float = 0.0,
) -> tuple[Comparisons, FloatArray]:
    """Draw comparisons; differences are in units of their noise."""
    x = rng.standard_normal(items)
    slope = np.maximum(rng.normal(1, 0.25, people), 0.1)
    slope[: round(random * people)] = 0
    rows = items * each // 2
    left = rng.integers(items, size=rows)
    right = (left + rng.integers(1, items, size=rows)) % items
    who = rng.integers(people, size=rows)
    lead = slope[who] * (x[left] - x[right]) + rng.standard_normal(rows)
    outcome = np.where(np.abs(lead) < margin, 0, np.sign(lead)).astype(np.int8)
    observations = Comparisons(
        left=left.astype(np.int32), right=right.astype(np.int32), outcome=outcome, **_who(items, people, who)
    )
    return observations, x - x.mean()


def in_tuples(
    rng: np.random.Generator, *, ranked: bool, items: int = 100, people: int = 25, each: int = 8
) -> tuple[Choices | Rankings, FloatArray]:
    """Draw best–worst choices or rankings of four; responses have half the variance of a difference."""
    x = rng.standard_normal(items)
    slope = np.maximum(rng.normal(1, 0.25, people), 0.1)
    rows = items * each // 4
    # Every item stands in `each` tuples.
    tuples = np.array([rng.permutation(items) for _ in range(each)], np.int32).reshape(rows, 4)
    who = rng.integers(people, size=rows)
    percepts = slope[who][:, None] * x[tuples] + np.sqrt(0.5) * rng.standard_normal(tuples.shape)
    shared = _who(items, people, who)
    if ranked:
        order = np.take_along_axis(tuples, np.argsort(-percepts, axis=1), axis=1)
        rank = np.tile(np.arange(1, 5, dtype=np.int32), rows)
        start = np.arange(0, 4 * rows + 1, 4, dtype=np.int64)
        return Rankings(start=start, item=order.ravel(), rank=rank, **shared), x - x.mean()
    at = np.arange(rows)
    best, worst = tuples[at, percepts.argmax(axis=1)], tuples[at, percepts.argmin(axis=1)]
    return Choices(shown=tuples, best=best, worst=worst, **shared), x - x.mean()


def mixed(rng: np.random.Generator, *, items: int = 100, people: int = 25) -> tuple[Mixed, FloatArray]:
    """Draw a few sliders and comparisons of the same items by the same people."""
    ratings, truth = rated(rng, items=items, people=people, each=3)
    # Undo the cut at the ends, which comparisons do not have.
    grid = np.linspace(-1, 2, 3001)
    sd = float(np.sqrt(0.18**2 * np.exp(0.25**2) + 0.08**2))
    x = np.interp(truth, 100 * _cut(grid, sd), grid)
    rows = items * 3
    left = rng.integers(items, size=rows)
    right = (left + rng.integers(1, items, size=rows)) % items
    who = rng.integers(people, size=rows)
    lead = x[left] - x[right] + 0.2 * rng.standard_normal(rows)
    observations = Comparisons(
        left=left.astype(np.int32),
        right=right.astype(np.int32),
        outcome=np.sign(lead).astype(np.int8),
        **_who(items, people, who),
    )
    return Mixed.of((ratings, observations)), truth


SCENES: dict[str, Scene] = {
    "sliders": rated,
    "few sliders": lambda rng: rated(rng, each=3, people=20),
    "sliders in pages": lambda rng: rated(rng, page=0.06),
    "nobody differs": lambda rng: rated(rng, bias=0.0, use=0.0),
    "30 % at random": lambda rng: rated(rng, random=0.3),
    "five steps": lambda rng: rated(rng, steps=4),
    "yes or no": lambda rng: rated(rng, steps=1),
    "comparisons": compared,
    "comparisons with ties": lambda rng: compared(rng, margin=0.4),
    "few comparisons": lambda rng: compared(rng, each=8),
    "choices": lambda rng: in_tuples(rng, ranked=False),
    "rankings": lambda rng: in_tuples(rng, ranked=True),
    "sliders and comparisons": mixed,
}
