"""Cost and precision of mixes of people and a model, from a pilot."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from steelyard.errors import DataError
from steelyard.observations import UNKNOWN, Index, Ratings
from steelyard.simulate.mixes import (
    Components,
    MixPilot,
    Prices,
    cheapest,
    mix_table,
    read_mix_pilot,
    without_annotator,
)


def ratings_of(truth: np.ndarray, per_item: int, noise: float, rng: np.random.Generator) -> Ratings:
    item = np.repeat(np.arange(len(truth)), per_item)
    return Ratings(
        items=Index([f"i{n}" for n in range(len(truth))]),
        annotators=Index(["a", "b"]),
        tasks=Index(),
        annotator=np.tile([0, 1], len(item))[: len(item)].astype(np.int32),
        task=np.full(len(item), UNKNOWN, np.int32),
        item=item.astype(np.int32),
        value=truth[item] + rng.normal(0, noise, len(item)),
        scale=(-200, 300),
    )


@pytest.mark.parametrize("correlation", [0.0, 0.6, 0.9])
def test_the_components_of_a_large_pilot_are_those_it_was_simulated_with(correlation):
    rng = np.random.default_rng(0)
    z, e = rng.normal(size=(2, 3000))
    judge = correlation * z + np.sqrt(1 - correlation**2) * e
    scores = {f"i{n}": 7 * value for n, value in enumerate(judge.tolist())}
    own = read_mix_pilot(ratings_of(50 + 15 * z, 2, 20.0, rng), scores).components
    assert own.items**0.5 == pytest.approx(15, rel=0.05)
    assert own.noise**0.5 == pytest.approx(20, rel=0.05)
    assert own.squared_correlation == pytest.approx(correlation**2, abs=0.05)


def test_precision_by_hand():
    """V = 4, σ² = 4, r² = ¾, so s² = 1: one rating leaves 4·4/8 = 2 without the model and 1·4/5 = .8 with it."""
    own = Components(4.0, 4.0, 0.75)
    table = mix_table(MixPilot(own, (own,), 50, 50), 100, Prices(1.0, 0.1), people_per_item=(0.5, 1.0))
    rows = {(row["people_per_item"], row["model"]): row for row in table.iter_rows(named=True)}
    alone, mixed = rows[1.0, False], rows[1.0, True]
    assert (alone["cost"], mixed["cost"]) == (100.0, pytest.approx(110.0))
    assert alone["correlation"] == pytest.approx((1 - 2 / 4) ** 0.5)
    assert mixed["correlation"] == pytest.approx((1 - 0.8 / 4) ** 0.5)
    assert alone["mean_half_width"] == pytest.approx(1.96 * ((4 + 4) / 100) ** 0.5)
    assert mixed["mean_half_width"] == pytest.approx(1.96 * ((1 + 4) / 100 + 3 / 100) ** 0.5)
    # Half a rating per item: half of the items have one.
    assert rows[0.5, True]["half_width"] == pytest.approx(1.96 * ((1 + 0.8) / 2) ** 0.5)
    # Half a rating per item leaves .9 of 4: a correlation of √.775 = .88.
    assert cheapest(table, 0.8) == (rows[0.5, True], None)
    assert table.filter(pl.col("frontier"))["model"].to_list() == [False, True, True]


def test_a_pilot_in_which_nobody_is_rated_twice_is_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(DataError, match="0 of them by two people"):
        read_mix_pilot(ratings_of(rng.normal(size=40), 1, 1.0, rng), {f"i{n}": 1.0 * n for n in range(40)})


def test_a_model_in_a_file_is_separated_by_its_name():
    ratings = ratings_of(np.arange(3.0), 2, 0.0, np.random.default_rng(0))
    people, scores = without_annotator(ratings, "b")
    assert set(people.annotator.tolist()) == {0}
    assert scores == {"i0": 0.0, "i1": 1.0, "i2": 2.0}
    with pytest.raises(DataError, match="no judgments by 'c'"):
        without_annotator(ratings, "c")
