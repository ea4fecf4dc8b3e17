"""Pair counts of a log, for Bradley–Terry, Thurstone and the win rate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from steelyard.engines.log import Log, by_item, coded, index_of, outcome_sql
from steelyard.engines.values import RESULT_ROWS
from steelyard.engines.weights import create_weights
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
    """Create the view (unit, left_item, right_item, n, outcome) of a log's comparisons; return its name."""
    name = f"{log.prefix}pairs{'_of_units' if by_unit else ''}"
    unit = log.unit_column if by_unit else "CAST(NULL AS STRING)"
    if log.kind == "comparisons":
        log.engine.view(name, log.sql("comparison_pairs", unit=unit, outcome=outcome_sql(log.words)))
    else:
        parts = [log.sql("choice_pairs", unit=unit, item=item) for item in log.item_columns]
        log.engine.view(name, "\nUNION ALL\n".join(parts))
    return name


def appearances_view(log: Log, *, by_unit: bool, win_rate: bool = False) -> str:
    """Create the view (unit, item, value, n) of the items in each judgment; return its name."""
    name = f"{log.prefix}{'wins' if win_rate else 'appearances'}{'_of_units' if by_unit else ''}"
    if log.kind == "comparisons" or win_rate:
        values = ("(outcome + 1) / CAST(2 AS DOUBLE)", "(1 - outcome) / CAST(2 AS DOUBLE)")
        left, right = values if win_rate else ("CAST(outcome AS DOUBLE)", "CAST(-outcome AS DOUBLE)")
        pairs = pairs_view(log, by_unit=by_unit)
        log.engine.view(name, log.sql("pair_appearances", pairs=pairs, left_value=left, right_value=right))
    else:
        unit = log.unit_column if by_unit else "CAST(NULL AS STRING)"
        parts = [log.sql("choice_appearances", unit=unit, item=item) for item in log.item_columns]
        log.engine.view(name, "\nUNION ALL\n".join(parts))
    return name


@dataclass(frozen=True)
class LogPairs(Sample):
    """The pair counts of a log, with their items."""

    log: Log
    items: Index
    table: PairTable

    @classmethod
    def of(cls, log: Log) -> LogPairs:
        """Count the pairs."""
        items = index_of(log.query("counts_by_item", appearances=appearances_view(log, by_unit=False))["item"])
        codes = pl.Series(np.arange(len(items), dtype=np.int32))
        log.engine.put(f"{log.prefix}ids", pl.DataFrame({"id": pl.Series(items.ids, dtype=pl.String), "code": codes}))
        rows = log.query("pair_table", pairs=pairs_view(log, by_unit=False))
        first, second = (rows[name].to_numpy().astype(np.int32) for name in ("first_item", "second_item"))
        order = np.argsort(pair_key(first, second, len(items)), kind="stable")
        counts = [rows[name].to_numpy()[order].astype(np.float64) for name in ("wins", "losses", "ties")]
        return cls(log, items, PairTable(len(items), first[order], second[order], *counts))

    def units(self) -> Units:
        """Count the units."""
        if self.log.unit == "judgments":
            return self.single()
        by_unit = appearances_view(self.log, by_unit=True)
        count = self.log.query("count", what="DISTINCT unit", view=by_unit)["n"][0]
        return Units(self.log.unit, (), _NONE, int(count))

    def single(self) -> Units:
        """Return single judgments as the units: every usable row."""
        return Units("judgments", (), _NONE, self.log.rows)

    def counts(self, appearances: IntArray | None) -> tuple[IntArray, IntArray | None]:
        """Count the appearances of each item, and its annotators if they are known."""
        if appearances is None:
            appearances = self._counted("counts_by_item", "judgments", by_unit=False)
        if not self.log.knows_annotators:
            return appearances, None
        return appearances, self._counted("annotators_by_item", "annotators", by_unit=True)

    def _counted(self, statement: str, column: str, *, by_unit: bool) -> IntArray:
        rows = self.log.query(statement, appearances=appearances_view(self.log, by_unit=by_unit))
        return by_item(rows, self.items)[column].to_numpy().astype(np.int32)

    def likelihood(self, model: PairedModel) -> LikelihoodMaker:
        """Return a factory of the likelihood of these pairs."""
        return LikelihoodMaker(self, anchor=model.has_prior)


def ordered_view(log: Log, *, by_unit: bool) -> str:
    """Create the view of pairs with the alphabetically lower id first; return its name."""
    name = f"{log.prefix}ordered{'_of_units' if by_unit else ''}"
    log.engine.view(name, log.sql("ordered_pairs", pairs=pairs_view(log, by_unit=by_unit)))
    return name


@dataclass(frozen=True)
class LikelihoodMaker:
    """Creates the likelihood of a log's pairs once the model has chosen its rule for ties."""

    pairs: LogPairs
    anchor: bool

    def __call__(self, table: PairTable, rule: TieRule, items: NDArray[np.int64]) -> LogPairLikelihood:
        """Create a likelihood that can query the log for intervals by unit."""
        return LogPairLikelihood(table, rule, self.pairs, items, anchor=self.anchor)


class LogPairLikelihood(PairLikelihood):
    """The likelihood of pairs counted by an engine; it queries the log for counts by unit."""

    def __init__(
        self, table: PairTable, rule: TieRule, pairs: LogPairs, items: NDArray[np.int64], *, anchor: bool
    ) -> None:
        super().__init__(table, rule, anchor=anchor)
        self._log = pairs.log
        self._names = [pairs.items[int(code)] for code in items]

    def _store_by_unit(self) -> str:
        """Store the pair counts of each unit; return the table's name."""
        name = f"{self._log.prefix}unit_pairs"
        ordered = ordered_view(self._log, by_unit=True)
        self._log.engine.keep(name, self._log.sql("pairs_by_unit", ordered=ordered))
        return name

    def scatter_by_unit(self, theta: FloatArray, tie: float, units: Units) -> UnitScatter:
        """Upload the derivatives for each outcome of each pair and sum them by unit."""
        if units.kind == "judgments":
            raise ConfigError(
                "sandwich intervals over single judgments need every row in memory.",
                "Choose --set interval=posterior or --set interval=bootstrap, or use --engine memory.",
            )
        self._log.engine.put(f"{self._log.prefix}terms", self._terms(theta, tie))
        rows = self._log.query("pair_scatter", by_unit=self._store_by_unit())
        # Sorted by the units' names, because the random draws for intervals of many items depend on the order.
        _, unit = np.unique(rows["unit"].to_numpy().astype(str), return_inverse=True)
        shape = (int(unit.max()) + 1, self.n_items + self.n_ties)
        cells = unit, rows["item"].to_numpy()
        return UnitScatter(
            sparse.csr_array((rows["slope"].to_numpy(), cells), shape=shape),
            sparse.csr_array((rows["information"].to_numpy(), cells), shape=shape),
        )

    def _terms(self, theta: FloatArray, tie: float) -> pl.DataFrame:
        """Evaluate slope and curvature of each outcome of each pair, for both items and the tie parameter."""
        d = theta[self.first] - theta[self.second]
        tied = (0.5, 0.5, 0.0) if self.rule.half else (0.0, 0.0, 1.0)
        columns: dict[str, list[FloatArray]] = {}
        learns = self.rule.learns
        for name, counts in (("win", (1.0, 0.0, 0.0)), ("loss", (0.0, 1.0, 0.0)), ("tie", tied)):
            if self.rule.drop and name == "tie":
                terms = np.zeros((len(d), 6))
            else:
                terms = np.array([pair_terms(self.rule.family, x, tie, *counts) for x in d]).reshape(len(d), 6)
            slope, curvature, tie_slope, tie_curvature = terms[:, 1], terms[:, 2], terms[:, 3], terms[:, 5]
            columns[f"{name}_slope"] = [slope, -slope, *([tie_slope] if learns else [])]
            columns[f"{name}_curvature"] = [curvature, curvature, *([tie_curvature] if learns else [])]
        copies = 3 if learns else 2
        parameters = [self.first, self.second, *([np.full(len(d), self.n_items, np.int32)] if learns else [])]
        names = pl.Series(self._names, dtype=pl.String)
        ids = {
            "first_item": pl.concat([names.gather(self.first)] * copies),
            "second_item": pl.concat([names.gather(self.second)] * copies),
            "item": pl.Series(np.concatenate(parameters)),
        }
        return pl.DataFrame(ids | {name: pl.Series(np.concatenate(parts)) for name, parts in columns.items()})

    def resamples(self, units: Units, replicates: int, seed: int) -> Iterator[Likelihood]:
        """Sum the weighted units, some replicates at a time; single comparisons are resampled by cell."""
        if units.kind == "judgments":
            if self._log.kind != "comparisons":
                raise ConfigError(
                    "resampling single choices needs every row in memory.",
                    "Add a column annotator, or use --engine memory.",
                )
            yield from super().resamples(units, replicates, seed)
            return
        cells = self._store_by_unit()
        index = Index(self._names)
        pair_keys = pair_key(self.first, self.second, self.n_items)
        step = max(1, RESULT_ROWS // max(1, len(pair_keys)))
        for start in range(0, replicates, step):
            part = range(start, min(start + step, replicates))
            create_weights(self._log, cells, part, seed)
            rows = self._log.query("resampled_pairs", cells=cells)
            if self.rule.drop:
                among = rows["first_item"].is_in(index.ids) & rows["second_item"].is_in(index.ids)
                rows = rows.filter(among)
            key = pair_key(coded(rows["first_item"], index), coded(rows["second_item"], index), self.n_items)
            place = np.searchsorted(pair_keys, key)
            in_table = (place < len(pair_keys)) & (pair_keys[np.minimum(place, len(pair_keys) - 1)] == key)
            replicate = rows["replicate"].to_numpy() - start
            counts = np.zeros((len(part), 3, len(pair_keys)))
            for number, name in enumerate(("wins", "losses", "ties")):
                if self.rule.drop and name == "ties":
                    continue
                counts[replicate[in_table], number, place[in_table]] = rows[name].to_numpy()[in_table]
            for resampled in counts:
                yield self.with_counts(resampled)
