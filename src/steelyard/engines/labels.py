"""Counted labels from a log: for majority, gold calibration and Dawid–Skene."""

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
    """The labels of a log, counted by an engine."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.knows_annotators = log.knows_annotators
        votes = log.query("votes")
        self.items, self.classes = index_of(votes["item"]), index_of(votes["label"])
        self.votes = np.zeros((len(self.items), len(self.classes)), np.int32)
        self.votes[coded(votes["item"], self.items), coded(votes["label"], self.classes)] = votes["n"].to_numpy()
        given = log.query("given") if log.knows_annotators else None
        self.annotators = Index() if given is None else index_of(given["annotator"])
        self._given = np.zeros((len(self.annotators), len(self.classes)), np.int64)
        if given is not None:
            place = coded(given["annotator"], self.annotators), coded(given["label"], self.classes)
            self._given[place] = given["n"].to_numpy()

    def annotators_by_item(self) -> IntArray | None:
        """Have them counted."""
        if not self.knows_annotators:
            return None
        return by_item(self.log.query("label_annotators"), self.items)["annotators"].to_numpy().astype(np.int32)

    def given(self) -> NDArray[np.int64]:
        """Return what was counted at the start."""
        return self._given

    def coded_view(self, gold: IntArray | None = None, fold: IntArray | None = None, *, keep: bool = False) -> str:
        """Make the view of labels as numbers, kept for statements that come again and again; return its name."""
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
        name, make = (f"{p}labels_kept", engine.keep) if keep else (f"{p}labels", engine.view)
        make(name, self.log.sql("coded_labels"))
        return name

    def confusion(self, gold: IntArray) -> FloatArray:
        """Have the labels of items with gold counted."""
        return np.asarray(self._confusion(gold, np.full(len(gold), UNKNOWN, np.int32)).sum(axis=0), np.float64)

    def _confusion(self, gold: IntArray, fold: IntArray) -> FloatArray:
        """Count (fold, annotator, true, given); items without a fold come last."""
        found = self.log.query("confusion", labels=self.coded_view(gold, fold))
        n, k, folds = len(self.annotators), len(self.classes), int(fold.max(initial=UNKNOWN)) + 1
        counts = np.zeros((folds + 1, n, k, k))
        place = tuple(found[name].to_numpy() for name in ("fold", "annotator", "gold", "label"))
        counts[place] = found["n"].to_numpy()
        return counts

    def left_out(self, gold: IntArray, fold: IntArray) -> LogLeftOut:
        """Have them counted by fold; only folds that an annotator met get a key."""
        by_fold = self._confusion(gold, fold)
        total = by_fold.sum(axis=0)
        labels = self.coded_view(gold, fold, keep=True)
        met = self.log.query("folds_met", labels=labels).sort("fold", "annotator")
        of_fold, who = met["fold"].to_numpy(), met["annotator"].to_numpy()
        counts = np.concatenate([total, total[who] - by_fold[of_fold, who]])
        return LogLeftOut(self, labels, counts, who, of_fold)


@dataclass
class LogLeftOut(LeftOut):
    """The counts, and the annotator and fold of every further key."""

    tally: LogLabels
    labels: str
    counts: FloatArray
    annotator: NDArray[np.int32]
    fold: NDArray[np.int32]

    def summed(self, values: FloatArray) -> FloatArray:
        """Send the values to the engine, and have them summed by item."""
        n, k = len(self.tally.annotators), len(self.tally.classes)
        who = np.concatenate([np.arange(n, dtype=np.int32), self.annotator])
        fold = np.concatenate([np.full(n, UNKNOWN, np.int32), self.fold])
        told = told_frame(np.swapaxes(values, 1, 2), who, fold)
        return summed_by_item(self.tally.log, self.labels, told, (len(self.tally.items), k))


def told_frame(values: FloatArray, annotator: NDArray[np.int32], fold: NDArray[np.int32]) -> pl.DataFrame:
    """Lay values (key, given, true) out as rows."""
    keys, k, _ = values.shape
    key, given, true = np.unravel_index(np.arange(values.size), (keys, k, k))
    return pl.DataFrame(
        {
            "annotator": pl.Series(annotator[key]),
            "fold": pl.Series(fold[key]),
            "label": pl.Series(given.astype(np.int32)),
            "true_class": pl.Series(true.astype(np.int32)),
            "value": pl.Series(values.ravel()),
        }
    )


def summed_by_item(log: Log, labels: str, told: pl.DataFrame, shape: tuple[int, int]) -> FloatArray:
    """Add up what the labels of each item say of each true class."""
    log.engine.put(f"{log.prefix}told", told)
    found = log.query("label_sums", labels=labels)
    sums = np.zeros(shape)
    sums[found["item"].to_numpy(), found["true_class"].to_numpy()] = found["value"].to_numpy()
    return sums


@dataclass(frozen=True, eq=False, kw_only=True)
class LogGroups(LabelGroups):
    """Labels in an engine, for EM: every step is a join and a GROUP BY."""

    log: Log
    labels: str

    @classmethod
    def of(cls, model: str, tally: LogLabels, gold: Gold | None) -> LogGroups:
        """Keep the labels as numbers, and line the gold up with them."""
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
        """Have the items of annotators with weight listed."""
        if (weight > 0).all():
            return self.judgments > 0
        drawn = np.flatnonzero(weight > 0).astype(np.int32)
        self.log.engine.put(f"{self.log.prefix}drawn", pl.DataFrame({"annotator": pl.Series(drawn)}))
        items = np.zeros(len(self.gold), np.bool_)
        items[self.log.query("items_drawn", labels=self.labels)["item"].to_numpy()] = True
        return items

    def expected(self, posterior: FloatArray) -> FloatArray:
        """Send the posterior to the engine, and have it summed by annotator."""
        self._put(posterior)
        found = self.log.query("expected_confusion", labels=self.labels)
        counts = np.zeros((self.n_annotators, self.n_classes, self.n_classes))
        place = tuple(found[name].to_numpy() for name in ("annotator", "label", "true_class"))
        counts[place] = found["expected"].to_numpy()
        return counts

    def _put(self, posterior: FloatArray) -> None:
        n, k = posterior.shape
        item, true = np.divmod(np.arange(n * k, dtype=np.int32), k)
        frame = {"item": item, "true_class": true, "probability": posterior.ravel()}
        self.log.engine.put(f"{self.log.prefix}posterior", pl.DataFrame(frame))

    def step(self, log_confusion: FloatArray, log_prior: FloatArray, posterior: FloatArray) -> tuple[float, FloatArray]:
        """Have the log-likelihoods summed by item, normalise them here, and have the posterior summed by annotator."""
        score = log_prior + self.summed(log_confusion)
        judged = self.judgments > 0
        total = special.logsumexp(score, axis=1)
        known = self.settled & judged
        rows = np.flatnonzero(known)
        found = float(total[judged & ~known].sum() + score[rows, self.gold[rows]].sum())
        posterior[judged] = np.exp(score[judged] - total[judged, None])
        posterior[rows] = np.eye(self.n_classes)[self.gold[rows]]
        return found, self.expected(posterior)

    def summed(self, cells: FloatArray) -> FloatArray:
        """Send the values to the engine, and have them summed by item."""
        who = np.arange(self.n_annotators, dtype=np.int32)
        told = told_frame(cells, who, np.full(self.n_annotators, UNKNOWN, np.int32))
        return summed_by_item(self.log, self.labels, told, (len(self.gold), self.n_classes))

    def rightness(self, posterior: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Have the labels' probabilities summed by annotator."""
        self._put(posterior)
        found = self.log.query("rightness", labels=self.labels)
        expected, spread = np.zeros(self.n_annotators), np.zeros(self.n_annotators)
        who = found["annotator"].to_numpy()
        expected[who], spread[who] = found["expected"].to_numpy(), found["spread"].to_numpy()
        return expected, spread
