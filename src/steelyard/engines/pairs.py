"""Counted pairs from a log: for Bradley–Terry, Thurstone and the win rate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from steelyard.engines.log import Log, by_item, coded, index_of
from steelyard.engines.values import RESULT_ROWS
from steelyard.engines.weights import weigh
from steelyard.errors import ConfigError
from steelyard.models.comparisons.latent import Sample
from steelyard.models.comparisons.paired import PairTable, pair_key
from steelyard.models.comparisons.paired_kernels import pair_terms
from steelyard.models.comparisons.paired_model import PairedModel, PairLikelihood, TieRule
from steelyard.models.inference.newton import Likelihood, UnitScatter
from steelyard.models.inference.resampling import Units
from steelyard.observations import FloatArray, Index, IntArray

_NONE = np.zeros(0, np.int32)


def pairs_view(log: Log, *, by_unit: bool) -> str:
    """Make the view (unit, left_item, right_item, n, outcome) of what a log says of pairs; return its name."""
    name = f"{log.prefix}pairs{'_of_units' if by_unit else ''}"
    unit = log.unit_column if by_unit else "CAST(NULL AS STRING)"
    if log.kind == "comparisons":
        log.engine.view(name, log.sql("comparison_pairs", unit=unit))
    else:
        parts = [log.sql("pairs_of_place", unit=unit, place=place) for place in log.places]
        log.engine.view(name, "\nUNION ALL\n".join(parts))
    return name


def showings_view(log: Log, *, by_unit: bool, win_rate: bool = False) -> str:
    """Make the view (unit, item, value, n) of what a log says of items one by one; return its name."""
    name = f"{log.prefix}{'wins' if win_rate else 'showings'}{'_of_units' if by_unit else ''}"
    if log.kind == "comparisons" or win_rate:
        values = ("(outcome + 1) / CAST(2 AS DOUBLE)", "(1 - outcome) / CAST(2 AS DOUBLE)")
        left, right = values if win_rate else ("CAST(outcome AS DOUBLE)", "CAST(-outcome AS DOUBLE)")
        pairs = pairs_view(log, by_unit=by_unit)
        log.engine.view(name, log.sql("showings_of_pairs", pairs=pairs, left_value=left, right_value=right))
    else:
        unit = log.unit_column if by_unit else "CAST(NULL AS STRING)"
        parts = [log.sql("showings_of_place", unit=unit, place=place) for place in log.places]
        log.engine.view(name, "\nUNION ALL\n".join(parts))
    return name


@dataclass(frozen=True)
class LogPairs(Sample):
    """The pairs of a log: counted, with their items."""

    log: Log
    items: Index
    table: PairTable

    @classmethod
    def of(cls, log: Log) -> LogPairs:
        """Count the pairs."""
        items = index_of(log.query("counts_by_item", showings=showings_view(log, by_unit=False))["item"])
        codes = pl.Series(np.arange(len(items), dtype=np.int32))
        log.engine.put(f"{log.prefix}ids", pl.DataFrame({"id": pl.Series(items.ids, dtype=pl.String), "code": codes}))
        found = log.query("pair_table", pairs=pairs_view(log, by_unit=False))
        first, second = (found[name].to_numpy().astype(np.int32) for name in ("first_item", "second_item"))
        order = np.argsort(pair_key(first, second, len(items)), kind="stable")
        counts = [found[name].to_numpy()[order].astype(np.float64) for name in ("wins", "losses", "ties")]
        return cls(log, items, PairTable(len(items), first[order], second[order], *counts))

    def units(self) -> Units:
        """Count the units."""
        if self.log.unit == "judgments":
            return self.single()
        by_unit = showings_view(self.log, by_unit=True)
        count = self.log.query("count", what="DISTINCT unit", view=by_unit)["n"][0]
        return Units(self.log.unit, (), _NONE, int(count))

    def single(self) -> Units:
        """Take every row that counts."""
        return Units("judgments", (), _NONE, self.log.rows)

    def counts(self, shown: IntArray | None) -> tuple[IntArray, IntArray | None]:
        """Count the showings of each item, and its annotators where they are known."""
        if shown is None:
            shown = self._counted("counts_by_item", "judgments", by_unit=False)
        if not self.log.knows_annotators:
            return shown, None
        return shown, self._counted("annotators_by_item", "annotators", by_unit=True)

    def _counted(self, statement: str, column: str, *, by_unit: bool) -> IntArray:
        found = self.log.query(statement, showings=showings_view(self.log, by_unit=by_unit))
        return by_item(found, self.items)[column].to_numpy().astype(np.int32)

    def likelihood(self, model: PairedModel) -> LikelihoodMaker:
        """Return what makes the likelihood of these pairs."""
        return LikelihoodMaker(self, anchor=model.has_prior)


def ordered_view(log: Log, *, by_unit: bool) -> str:
    """Make the view of pairs with the lower name first; return its name."""
    name = f"{log.prefix}ordered{'_of_units' if by_unit else ''}"
    log.engine.view(name, log.sql("ordered_pairs", pairs=pairs_view(log, by_unit=by_unit)))
    return name


@dataclass(frozen=True)
class LikelihoodMaker:
    """Makes the likelihood of a log's pairs, once the model has chosen its rule for ties."""

    pairs: LogPairs
    anchor: bool

    def __call__(self, table: PairTable, rule: TieRule, items: NDArray[np.int64]) -> LogPairLikelihood:
        """Keep the pairs at hand, for intervals by unit."""
        return LogPairLikelihood(table, rule, self.pairs, items, anchor=self.anchor)


class LogPairLikelihood(PairLikelihood):
    """The likelihood of pairs counted by an engine, which goes back to the log for what units say."""

    def __init__(
        self, table: PairTable, rule: TieRule, pairs: LogPairs, items: NDArray[np.int64], *, anchor: bool
    ) -> None:
        super().__init__(table, rule, anchor=anchor)
        self._log = pairs.log
        self._names = [pairs.items[int(code)] for code in items]

    def _kept_by_unit(self) -> str:
        """Keep each unit's counts of pairs; return their name."""
        name = f"{self._log.prefix}unit_pairs"
        ordered = ordered_view(self._log, by_unit=True)
        self._log.engine.keep(name, self._log.sql("pairs_by_unit", ordered=ordered))
        return name

    def scatter_by_unit(self, theta: FloatArray, tie: float, units: Units) -> UnitScatter:
        """Give the engine what each outcome of each pair says, and have it summed by unit."""
        if units.kind == "judgments":
            raise ConfigError(
                "sandwich intervals over single judgments need every row in memory.",
                "Choose --set interval=posterior or --set interval=bootstrap, or use --engine memory.",
            )
        self._log.engine.put(f"{self._log.prefix}terms", self._terms(theta, tie))
        found = self._log.query("pair_scatter", by_unit=self._kept_by_unit())
        # In the order of the units' names: the draws of many items' intervals go by it.
        _, unit = np.unique(found["unit"].to_numpy().astype(str), return_inverse=True)
        shape = (int(unit.max()) + 1, self.n_items + (self.tie_start is not None))
        cells = unit, found["item"].to_numpy()
        return UnitScatter(
            sparse.csr_array((found["slope"].to_numpy(), cells), shape=shape),
            sparse.csr_array((found["information"].to_numpy(), cells), shape=shape),
        )

    def _terms(self, theta: FloatArray, tie: float) -> pl.DataFrame:
        """Evaluate every outcome of every pair once: slopes and bends for either item and the tie parameter."""
        d = theta[self.first] - theta[self.second]
        tied = (0.5, 0.5, 0.0) if self.rule.half else (0.0, 0.0, 1.0)
        columns: dict[str, list[FloatArray]] = {}
        learns = self.rule.learns
        for name, counts in (("win", (1.0, 0.0, 0.0)), ("loss", (0.0, 1.0, 0.0)), ("tie", tied)):
            if self.rule.drop and name == "tie":
                terms = np.zeros((len(d), 6))
            else:
                terms = np.array([pair_terms(self.rule.family, x, tie, *counts) for x in d]).reshape(len(d), 6)
            slope, bend, tie_slope, tie_bend = terms[:, 1], terms[:, 2], terms[:, 3], terms[:, 5]
            columns[f"{name}_slope"] = [slope, -slope, *([tie_slope] if learns else [])]
            columns[f"{name}_bend"] = [bend, bend, *([tie_bend] if learns else [])]
        times = 3 if learns else 2
        whom = [self.first, self.second, *([np.full(len(d), self.n_items, np.int32)] if learns else [])]
        names = pl.Series(self._names, dtype=pl.String)
        ids = {
            "first_item": pl.concat([names.gather(self.first)] * times),
            "second_item": pl.concat([names.gather(self.second)] * times),
            "item": pl.Series(np.concatenate(whom)),
        }
        return pl.DataFrame(ids | {name: pl.Series(np.concatenate(parts)) for name, parts in columns.items()})

    def resamples(self, units: Units, replicates: int, seed: int) -> Iterator[Likelihood]:
        """Have the units weighed and summed, some replicates at a time; single comparisons are drawn by cell."""
        if units.kind == "judgments":
            if self._log.kind != "comparisons":
                raise ConfigError(
                    "resampling single choices needs every row in memory.",
                    "Say who judged (a column annotator), or use --engine memory.",
                )
            yield from super().resamples(units, replicates, seed)
            return
        cells = self._kept_by_unit()
        index = Index(self._names)
        known = pair_key(self.first, self.second, self.n_items)
        step = max(1, RESULT_ROWS // max(1, len(known)))
        for start in range(0, replicates, step):
            part = range(start, min(start + step, replicates))
            weigh(self._log, cells, part, seed)
            found = self._log.query("resampled_pairs", cells=cells)
            if self.rule.drop:
                among = found["first_item"].is_in(index.ids) & found["second_item"].is_in(index.ids)
                found = found.filter(among)
            key = pair_key(coded(found["first_item"], index), coded(found["second_item"], index), self.n_items)
            place = np.searchsorted(known, key)
            there = (place < len(known)) & (known[np.minimum(place, len(known) - 1)] == key)
            replicate = found["replicate"].to_numpy() - start
            counts = np.zeros((len(part), 3, len(known)))
            for number, name in enumerate(("wins", "losses", "ties")):
                if self.rule.drop and name == "ties":
                    continue
                counts[replicate[there], number, place[there]] = found[name].to_numpy()[there]
            for drawn in counts:
                yield self._with(drawn)
