"""Whether an engine's fit is the one in memory."""

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
"""The figures that every engine gives, besides split-half reliability."""


def in_memory(model: Model, frame: pl.DataFrame, gold: Mapping[str, str] | None = None) -> Fit:
    """Fit as without an engine."""
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
    """Hold every figure of an engine against the one in memory; return those of split-half reliability."""
    expected = agreement(read_judgments(frame, scale=_scale(frame)).observations)
    found = log_agreement(open_log(engine, files, scale=_scale(frame)).by_criterion[""])
    assert {figure.key for figure in found.statistics} >= AGREEMENT[found.kind]
    *notes, left_out = found.notes
    assert tuple(notes) == expected.notes
    assert "--engine memory" in left_out
    for figure in found.statistics:
        same = expected[figure.key]
        assert (figure.interval, figure.n, figure.note) == (same.interval, same.n, same.note)
        for end in ("value", "lower", "upper"):
            one, other = getattr(figure, end), getattr(same, end)
            assert one is other if other is None else one == pytest.approx(other, rel=0, abs=CLOSE)
    return [figure for figure in found.statistics if figure.key.startswith("split_half")]


def _scale(frame: pl.DataFrame) -> tuple[float, float] | None:
    return (0.0, 100.0) if "value" in frame.columns else None


def assert_same(found: Fit, expected: Fit) -> None:
    """Hold every score, interval, rank, note and annotator of two fits against one another."""
    # Ties in rank come in the order of the items in both, so rows can be held side by side.
    assert_frame_equal(found.scores, expected.scores, rel_tol=0, abs_tol=CLOSE)
    if found.annotators is None or expected.annotators is None:
        assert found.annotators is expected.annotators
    else:
        assert_frame_equal(found.annotators, expected.annotators, rel_tol=0, abs_tol=CLOSE)
    assert found.notes == expected.notes
    assert (found.iterations, found.converged) == (expected.iterations, expected.converged)
