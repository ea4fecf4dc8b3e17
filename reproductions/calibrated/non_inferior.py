"""Non-inferior: the calibrated scale against the plain estimate on recorded judgments of many kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reproductions.base import Claim, Experiment, Outcome, Progress
from reproductions.calibrated.adaptive import adaptive_session
from reproductions.calibrated.methods import CALIBRATED, PAPER, PLAIN, both_ways, pearson, scored, spearman
from reproductions.cheap_fast.recordings import few_of_each, read_affect, read_labels, read_similarities
from reproductions.comparative_judgement.sessions import DECISIONS, SESSIONS, read_sessions
from steelyard.formats import read_judgments, read_table
from steelyard.models.calibrated.scale import CalibratedScale
from steelyard.models.comparisons.bradley_terry import BradleyTerry
from steelyard.observations import Comparisons, FloatArray, Labels, Ratings
from steelyard.reliability.splitting import take

PAIRS = ("cs-en", "de-en", "ha-en")
BINARY = ("rte", "temp")
SHARED = " (adaptive, halves share the pairing)"
ADAPTIVE, SAME_SCRIPTS = "Bramley2018_1a", "Bramley2018_2"


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """One set of judgments scored both ways, with what the scores should agree with; all by item."""

    plain: FloatArray
    ours: FloatArray
    reference: FloatArray
    agreement: Callable[[FloatArray, FloatArray], float] = pearson

    def gain(self, rows: NDArray[np.integer]) -> float:
        """Return how much better ours agrees with the reference, over some items."""
        reference = self.reference[rows]
        return self.agreement(self.ours[rows], reference) - self.agreement(self.plain[rows], reference)


@dataclass(frozen=True, slots=True)
class NonInferior(Experiment):
    """Score few judgments both ways, correlate with gold or with judgments set aside, and resample the items."""

    name: ClassVar[str] = "calibrated.non_inferior"
    paper: ClassVar[str] = PAPER
    title: ClassVar[str] = "Non-inferior: gain over the plain estimate on recorded judgments"
    data: ClassVar[tuple[str, ...]] = (
        "snow2008/affect.csv.gz",
        "snow2008/wordsim.csv.gz",
        *(f"snow2008/{name}.csv.gz" for name in BINARY),
        *(f"wmt21-da/{pair}.csv.gz" for pair in PAIRS),
        *(f"wmt21-da/official_{pair}.csv" for pair in PAIRS),
        DECISIONS,
        SESSIONS,
    )

    few: tuple[int, ...] = (1, 2, 3, 5)
    by_system: tuple[int, ...] = (25, 50, 100, 200)
    sets: tuple[str, ...] | None = None
    """Sets of ratings to take; None for all."""
    most_decisions: int = 5000
    trials: int = 8
    draws: int = 400
    seed: int = 0

    def small(self) -> Self:
        """Return one trial of some recordings, and no systems."""
        sets = ("affect, anger", "affect, joy", "affect, valence", "word similarity", "RTE")
        return replace(self, sets=sets, few=(3,), by_system=(), most_decisions=400, trials=1, draws=80)

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Go over the recordings one by one."""
        rows = []
        sets = list(self._sets(data))
        for done, (where, judgments, trials) in enumerate(sets, 1):
            rows.append({"data": where, "judgments": judgments, **self._compared([trial() for trial in trials])})
            progress(done, len(sets))
        table = pl.DataFrame(rows)
        shared = pl.col("data").str.ends_with(SHARED)
        fair = table.filter(~shared)
        worse = pl.col("upper") < 0
        claims = [
            Claim("sets of judgments compared", fair.height),
            Claim("sets where the calibrated scale is worse beyond noise", fair.filter(worse).height),
            Claim("sets where it is better beyond noise", fair.filter(pl.col("lower") > 0).height),
            Claim("mean gain over all sets", float(fair["gain"].mean() or 0.0)),  # type: ignore[arg-type]
            Claim("adaptive sessions halved at random: worse beyond noise", table.filter(shared & worse).height),
        ]
        return Outcome(
            tuple(claims),
            table,
            None,
            (
                "gain: agreement of the calibrated scale minus that of the plain estimate (mean; Bradley–Terry for "
                "comparisons), averaged over trials, with a 95 % bootstrap interval over items.",
                "affect, word similarity, RTE and temporal order: r with gold, at this number of judgments per "
                "item; WMT 2021: "
                "ρ with the official score of the systems, at this number of judgments per system; comparative "
                "judgement: half "
                "of the decisions, ρ with Bradley–Terry of the other half.",
                "the pairs of an adaptive session depend on all of its decisions, so that random halves share this "
                "information and agree too well: those rows are not counted. They are replaced by the whole session "
                "of Bramley & Vitello against their second one (the same scripts, paired at random), and by "
                "simulated adaptive sessions against the true values.",
                "with this many data sets, one in forty is expected to be below zero by chance.",
            ),
        )

    def _compared(self, trials: list[Trial]) -> dict[str, float]:
        rng = np.random.default_rng(self.seed)
        n = len(trials[0].reference)

        def gain(rows: NDArray[np.integer]) -> float:
            return float(np.mean([trial.gain(rows) for trial in trials]))

        everything = np.arange(n)
        resampled = [gain(rng.integers(n, size=n)) for _ in range(300)]
        low, high = np.nanquantile(resampled, [0.025, 0.975])
        return {
            "plain": float(np.mean([t.agreement(t.plain, t.reference) for t in trials])),
            "calibrated": float(np.mean([t.agreement(t.ours, t.reference) for t in trials])),
            "gain": gain(everything),
            "lower": float(low),
            "upper": float(high),
        }

    def _sets(self, data: Path) -> Iterator[tuple[str, int, Sequence[Callable[[], Trial]]]]:
        rated: dict[str, tuple[Ratings, dict[str, float]]] = {
            f"affect, {name}": found for name, found in read_affect(data).items()
        }
        rated["word similarity"] = read_similarities(data)
        for name, where in zip(BINARY, ("RTE", "temporal order"), strict=True):
            rated[where] = _as_ratings(*read_labels(data, name))
        for where, (ratings, gold) in rated.items():
            if self.sets is not None and where not in self.sets:
                continue
            reference = np.array([gold[item] for item in ratings.items.ids])
            for count in self.few:
                yield where, count, [_Scoring(self, ratings, reference, count, t) for t in range(self.trials)]
        for pair in PAIRS:
            ratings, reference = _systems(data, pair)
            for count in self.by_system:
                yield (
                    f"WMT 2021 {pair}",
                    count,
                    [_Scoring(self, ratings, reference, count, t) for t in range(self.trials)],
                )
        sessions = {session.name: session for session in read_sessions(data, self.most_decisions)}
        for name, session in sessions.items():
            halves = [_Scoring(self, session.comparisons, None, 0, t, spearman) for t in range(self.trials)]
            where = f"session {name}{SHARED if session.published['adaptive'] == 'TRUE' else ''}"
            yield where, len(session.comparisons) // 2, halves
        if {ADAPTIVE, SAME_SCRIPTS} <= set(sessions):
            one, other = (sessions[name].comparisons for name in (ADAPTIVE, SAME_SCRIPTS))
            score = dict(zip(other.items.ids, scored(BradleyTerry(draws=20), other).tolist(), strict=True))
            reference = np.array([score[item] for item in one.items.ids])
            yield f"session {ADAPTIVE} against {SAME_SCRIPTS}", len(one), [_Whole(self, one, reference)]
        simulations = [adaptive_session(np.random.default_rng([self.seed, trial])) for trial in range(self.trials)]
        yield "adaptive sessions, simulated", len(simulations[0][0]), [_Whole(self, *each) for each in simulations]


@dataclass(frozen=True, slots=True, eq=False)
class _Whole:
    """Score all comparisons of a session."""

    settings: NonInferior
    comparisons: Comparisons
    reference: FloatArray

    def __call__(self) -> Trial:
        ours = scored(CalibratedScale(draws=self.settings.draws), self.comparisons)
        return Trial(scored(BradleyTerry(draws=20), self.comparisons), ours, self.reference, spearman)


@dataclass(frozen=True, slots=True, eq=False)
class _Scoring:
    """How to make a trial: some judgments of each item against a reference, or half of the comparisons."""

    settings: NonInferior
    observations: Ratings | Comparisons
    reference: FloatArray | None
    count: int
    trial: int
    agreement: Callable[[FloatArray, FloatArray], float] = pearson

    def __call__(self) -> Trial:
        rng = np.random.default_rng([self.settings.seed, self.trial])
        draws = self.settings.draws
        if self.reference is not None:
            score = both_ways(few_of_each(cast("Ratings", self.observations), self.count, rng), draws)
            return Trial(score[PLAIN], score[CALIBRATED], self.reference, self.agreement)
        half = rng.permutation(len(self.observations)) < len(self.observations) // 2
        one, other = (take(self.observations, rows) for rows in (half, ~half))
        plain = BradleyTerry(draws=20)
        ours = scored(CalibratedScale(draws=draws), one)
        return Trial(scored(plain, one), ours, scored(plain, other), self.agreement)


def _as_ratings(labels: Labels, gold: dict[str, str]) -> tuple[Ratings, dict[str, float]]:
    """Take two classes as 0 and 1."""
    high = labels.classes.ids[-1]
    return (
        Ratings(
            items=labels.items,
            annotators=labels.annotators,
            annotator=labels.annotator,
            item=labels.item,
            value=(labels.label == len(labels.classes) - 1).astype(np.float64),
            scale=(0.0, 1.0),
        ),
        {item: float(label == high) for item, label in gold.items()},
    )


def _systems(data: Path, pair: str) -> tuple[Ratings, FloatArray]:
    """Read direct assessments as ratings of systems, and the official scores."""
    frame = read_table(data / f"wmt21-da/{pair}.csv.gz").filter(pl.col("type") == "SYSTEM")
    chosen = frame.select("annotator", item="system", value="score_raw")
    ratings = cast("Ratings", read_judgments(chosen, kind="ratings", scale=(0, 100)).observations)
    official = dict(read_table(data / f"wmt21-da/official_{pair}.csv").select("system", "z").iter_rows())
    return ratings, np.array([float(official[item]) for item in ratings.items.ids])
