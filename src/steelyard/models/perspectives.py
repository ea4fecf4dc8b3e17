"""Scores by group of annotators: partial pooling of group means and of group × item differences, for ratings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from steelyard.errors import DataError
from steelyard.observations import UNKNOWN, FloatArray, Ratings

MIN_GROUP = 5
"""Groups with fewer annotators are not shown (k-anonymity)."""

WARM_UP = 300
_SHAPE, _RATE = 1.0, 1e-3
"""Inverse gamma prior of the variances on the unit scale: weak, and away from zero."""

_GROUP_SD = 0.5
"""Prior sd of a group's mean difference, as a fraction of the scale."""


@dataclass(frozen=True, slots=True, eq=False)
class GroupScores:
    """Scores of items by group, differences of groups, and the test whether one scale fits everybody.

    `scores` has group, item, score, lower, upper; `differences` first, second, difference, lower, upper (mean over
    items, in units of the scale); `variances` part and sd; `hidden` names how many groups were too small to show.
    `p_value` is that of the permutation test for group × item differences.
    """

    scores: pl.DataFrame
    differences: pl.DataFrame
    variances: pl.DataFrame
    groups: pl.DataFrame
    p_value: float | None
    hidden: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """Posterior draws on the unit scale: items, annotators, group means, group × item, and the residual sd."""

    item: FloatArray
    person: FloatArray
    group: FloatArray
    cell: FloatArray
    noise: FloatArray
    sds: FloatArray

    def predict(self, item: NDArray[np.int64], person: NDArray[np.int64], group: NDArray[np.int64]) -> FloatArray:
        """Return the expected rating of each row in each draw (draws × rows)."""
        mean = self.item[:, item] + self.person[:, person]
        if self.group.shape[1]:
            mean = mean + self.group[:, group] + self.cell[:, item, group]
        return np.asarray(mean)


@dataclass(frozen=True, slots=True, eq=False)
class _Data:
    value: FloatArray
    item: NDArray[np.int64]
    person: NDArray[np.int64]
    group: NDArray[np.int64]
    n_items: int
    n_people: int
    n_groups: int


def sample(data: _Data, draws: int, rng: np.random.Generator) -> Draws:
    """Draw from the posterior of y = xᵢ + bⱼ + g + uᵢg + e by Gibbs sampling; without groups, of y = xᵢ + bⱼ + e."""
    n, k = data.n_items, data.n_groups
    cell_of = data.item * max(k, 1) + data.group
    x, b = np.full(n, data.value.mean()), np.zeros(data.n_people)
    g, u = np.zeros(max(k, 1)), np.zeros(n * max(k, 1))
    variance = {"item": 0.05, "person": 0.01, "cell": 0.005, "noise": 0.03}
    centre = float(data.value.mean())
    states: list[tuple[FloatArray, ...]] = []

    def draw_effects(
        codes: NDArray[np.int64], size: int, rest: FloatArray, prior: float, mean: float = 0.0
    ) -> FloatArray:
        count = np.bincount(codes, minlength=size)
        precision = count / variance["noise"] + 1 / prior
        middle = (np.bincount(codes, rest, size) / variance["noise"] + mean / prior) / precision
        return np.asarray(middle + rng.normal(size=size) / np.sqrt(precision))

    def draw_variance(squares: float, count: int) -> float:
        return float((_RATE + squares / 2) / rng.gamma(_SHAPE + count / 2))

    for step in range(WARM_UP + draws):
        grouped = g[data.group] + u[cell_of] if k else 0.0
        x = draw_effects(data.item, n, data.value - b[data.person] - grouped, variance["item"], centre)
        centre = float(x.mean() + rng.normal() * np.sqrt(variance["item"] / n))
        b = draw_effects(data.person, data.n_people, data.value - x[data.item] - grouped, variance["person"])
        if k:
            base = data.value - x[data.item] - b[data.person]
            g = draw_effects(data.group, k, base - u[cell_of], _GROUP_SD**2)
            b, g = _shift_groups(b, g, data, variance["person"], rng)
            base = data.value - x[data.item] - b[data.person]
            u = draw_effects(cell_of, n * k, base - g[data.group], variance["cell"])
            variance["cell"] = draw_variance(float((u**2).sum()), len(u))
            grouped = g[data.group] + u[cell_of]
        residual = data.value - x[data.item] - b[data.person] - grouped
        variance["item"] = draw_variance(float(((x - centre) ** 2).sum()), n)
        variance["person"] = draw_variance(float((b**2).sum()), data.n_people)
        variance["noise"] = draw_variance(float((residual**2).sum()), len(residual))
        if step >= WARM_UP:
            sds = np.sqrt(np.array([variance[name] for name in ("item", "person", "cell", "noise")]))
            states.append((x, b, g[:k], u.reshape(n, max(k, 1))[:, :k], sds))
    columns = [np.stack(column) for column in zip(*states, strict=True)]
    return Draws(columns[0], columns[1], columns[2], columns[3], columns[4][:, 3], columns[4])


def _shift_groups(
    b: FloatArray, g: FloatArray, data: _Data, person_variance: float, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Move a group's mean against its annotators' biases, which the data do not tell apart: a conjugate Gibbs step."""
    # Annotators without ratings belong to no group; their biases are draws from the prior.
    people, rows = np.unique(data.person, return_index=True)
    group_of = data.group[rows]
    count = np.bincount(group_of, minlength=len(g))
    total = np.bincount(group_of, b[people], len(g))
    precision = count / person_variance + 1 / _GROUP_SD**2
    shift = (total / person_variance - g / _GROUP_SD**2) / precision + rng.normal(size=len(g)) / np.sqrt(precision)
    moved = b.copy()
    moved[people] -= shift[group_of]
    return moved, g + shift


def group_scores(
    ratings: Ratings,
    group_of: Mapping[str, str],
    *,
    min_group: int = MIN_GROUP,
    draws: int = 500,
    permutations: int = 999,
    seed: int = 0,
    level: float = 0.95,
) -> GroupScores:
    """Score the items by group of annotators; annotators without a group, or in a group under `min_group`, are hidden.

    Hidden annotators count in the items' scores, as a group of their own that is not shown.
    """
    data, names, sizes, hidden = _grouped(ratings, group_of, min_group)
    rng = np.random.default_rng(seed)
    posterior = sample(data, draws, rng)
    low, high = ratings.scale
    width, tail = high - low, 100 * (1 - level) / 2
    by_group = posterior.item[:, :, None] + posterior.group[:, None, :] + posterior.cell
    frames, differences = [], []
    rated = np.bincount(data.item, minlength=data.n_items) > 0
    for code, name in enumerate(names):
        values = low + width * by_group[:, rated, code]
        lower, upper = np.percentile(values, (tail, 100 - tail), axis=0)
        columns = {"score": values.mean(axis=0), "lower": lower, "upper": upper}
        items = [ratings.items[int(item)] for item in np.flatnonzero(rated)]
        clipped = {key: np.clip(value, low, high) for key, value in columns.items()}
        frames.append(pl.DataFrame({"group": [name] * len(items), "item": items, **clipped}))
    means = by_group[:, rated].mean(axis=1)
    for first in range(len(names)):
        for second in range(first + 1, len(names)):
            gap = width * (means[:, first] - means[:, second])
            lower, upper = np.percentile(gap, (tail, 100 - tail))
            differences.append((names[first], names[second], float(gap.mean()), float(lower), float(upper)))
    schema = {"first": pl.String, "second": pl.String}
    schema |= dict.fromkeys(("difference", "lower", "upper"), pl.Float64)  # type: ignore[arg-type]
    parts = ["items", "annotators", "group × item", "noise"]
    return GroupScores(
        pl.concat(frames),
        pl.DataFrame(differences, schema=schema, orient="row"),
        pl.DataFrame({"part": parts, "sd": width * posterior.sds.mean(axis=0)}),
        pl.DataFrame({"group": names, "annotators": sizes}),
        interaction_test(data, permutations, rng) if permutations else None,
        hidden,
    )


def _grouped(ratings: Ratings, group_of: Mapping[str, str], min_group: int) -> tuple[_Data, list[str], list[int], int]:
    if not ratings.knows_annotators:
        raise DataError("some ratings have no annotator.", "Groups need the annotator of every rating.")
    present = [ratings.annotators[int(code)] for code in np.unique(ratings.annotator)]
    members: dict[str, int] = {}
    for name in present:
        if group_of.get(name):
            members[group_of[name]] = members.get(group_of[name], 0) + 1
    names = sorted(name for name, count in members.items() if count >= min_group)
    if len(names) < 2:
        raise DataError(
            f"fewer than two groups have {min_group} or more annotators.",
            "Use a column with larger groups; small groups are not shown, so that no annotator can be identified.",
        )
    place = {name: code for code, name in enumerate(names)}
    codes = np.array([place.get(group_of.get(name, ""), len(names)) for name in ratings.annotators.ids], np.int64)
    has_rest = bool((codes[np.unique(ratings.annotator)] == len(names)).any())
    data = _Data(
        ratings.unit_value,
        ratings.item.astype(np.int64),
        ratings.annotator.astype(np.int64),
        codes[ratings.annotator],
        len(ratings.items),
        len(ratings.annotators),
        len(names) + has_rest,
    )
    return data, names, [members[name] for name in names], len(members) - len(names)


def interaction_test(data: _Data, permutations: int, rng: np.random.Generator) -> float:
    """Return the p-value of group × item differences: groups are permuted among annotators, who are exchangeable.

    The statistic is the sum over items and groups of n·(mean residual)², the residuals without items' and annotators'
    means.
    """
    residual = data.value.copy()
    for _ in range(20):
        for codes, size in ((data.item, data.n_items), (data.person, data.n_people)):
            count = np.maximum(np.bincount(codes, minlength=size), 1)
            residual -= (np.bincount(codes, residual, size) / count)[codes]
    group_of = np.zeros(data.n_people, np.int64)
    group_of[data.person] = data.group
    people = np.unique(data.person)

    def statistic(groups: NDArray[np.int64]) -> float:
        cell = data.item * data.n_groups + groups[data.person]
        total = np.bincount(cell, residual, data.n_items * data.n_groups)
        count = np.maximum(np.bincount(cell, minlength=data.n_items * data.n_groups), 1)
        return float((total**2 / count).sum())

    observed = statistic(group_of)
    beyond = 0
    for _ in range(permutations):
        shuffled = group_of.copy()
        shuffled[people] = rng.permutation(group_of[people])
        beyond += statistic(shuffled) >= observed - 1e-12
    return (1 + beyond) / (1 + permutations)


def held_out_log_scores(
    ratings: Ratings,
    group_of: Mapping[str, str],
    *,
    new_annotators: bool = False,
    folds: int = 5,
    draws: int = 300,
    seed: int = 0,
    min_group: int = MIN_GROUP,
) -> pl.DataFrame:
    """Return the log predictive density of each rating, held out in folds, with and without groups.

    Ratings are held out one by one or, with `new_annotators`, all those of an annotator together.
    Columns: annotator, pooled, grouped (natural logarithms, on the unit scale).
    """
    data, _, _, _ = _grouped(ratings, group_of, min_group)
    rng = np.random.default_rng(seed)
    fold = rng.integers(0, folds, len(data.value))
    if new_annotators:
        fold = rng.integers(0, folds, data.n_people)[data.person]
    result = {"pooled": np.empty(len(fold)), "grouped": np.empty(len(fold))}
    for number in range(folds):
        out = fold == number
        for name, n_groups in (("pooled", 0), ("grouped", data.n_groups)):
            group = data.group if n_groups else np.zeros_like(data.group)
            train = _Data(
                data.value[~out], data.item[~out], data.person[~out], group[~out], data.n_items, data.n_people, n_groups
            )
            posterior = sample(train, draws, rng)
            mean = posterior.predict(data.item[out], data.person[out], group[out])
            sd = posterior.noise[:, None]
            log = -0.5 * ((data.value[out] - mean) / sd) ** 2 - np.log(sd) - 0.5 * np.log(2 * np.pi)
            top = log.max(axis=0)
            result[name][out] = top + np.log(np.exp(log - top).mean(axis=0))
    names = [ratings.annotators[int(code)] for code in ratings.annotator]
    return pl.DataFrame({"annotator": names, **result}).filter(pl.Series(ratings.annotator != UNKNOWN))
