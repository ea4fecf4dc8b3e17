"""Agreement in a log, from sums that an engine makes: Krippendorff's α, and split-half reliability."""

from __future__ import annotations

import numpy as np
import polars as pl

from steelyard.engines.log import Log, coded, index_of
from steelyard.engines.split_half import LogSplit
from steelyard.observations import UNKNOWN, Index
from steelyard.reliability.agreement import Agreement, item_figures, unit_notes
from steelyard.reliability.bootstrap import Bootstrap, Seed
from steelyard.reliability.split_half import split_half_or_reason
from steelyard.reliability.units import Units

_LEFT_OUT = "with an engine, only {} computed; the others need --engine memory"


def log_agreement(log: Log, *, seed: Seed = 0, replicates: int = 200, level: float = 0.95) -> Agreement:
    """Compute the figures of agreement that sums give: α and what goes with it, and split-half reliability.

    The others (ITA, κ between two, self-consistency, α of comparisons and choices) need all judgments in memory.
    """
    bootstrap = Bootstrap.of(seed, replicates, level)
    if log.kind in ("comparisons", "choices"):
        left_out = _LEFT_OUT.format("split-half reliability is")
        return Agreement(log.kind, split_half_or_reason(LogSplit(log, bootstrap.seed), bootstrap), (left_out,))
    units, items = _units(log)
    figures = item_figures(log.kind, units, log.scale, bootstrap, lambda: _names(units, items))
    which = "figures from answers by item are"
    if log.kind == "ratings":
        figures += split_half_or_reason(LogSplit(log, bootstrap.seed), bootstrap)
        which = "figures from answers by item and split-half reliability are"
    return Agreement(log.kind, figures, (*unit_notes(log.knows_annotators, units), _LEFT_OUT.format(which)))


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
