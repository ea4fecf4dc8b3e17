"""Assertions that fits and statistics of an engine equal those in memory."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from steelyard.engines import Engine, fit_log, open_log
from steelyard.engines.agreement import log_agreement
from steelyard.errors import SteelyardWarning
from steelyard.formats import read_judgments
from steelyard.models.fit import Fit, Model
from steelyard.reliability import Statistic, agreement

CLOSE = 1e-9
AGREEMENT = {
    "ratings": {"alpha_interval", "alpha_ordinal", "mean_absolute_difference"},
    "labels": {"alpha_nominal", "observed_agreement"},
    "comparisons": {"alpha_nominal", "observed_agreement", "kappa_fixed_chance"},
    "choices": {f"{name}_{side}" for name in ("alpha_nominal", "observed_agreement") for side in ("best", "worst")},
}
"""The statistics that every engine computes, besides split-half reliability."""


def in_memory(model: Model, frame: pl.DataFrame, gold: Mapping[str, str] | None = None) -> Fit:
    """Fit in memory."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SteelyardWarning)
        return model.fitted(read_judgments(frame, scale=_scale(frame)).observations, gold)


def by_engine(engine: Engine, model: Model, files: list[Path], gold: Mapping[str, str] | None = None) -> Fit:
    """Fit in an engine."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SteelyardWarning)
        logs = open_log(engine, files, scale=_scale(pl.read_parquet(files[0])))
        return fit_log(model, logs.by_criterion[""], gold)


def assert_same_agreement(engine: Engine, frame: pl.DataFrame, files: list[Path]) -> list[Statistic]:
    """Compare each statistic of an engine with the one in memory; return those of split-half reliability."""
    expected = agreement(read_judgments(frame, scale=_scale(frame)).observations)
    result = log_agreement(open_log(engine, files, scale=_scale(frame)).by_criterion[""])
    assert {statistic.key for statistic in result.statistics} >= AGREEMENT[result.kind]
    *notes, left_out = result.notes
    assert tuple(notes) == expected.notes
    assert "--engine memory" in left_out
    for statistic in result.statistics:
        same = expected[statistic.key]
        assert (statistic.interval, statistic.n, statistic.note) == (same.interval, same.n, same.note)
        for end in ("value", "lower", "upper"):
            one, other = getattr(statistic, end), getattr(same, end)
            assert one is other if other is None else one == pytest.approx(other, rel=0, abs=CLOSE)
    return [statistic for statistic in result.statistics if statistic.key.startswith("split_half")]


def _scale(frame: pl.DataFrame) -> tuple[float, float] | None:
    return (0.0, 100.0) if "value" in frame.columns else None


def assert_same(fitted: Fit, expected: Fit) -> None:
    """Assert that scores, intervals, ranks, notes and annotators of two fits are equal."""
    # Ties in rank are in the order of the items in both fits, so rows can be compared one by one.
    assert_frame_equal(fitted.scores, expected.scores, rel_tol=0, abs_tol=CLOSE)
    if fitted.annotators is None or expected.annotators is None:
        assert fitted.annotators is expected.annotators
    else:
        assert_frame_equal(fitted.annotators, expected.annotators, rel_tol=0, abs_tol=CLOSE)
    assert fitted.notes == expected.notes
    assert (fitted.iterations, fitted.converged) == (expected.iterations, expected.converged)
