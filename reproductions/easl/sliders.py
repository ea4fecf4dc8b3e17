"""The sliders of Pavlick & Kwiatkowski (2019) for 500 pairs of sentences, as ratings."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import numpy as np
import polars as pl

from steelyard.formats import read_judgments, read_table
from steelyard.observations import FloatArray, Ratings
from steelyard.reliability.splitting import take

SLIDERS = "nli/sliders.csv.gz"


def usable(data: Path, *, cannot_judge: bool = False) -> pl.DataFrame:
    """Return the answers that were not rejected; those that say that a pair cannot be judged only if wanted."""
    frame = read_table(data / SLIDERS).filter(pl.col("status") != "Rejected")
    return frame if cannot_judge else frame.filter(pl.col("na") == "0")


def read_sliders(data: Path) -> Ratings:
    """Read them as ratings from 0 to 100."""
    chosen = usable(data).select("annotator", "item", "value")
    return cast("Ratings", read_judgments(chosen, kind="ratings", scale=(0, 100)).observations)


def parted(ratings: Ratings, items: int, rng: np.random.Generator) -> tuple[list[str], FloatArray, Ratings]:
    """Draw some items, and part their ratings in two at random.

    Returns the items, the mean of one half of the ratings of each (on [0, 1]), and the other half.
    """
    n = len(ratings.items)
    chosen = np.sort(rng.permutation(n)[:items])
    order = np.lexsort((rng.random(len(ratings)), ratings.item))
    first = np.searchsorted(ratings.item[order], np.arange(n))
    place = np.empty(len(ratings), np.int64)
    place[order] = np.arange(len(ratings)) - first[ratings.item[order]]
    in_truth = place < np.bincount(ratings.item, minlength=n)[ratings.item] // 2
    total = np.bincount(ratings.item[in_truth], ratings.unit_value[in_truth], minlength=n)
    mean = total / np.maximum(np.bincount(ratings.item[in_truth], minlength=n), 1)
    rest = take(ratings, ~in_truth & np.isin(ratings.item, chosen))
    return [ratings.items[int(code)] for code in chosen], mean[chosen], rest
