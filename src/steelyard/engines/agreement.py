"""Krippendorff's α of a log, from counts that an engine makes."""

from __future__ import annotations

import numpy as np
import polars as pl

from steelyard.engines.log import Log, coded, index_of
from steelyard.errors import ConfigError
from steelyard.observations import UNKNOWN, Index
from steelyard.reliability.agreement import Agreement, item_figures, unit_notes
from steelyard.reliability.bootstrap import Bootstrap, Seed
from steelyard.reliability.units import Units


def log_agreement(log: Log, *, seed: Seed = 0, replicates: int = 200, level: float = 0.95) -> Agreement:
    """Compute the figures of agreement that depend on answers by item alone: α and what goes with it.

    The others (split-half, ITA, κ between two, self-consistency) need all judgments in memory.
    """
    if log.kind not in ("ratings", "labels"):
        raise ConfigError(
            f"the agreement of {log.kind} needs all judgments in memory.", "Use --engine memory, or a sample of them."
        )
    units, items = _units(log)
    figures = item_figures(
        log.kind, units, log.scale, Bootstrap.of(seed, replicates, level), lambda: _names(units, items)
    )
    left_out = "with an engine, only figures from answers by item are computed; the others need --engine memory"
    return Agreement(log.kind, figures, (*unit_notes(log.knows_annotators, units), left_out))


def _units(log: Log) -> tuple[Units, Index]:
    cells = log.query("agreement_cells", value="value" if log.kind == "ratings" else "label")
    items = index_of(cells["item"])
    people = index_of(cells["annotator"].drop_nulls())
    person = np.full(cells.height, UNKNOWN, np.int64)
    known = cells["annotator"].is_not_null().to_numpy()
    person[known] = coded(cells["annotator"].filter(known), people)
    answer = cells["answer"]
    value = answer.cast(pl.Float64).to_numpy() if log.kind == "ratings" else coded(answer, index_of(answer))
    return Units.counted(coded(cells["item"], items), value, cells["n"].to_numpy(), person), items


def _names(units: Units, items: Index) -> tuple[str, ...]:
    return tuple(items[int(code)] for code in units.kept)
