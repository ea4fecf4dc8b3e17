"""Split-half reliability of a log, with the same hash-based splits as `reliability.splitting`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import polars as pl

from steelyard.engines.engine import sql
from steelyard.engines.log import NULL, Log, index_of
from steelyard.engines.pairs import appearances_view, pairs_view
from steelyard.engines.values import RESULT_ROWS
from steelyard.engines.weights import hexadecimal
from steelyard.models.inference.hashing import hashed, multiplier_and_shift
from steelyard.observations import KINDS, FloatArray, Index, Observations
from steelyard.reliability.split_trials import Scores
from steelyard.reliability.splitting import FIRST, SECOND, Splitter, scores_of_halves

_OF_CHOICES = "s.annotator, s.annotator_hash, s.unit_hash, s.best, s.worst, s.content0, s.content1"


class LogSplit:
    """The ratings, comparisons or choices of a log, ready to be split and scored (a `Splittable`)."""

    def __init__(self, log: Log, seed: int) -> None:
        self._log, self._seed = log, seed
        self._n_positions = len(log.item_columns) or (2 if log.kind == "comparisons" else 1)
        self._put_items()
        log.engine.view(self._view_name("annotators"), self._hashes("annotator"))
        log.engine.view(self._view_name("tasks"), self._hashes("task"))
        self.rows = self._view_name("rows")
        log.engine.view(self.rows, self._judgments())

    def _view_name(self, name: str) -> str:
        return f"{self._log.prefix}split_{name}"

    def _put_items(self) -> None:
        columns = {
            "id": pl.Series(self.items.ids, dtype=pl.String),
            "code": pl.Series(np.arange(len(self.items), dtype=np.int64)),
            "hash": pl.Series(hashed(self.items.ids, self._seed)),
        }
        self._log.engine.put(self._view_name("items"), pl.DataFrame(columns))

    def _hashes(self, column: str) -> str:
        names = f"({self._log.sql('distinct_ids', column=column)}) AS names"
        return self._log.sql("unit_hashes", units=names, seed=self._seed, digits=hexadecimal("digest"))

    def _judgments(self) -> str:
        log = self._log
        if log.kind == "comparisons":
            pairs = pairs_view(log, by_unit=False)
            return log.sql("split_rows_of_comparisons", pairs=pairs, task="q.task" if log.knows_tasks else NULL)
        if log.kind != "choices":
            return log.sql("split_rows_of_ratings")
        items, numbers = self._view_name("items"), range(self._n_positions)
        rows = log.sql(
            "split_rows_of_choices",
            hashes=" + ".join(f"COALESCE(i{n}.hash, 0)" for n in numbers),
            codes=", ".join(f"COALESCE(i{n}.code, -1) AS item{n}" for n in numbers),
            joins="\n  ".join(
                f"LEFT JOIN {items} i{n} ON r.{column} = i{n}.id" for n, column in enumerate(log.item_columns)
            ),
        )
        return _sorted(rows, self._n_positions)

    @cached_property
    def items(self) -> Index:
        """The items in the judgments."""
        if self._log.kind == "ratings":
            return self._log.items
        return index_of(
            self._log.query("counts_by_item", appearances=appearances_view(self._log, by_unit=False))["item"]
        )

    @property
    def kind(self) -> type[Observations]:
        """The kind of observations."""
        return KINDS[self._log.kind]

    @property
    def n_items(self) -> int:
        """The number of items."""
        return len(self.items)

    def __len__(self) -> int:
        return len(self._log)

    @property
    def _unit(self) -> str:
        items = ", ".join(f"item{n}" for n in range(self._n_positions))
        return f"task, {items}" if self._log.kind == "comparisons" else items

    @property
    def _content(self) -> str:
        return "content0, content1" if self._log.kind == "choices" else "content0"

    def in_shared_units(self) -> int:
        """Count the judgments in units with at least two judgments."""
        return int(self._log.query("split_shared_units", rows=self.rows, unit=self._unit)["n"][0])

    def annotators(self) -> int:
        """Count the annotators; 0 if they are not known."""
        return len(self._annotator_names) if self._log.knows_annotators else 0

    @cached_property
    def _annotator_names(self) -> list[str]:
        return sorted(self._log.query("distinct_ids", column="annotator")["unit"].to_list())

    def scores(self, by: str, trials: int) -> Scores:
        """Sum the halves, some trials at a time."""
        log, halves = self._log, self._view_name("halves")
        if by == "unit":
            self._keep_entries()
        log.engine.put(self._view_name("positions"), pl.DataFrame({"position": np.arange(self._n_positions)}))
        largest = self._largest()
        step = max(1, RESULT_ROWS // max(len(log), 2 * self.n_items))
        for start in range(0, trials, step):
            part = range(start, min(start + step, trials))
            # A new view for each part: Spark's views keep the tables that existed when the view was created.
            log.engine.view(halves, self._by_unit(part) if by == "unit" else self._by_annotator(part))
            for total, count in self._sums(halves, part):
                yield scores_of_halves(total, count, largest)

    def _keep_entries(self) -> None:
        parts = {"rows": self.rows, "unit": self._unit, "content": self._content, "seed": self._seed}
        (first_occurrence_hash,) = hashed(["0"], self._seed).tolist()
        answer = {"ratings": "", "comparisons": ", outcome", "choices": ", best, worst"}[self._log.kind]
        parts["columns"] = f"{self._unit}, {self._content}{answer}"
        entries = self._log.sql(
            "split_entries", first_occurrence_hash=first_occurrence_hash, digits=hexadecimal("digest"), **parts
        )
        self._log.engine.keep(self._view_name("entries"), entries)

    def _by_unit(self, trials: range) -> str:
        """Return the statement that assigns judgments to halves by their rank within the unit."""
        pairs = [multiplier_and_shift(trial, self._seed) for trial in trials]
        columns = {
            "trial": list(trials),
            "multiplier": [one for one, _ in pairs],
            "shift": [other for _, other in pairs],
        }
        self._log.engine.put(self._view_name("trials"), pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.Int64)))
        entries = self._view_name("entries")
        return self._log.sql("split_halves", entries=entries, unit=self._unit, content=self._content)

    def _by_annotator(self, trials: range) -> str:
        """Return the statement that assigns each judgment to the half of its annotator."""
        splitter = Splitter.of_names(self._annotator_names, self._seed)
        tables = [
            pl.DataFrame(
                {"annotator": self._annotator_names, "half": splitter.halves(trial).astype(np.int64)}
            ).with_columns(pl.lit(trial, pl.Int64).alias("trial"))
            for trial in trials
        ]
        self._log.engine.put(self._view_name("annotator_halves"), pl.concat(tables))
        return self._log.sql("split_halves_by_annotator", rows=self.rows)

    def _largest(self) -> float:
        if self._log.kind != "ratings":
            return 1.0
        return float(self._log.query("largest_value")["largest"][0])

    def _sums(self, halves: str, trials: range) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield the totals and counts of every item by half, trial by trial."""
        item = " ".join(f"WHEN {position} THEN h.item{position}" for position in range(self._n_positions))
        item = f"CASE o.position {item} END"
        value = {
            "ratings": "h.content0",
            "comparisons": "CASE WHEN o.position = 0 THEN h.outcome ELSE -h.outcome END",
            "choices": f"CASE WHEN {item} = h.best THEN 1 ELSE 0 END - CASE WHEN {item} = h.worst THEN 1 ELSE 0 END",
        }[self._log.kind]
        rows = self._log.query("split_sums", halves=halves, item=item, value=value)
        sums = np.zeros((2, len(trials), len((FIRST, SECOND)), self.n_items))
        cells = rows["trial"].to_numpy() - trials.start, rows["half"].to_numpy(), rows["item"].to_numpy()
        for number, name in enumerate(("total", "n")):
            sums[(number, *cells)] = rows[name].cast(pl.Float64).to_numpy()
        yield from zip(*sums, strict=True)


def _sorted(rows: str, places: int) -> str:
    """Sort the item codes of each tuple by odd–even transposition, in as many passes as there are positions."""
    for turn in range(places):
        columns = [f"s.item{place}" for place in range(places)]
        for place in range(turn % 2, places - 1, 2):
            both = ", ".join(columns[place : place + 2])
            columns[place : place + 2] = f"LEAST({both})", f"GREATEST({both})"
        named = ", ".join(f"{column} AS item{place}" for place, column in enumerate(columns))
        rows = sql("split_rows_sorted", columns=f"{_OF_CHOICES}, {named}", rows=rows)
    return rows
