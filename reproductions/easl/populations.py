"""Simulated annotators who agree as much as those of Sakaguchi & Van Durme (2018), with several effects of context."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from reproductions.easl.methods import Panel
from steelyard.formats import read_table
from steelyard.reliability.correlation import spearman
from steelyard.simulate import Population

# Footnotes 17 and 20: the agreement of ten annotators in direct assessment, Spearman's ρ.
AGREEMENT = {"lexical frequency": 0.37, "political spectrum": 0.67}

POLITICAL = "political spectrum"
TASKS = {
    "lexical frequency": Population(noise=0.295, lapse=0.0),
    POLITICAL: Population(noise=0.2, lapse=0.0),
}
"""Annotators with the published agreement: on items drawn at random, and on the paper's own propositions."""

PROPOSITIONS = "easl_political/items.csv.gz"
"""The 150 propositions of §5.2, many of which lie at the ends of the spectrum."""

NOTHING = "no effect of context"
CONTEXTS: dict[str, dict[str, Any]] = {
    NOTHING: {},
    "noise ×0.8 shown together": {"together": 0.8},
    "noise ×0.6 shown together": {"together": 0.6},
    "fives shifted together": {"context_shift": 0.1},
}
"""How items shown together are rated: with less noise each, or all shifted the same way by the others."""


def read_propositions(data: Path) -> dict[str, float]:
    """Read the gold of the 150 propositions of §5.2, from −2 to 2, as values on [0, 1]."""
    frame = read_table(data / PROPOSITIONS).select(
        pl.col("item").cast(pl.String), (pl.col("gold").cast(pl.Float64) + 2) / 4
    )
    return dict(frame.iter_rows())


def context(population: Population, name: str) -> Population:
    """Return the population with an effect of context."""
    return replace(population, **CONTEXTS[name])


def agreement(panel: Panel, people: int) -> float:
    """Have every item rated so often alone, and return the mean ρ of any two of these columns."""
    alone = np.arange(len(panel.index), dtype=np.int32)[:, None]
    columns = [panel.rate(alone)[:, 0] for _ in range(people)]
    correlations = [spearman(columns[one], columns[other]) for one in range(people) for other in range(one)]
    return float(np.mean([correlation.r for correlation in correlations if correlation is not None]))
