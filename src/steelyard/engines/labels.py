"""Label counts of a log, for majority, gold calibration and Dawid–Skene."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import special

from steelyard.engines.log import Log, by_item, coded, index_of
from steelyard.models.gold import Gold, gold_labels
from steelyard.models.labels.em import LabelGroups
from steelyard.models.labels.tally import LabelTally, LeftOut
from steelyard.observations import UNKNOWN, FloatArray, Index, IntArray


class LogLabels(LabelTally):
    """Label counts of a log, computed by an engine."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.knows_annotators = log.knows_annotators
        votes = log.query("label_counts_by_item")
        self.items, self.classes = index_of(votes["item"]), index_of(votes["label"])
        self.votes = np.zeros((len(self.items), len(self.classes)), np.int32)
        self.votes[coded(votes["item"], self.items), coded(votes["label"], self.classes)] = votes["n"].to_numpy()
        by_annotator = log.query("label_counts_by_annotator") if log.knows_annotators else None
        self.annotators = Index() if by_annotator is None else index_of(by_annotator["annotator"])
        self._label_counts = np.zeros((len(self.annotators), len(self.classes)), np.int64)
        if by_annotator is not None:
            cells = coded(by_annotator["annotator"], self.annotators), coded(by_annotator["label"], self.classes)
            self._label_counts[cells] = by_annotator["n"].to_numpy()

    def annotators_by_item(self) -> IntArray | None:
        """Query the number of annotators of each item; None if they are not known."""
        if not self.knows_annotators:
            return None
        return (
            by_item(self.log.query("annotators_by_labelled_item"), self.items)["annotators"].to_numpy().astype(np.int32)
        )

    def given(self) -> NDArray[np.int64]:
        """Return the label counts of every annotator (rows) and class (columns)."""
        return self._label_counts

    def coded_view(self, gold: IntArray | None = None, fold: IntArray | None = None, *, keep: bool = False) -> str:
        """Create the view of labels as integer codes and return its name; `keep` stores it for repeated queries."""
        engine, p = self.log.engine, self.log.prefix
        unknown = np.full(len(self.items), UNKNOWN, np.int32)
        columns = {
            "code": pl.Series(np.arange(len(self.items), dtype=np.int32)),
            "gold": pl.Series(unknown if gold is None else gold),
            "fold": pl.Series(unknown if fold is None else fold),
        }
        engine.put(f"{p}items", pl.DataFrame({"id": pl.Series(self.items.ids, dtype=pl.String), **columns}))
        for name, index in (("annotators", self.annotators), ("classes", self.classes)):
            codes = pl.Series(np.arange(len(index), dtype=np.int32))
            engine.put(f"{p}{name}", pl.DataFrame({"id": pl.Series(index.ids, dtype=pl.String), "code": codes}))
        name, create = (f"{p}labels_stored", engine.keep) if keep else (f"{p}labels", engine.view)
        create(name, self.log.sql("coded_labels"))
        return name

    def confusion(self, gold: IntArray) -> FloatArray:
        """Count (annotator, true, given) over the items with gold."""
        return np.asarray(self._confusion(gold, np.full(len(gold), UNKNOWN, np.int32)).sum(axis=0), np.float64)

    def _confusion(self, gold: IntArray, fold: IntArray) -> FloatArray:
        """Count (fold, annotator, true, given); the last entry is for items without a fold."""
        rows = self.log.query("confusion", labels=self.coded_view(gold, fold))
        n, k, folds = len(self.annotators), len(self.classes), int(fold.max(initial=UNKNOWN)) + 1
        counts = np.zeros((folds + 1, n, k, k))
        cells = tuple(rows[name].to_numpy() for name in ("fold", "annotator", "gold", "label"))
        counts[cells] = rows["n"].to_numpy()
        return counts

    def left_out(self, gold: IntArray, fold: IntArray) -> LogLeftOut:
        """Count by fold; an annotator has a further key only for folds with their labels."""
        by_fold = self._confusion(gold, fold)
        total = by_fold.sum(axis=0)
        labels = self.coded_view(gold, fold, keep=True)
        folds = self.log.query("folds_by_annotator", labels=labels).sort("fold", "annotator")
        of_fold, annotator = folds["fold"].to_numpy(), folds["annotator"].to_numpy()
        counts = np.concatenate([total, total[annotator] - by_fold[of_fold, annotator]])
        n = len(self.annotators)
        return LogLeftOut(
            self,
            labels,
            counts,
            np.concatenate([np.arange(n, dtype=np.int32), annotator]),
            np.concatenate([np.full(n, UNKNOWN, np.int32), of_fold]),
        )


@dataclass
class LogLeftOut(LeftOut):
    """The counts, and the annotator and fold of every key."""

    tally: LogLabels
    labels: str
    counts: FloatArray
    annotator: NDArray[np.int32]
    fold: NDArray[np.int32]

    def summed(self, values: FloatArray) -> FloatArray:
        """Upload the values and sum them by item."""
        frame = label_values(np.swapaxes(values, 1, 2), self.annotator, self.fold)
        return summed_by_item(self.tally.log, self.labels, frame, (len(self.tally.items), values.shape[1]))


def label_values(values: FloatArray, annotator: NDArray[np.int32], fold: NDArray[np.int32]) -> pl.DataFrame:
    """Return values (key, given, column) as a table with one row per value; a column is usually a true class."""
    key, given, true = np.unravel_index(np.arange(values.size), values.shape)
    return pl.DataFrame(
        {
            "annotator": pl.Series(annotator[key]),
            "fold": pl.Series(fold[key]),
            "label": pl.Series(given.astype(np.int32)),
            "true_class": pl.Series(true.astype(np.int32)),
            "value": pl.Series(values.ravel()),
        }
    )


def summed_by_item(log: Log, labels: str, values: pl.DataFrame, shape: tuple[int, int]) -> FloatArray:
    """Sum the values of each item's labels, by true class."""
    log.engine.put(f"{log.prefix}label_values", values)
    rows = log.query("label_sums", labels=labels)
    sums = np.zeros(shape)
    sums[rows["item"].to_numpy(), rows["true_class"].to_numpy()] = rows["value"].to_numpy()
    return sums


@dataclass(frozen=True, eq=False, kw_only=True)
class LogGroups(LabelGroups):
    """Labels in an engine, for EM: each step is a join and a GROUP BY."""

    log: Log
    labels: str

    @classmethod
    def of(cls, model: str, tally: LogLabels, gold: Gold | None) -> LogGroups:
        """Store the labels as integer codes, and align the gold with them."""
        unknown = np.full(len(tally.items), UNKNOWN, np.int32)
        judgments, annotators = tally.counts
        return cls(
            log=tally.log,
            labels=tally.coded_view(keep=True),
            gold=gold_labels(model, tally, gold, must_overlap=False) if gold else unknown,
            given=tally.given(),
            votes=tally.votes,
            judgments=judgments,
            annotators=unknown if annotators is None else annotators,
        )

    def drawn(self, weight: FloatArray) -> NDArray[np.bool_]:
        """Query the items of annotators with positive weight."""
        if (weight > 0).all():
            return self.judgments > 0
        sampled = pl.DataFrame({"annotator": np.flatnonzero(weight > 0).astype(np.int32)})
        self.log.engine.put(f"{self.log.prefix}sampled_annotators", sampled)
        items = np.zeros(len(self.gold), np.bool_)
        items[self.log.query("items_of_sampled_annotators", labels=self.labels)["item"].to_numpy()] = True
        return items

    def expected(self, posterior: FloatArray) -> FloatArray:
        """Upload the posterior and sum it by annotator."""
        self._put(posterior)
        rows = self.log.query("expected_confusion", labels=self.labels)
        counts = np.zeros((self.n_annotators, self.n_classes, self.n_classes))
        cells = tuple(rows[name].to_numpy() for name in ("annotator", "label", "true_class"))
        counts[cells] = rows["expected"].to_numpy()
        return counts

    def _put(self, posterior: FloatArray) -> None:
        n, k = posterior.shape
        item, true = np.divmod(np.arange(n * k, dtype=np.int32), k)
        frame = {"item": item, "true_class": true, "probability": posterior.ravel()}
        self.log.engine.put(f"{self.log.prefix}posterior", pl.DataFrame(frame))

    def step(self, log_confusion: FloatArray, log_prior: FloatArray, posterior: FloatArray) -> tuple[float, FloatArray]:
        """Sum the log-likelihoods by item in SQL, normalise them here, and sum the posterior by annotator in SQL."""
        score = log_prior + self.summed(log_confusion)
        judged = self.judgments > 0
        total = special.logsumexp(score, axis=1)
        with_gold = self.has_gold & judged
        rows = np.flatnonzero(with_gold)
        log_likelihood = float(total[judged & ~with_gold].sum() + score[rows, self.gold[rows]].sum())
        posterior[judged] = np.exp(score[judged] - total[judged, None])
        posterior[rows] = np.eye(self.n_classes)[self.gold[rows]]
        return log_likelihood, self.expected(posterior)

    def summed(self, cells: FloatArray) -> FloatArray:
        """Upload the values and sum them by item."""
        annotator = np.arange(self.n_annotators, dtype=np.int32)
        values = label_values(cells, annotator, np.full(self.n_annotators, UNKNOWN, np.int32))
        return summed_by_item(self.log, self.labels, values, (len(self.gold), self.n_classes))

    def rightness(self, posterior: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Sum the labels' probabilities of being correct, and their variances, by annotator."""
        self._put(posterior)
        rows = self.log.query("expected_correct", labels=self.labels)
        expected, variance = np.zeros(self.n_annotators), np.zeros(self.n_annotators)
        annotator = rows["annotator"].to_numpy()
        expected[annotator], variance[annotator] = rows["expected"].to_numpy(), rows["variance"].to_numpy()
        return expected, variance
