"""What a plan is for: scores of items, or scores of systems that were given the same sources.

A layout makes the items of a simulated study and draws their true values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from steelyard.errors import ConfigError, did_you_mean
from steelyard.models.systems.compare_systems import of_items
from steelyard.observations import FloatArray, Observations
from steelyard.records import Item
from steelyard.reliability.splitting import Sums
from steelyard.simulate.population import Population

_SOURCE_TRIALS = 10
"""Random halves of the sources per simulated study."""


class Layout(ABC):
    """The items of a plan, and their true values."""

    first_showings: int
    """Showings per item in the first simulation."""
    min_showings: int
    """Showings per item in the smallest study that is simulated."""
    max_showings: int
    """Maximum number of showings per item in a plan."""

    @cached_property
    @abstractmethod
    def items(self) -> list[Item]:
        """The items, without texts."""

    @property
    @abstractmethod
    def n_comparable(self) -> int:
        """Number of items that can be compared with each other."""

    @property
    @abstractmethod
    def description(self) -> str:
        """What is planned, such as "200 items"."""

    @abstractmethod
    def min_budget(self, items_per_judgment: int) -> int:
        """Return the smallest number of judgments at which reliability can be measured."""

    @abstractmethod
    def values(self, population: Population, rng: np.random.Generator) -> FloatArray:
        """Draw the true value of every item."""

    def shrunk(self, most: int) -> Layout:
        """Return a layout of at most this many items that needs as many judgments per item; itself if there is none."""
        return self


@dataclass(frozen=True)
class ItemLayout(Layout):
    """Items without systems."""

    count: int

    first_showings = 6
    min_showings = 4  # Each half needs two.
    max_showings = 200

    @cached_property
    def items(self) -> list[Item]:
        """Numbered items."""
        width = len(str(self.count))
        return [Item(f"item-{number:0{width}d}", "") for number in range(1, self.count + 1)]

    @property
    def n_comparable(self) -> int:
        """Any items can be compared."""
        return self.count

    @property
    def description(self) -> str:
        """The number of items."""
        return f"{self.count:,} items"

    def min_budget(self, items_per_judgment: int) -> int:
        """Every item must be shown about twice: halves with few common items correlate by chance."""
        return ceil(2 * self.count / items_per_judgment)

    def values(self, population: Population, rng: np.random.Generator) -> FloatArray:
        """Draw the items from the population."""
        return population.values(self.count, rng)

    def shrunk(self, most: int) -> Layout:
        """Return fewer items: the judgments needed per item do not depend on their number."""
        return self if self.count <= most else ItemLayout(most)


class SystemEffects(NamedTuple):
    """Standard deviations on the unit scale.

    `system_sd` is that of the systems' true scores, `source_sd` that of the sources' difficulty, `interaction_sd` that
    of how good a system is at one source, beyond both. The defaults are of the size found in the direct assessments
    of WMT21 (cs-en, de-en, ha-en: .03 to .05, .06 to .07, .04 to .07).
    """

    system_sd: float = 0.04
    source_sd: float = 0.06
    interaction_sd: float = 0.06

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> SystemEffects:
        """Build from settings by name; refuse unknown and invalid ones."""
        for key, value in settings.items():
            if key not in cls._fields:
                raise ConfigError(f"systems have no setting '{key}'.", did_you_mean(key, cls._fields))
            if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
                raise ConfigError(f"{key} is {value!r}.", "Give a number from 0 to 1.")
        return cls(**settings)


@dataclass(frozen=True)
class SystemLayout(Layout):
    """Outputs of systems for the same sources, compared within each source.

    Reliability is Pearson's r between the scores of the systems from two random halves of the *sources*, so that it
    says whether other sources would give the same scores. Covariances and variances are pooled over the halves, which
    makes sense of as few as two systems.

    Attributes
    ----------
    outputs
        System and source of each output.
    effects
        How systems and sources vary; the population's `item_sd` is not used.
    spacing
        Difference between neighbouring systems; by default they vary by `system_sd`.
    """

    outputs: tuple[tuple[str, str], ...]
    effects: SystemEffects
    spacing: float | None = None

    first_showings = 1
    min_showings = 1
    max_showings = 60

    @classmethod
    def of_counts(cls, systems: int, sources: int, effects: SystemEffects | None = None) -> SystemLayout:
        """Every system has an output for every source."""
        names = [(f"system-{k}", f"source-{n}") for n in range(1, sources + 1) for k in range(1, systems + 1)]
        return cls.of_outputs(names, effects)

    @classmethod
    def of_outputs(cls, outputs: Iterable[tuple[str, str]], effects: SystemEffects | None = None) -> SystemLayout:
        """Outputs as they are in a file: system and source of each."""
        layout = cls(tuple(outputs), effects or SystemEffects())
        if len(layout.systems) < 2 or len(layout.sources) < 4:
            raise ConfigError(
                "the reliability of systems needs at least two systems and four sources.",
                "Plan for more, or plan for items: --items N.",
            )
        return layout

    @cached_property
    def systems(self) -> list[str]:
        """The names of the systems."""
        return list(dict.fromkeys(system for system, _ in self.outputs))

    @cached_property
    def sources(self) -> list[str]:
        """The names of the sources."""
        return list(dict.fromkeys(source for _, source in self.outputs))

    def min_sources(self, target: float) -> int:
        """Return the number of sources below which the target is out of reach, however many judgments each has.

        Halves of n/2 sources leave the variance interaction_sd² / (n/2) in the scores.
        """
        system_sd, _, interaction_sd = self.effects
        return ceil(2 * target / (1 - target) * interaction_sd**2 / max(system_sd, 1e-9) ** 2)

    @cached_property
    def items(self) -> list[Item]:
        """The outputs, with their system and source."""
        width = len(str(len(self.outputs)))
        return [
            Item(f"output-{number:0{width}d}", "", group=system, context=source)
            for number, (system, source) in enumerate(self.outputs, 1)
        ]

    @property
    def n_comparable(self) -> int:
        """Outputs of most sources."""
        return Counter(Counter(source for _, source in self.outputs).values()).most_common(1)[0][0]

    @property
    def description(self) -> str:
        """The numbers of systems and sources."""
        return f"{len(self.systems):,} systems × {len(self.sources):,} sources"

    def min_budget(self, items_per_judgment: int) -> int:
        """Every system must be shown about twice in each half."""
        return max(4, ceil(4 * len(self.systems) / items_per_judgment))

    def values(self, population: Population, rng: np.random.Generator) -> FloatArray:
        """Draw sources and interactions around the systems' true scores."""
        _, source_sd, interaction_sd = self.effects
        true_score = self._true_scores()
        difficulty = dict(zip(self.sources, rng.normal(0, source_sd, len(self.sources)), strict=True))
        means = [population.mean + true_score[system] + difficulty[source] for system, source in self.outputs]
        return np.array(means) + rng.normal(0, interaction_sd, len(means))

    def reliability(self, observations: Observations, seed: int) -> float:
        """Split the sources, and correlate the systems' mean scores or counts."""
        judgments = of_items(observations, self.items)
        sums = Sums.of(judgments.observations)
        source = judgments.source_codes()
        rng = np.random.default_rng(seed)
        halves = []
        for _ in range(_SOURCE_TRIALS):
            is_second = rng.permutation(np.arange(int(source.max()) + 1) % 2).astype(np.int8)
            halves.append(sums.scores(is_second[source]))
        return max(_pooled_correlation(halves), 0.0)

    def truth(self, observations: Observations) -> float:
        """Correlate the systems' scores with their true scores."""
        judgments = of_items(observations, self.items)
        scores, _ = Sums.of(judgments.observations).scores(np.zeros(len(judgments.observations), np.int8))
        true_score = self._true_scores()
        return _pooled_correlation([(scores, np.array([true_score[system] for system in judgments.systems.ids]))])

    def neighbour_t(self, observations: Observations) -> float:
        """Return the mean of t over neighbouring systems, paired by source; 0 where there are too few sources."""
        item_scores, _ = Sums.of(observations).scores(np.zeros(len(observations), np.int8))
        by_output = dict(zip(observations.items.ids, item_scores.tolist(), strict=True))
        table = np.full((len(self.sources), len(self.systems)), np.nan)
        row = {source: number for number, source in enumerate(self.sources)}
        column = {system: number for number, system in enumerate(self.systems)}
        for item in self.items:
            table[row[str(item.context)], column[str(item.group)]] = by_output.get(item.id, np.nan)
        statistics = []
        for difference in np.diff(table, axis=1).T:
            judged = difference[~np.isnan(difference)]
            sd = float(judged.std(ddof=1)) if len(judged) > 2 else 0.0
            statistics.append(float(judged.mean()) / (sd / len(judged) ** 0.5) if sd > 0 else 0.0)
        return float(np.mean(statistics))

    def _true_scores(self) -> dict[str, float]:
        """Return evenly spaced quantiles of a normal distribution, so that simulated studies have equal systems.

        With `spacing`, neighbours differ by that much instead.
        """
        count = len(self.systems)
        if self.spacing is not None:
            return {system: (place - (count - 1) / 2) * self.spacing for place, system in enumerate(self.systems)}
        quantiles = np.array([NormalDist().inv_cdf((place + 0.5) / count) for place in range(count)])
        scores = quantiles / quantiles.std() * self.effects.system_sd
        return dict(zip(self.systems, scores.tolist(), strict=True))


def layout_of_items(items: Sequence[Item], effects: SystemEffects | None = None) -> Layout:
    """Return the layout of a study's items: outputs of systems where all of them have a system and a source."""
    outputs = [(item.group, item.context) for item in items if item.group and item.context]
    if not outputs or len(outputs) < len(items):
        return ItemLayout(len(items))
    return SystemLayout.of_outputs([(str(group), str(context)) for group, context in outputs], effects)


def _pooled_correlation(pairs: Sequence[tuple[FloatArray, FloatArray]]) -> float:
    """Return the correlation of the deviations from the mean of each pair, pooled over the pairs."""
    covariance = first_variance = second_variance = 0.0
    for first, second in pairs:
        is_scored = ~(np.isnan(first) | np.isnan(second))
        if is_scored.sum() < 2:
            continue
        one, other = (half[is_scored] - half[is_scored].mean() for half in (first, second))
        covariance += float(one @ other)
        first_variance += float(one @ one)
        second_variance += float(other @ other)
    scale = (first_variance * second_variance) ** 0.5
    return covariance / scale if scale > 0 else 0.0
