"""Harmonization against the paper's printed example, its two conditions, and figures by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.errors import DataError
from steelyard.models.ratings.harmonization import harmonization_agreement, harmonize

cases = st.lists(st.tuples(st.integers(1, 6), st.booleans()), min_size=1, max_size=8)


def test_the_printed_example_comes_out_as_printed() -> None:
    """[a1, b2, c3, d3, e4] with b and c adequate becomes [b1, c2, a2, d3, e4]."""
    harmonized = harmonize([1, 2, 3, 3, 4], [False, True, True, False, False])
    assert harmonized.tolist() == [2, 1, 2, 3, 4]


@given(cases)
def test_ranks_start_at_one_never_skip_and_no_inadequate_item_is_above_an_adequate_one(
    case: list[tuple[int, bool]],
) -> None:
    ranks, adequate = [r for r, _ in case], np.array([a for _, a in case])
    after = harmonize(ranks, adequate)
    assert sorted(set(after.tolist())) == list(range(1, int(after.max()) + 1))
    if adequate.any() and not adequate.all():
        assert after[adequate].max() <= after[~adequate].min()


@given(cases)
def test_nothing_changes_where_ranks_and_adequacy_agree(case: list[tuple[int, bool]]) -> None:
    dense = np.unique([r for r, _ in case], return_inverse=True)[1] + 1
    assert harmonize(dense, np.ones(len(dense), bool)).tolist() == dense.tolist()
    assert harmonize(dense, dense <= 2).tolist() == dense.tolist()


def test_agreement_averages_the_sources() -> None:
    """The printed example beside a source that does not change."""
    table = harmonization_agreement(
        [1, 2, 3, 3, 4, 1, 2], [False, True, True, False, False, True, True], ["s"] * 5 + ["t"] * 2
    )
    statistics = {row["statistic"]: row for row in table.iter_rows(named=True)}
    # Errors 1, −1, −1, 0, 0; midranks 1 2 3.5 3.5 5 and 2.5 1 2.5 4 5, whose correlation is 7.25 / 9.5.
    assert statistics["mae"]["value"] == pytest.approx(0.6 / 2)
    assert statistics["rmse"]["value"] == pytest.approx(np.sqrt(0.6) / 2)
    assert statistics["spearman"]["value"] == pytest.approx((7.25 / 9.5 + 1) / 2)
    assert statistics["differ"]["value"] == 0.5
    for row in statistics.values():
        assert row["lower"] <= row["value"] <= row["upper"]
        assert row["sources"] == 2


def test_a_source_without_differences_in_rank_has_no_correlation() -> None:
    table = harmonization_agreement([1, 1], [True, True], ["s", "s"])
    assert table.row(0) == ("spearman", None, None, None, None, 0)


def test_unequal_lengths_are_refused() -> None:
    with pytest.raises(DataError, match="3 ranks but 2 adequacies"):
        harmonize([1, 2, 3], [True, False])
    with pytest.raises(DataError, match="no ranks"):
        harmonization_agreement([], [], [])
