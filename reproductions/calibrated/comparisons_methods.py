"""Methods of pair selection and scoring, run for a given number of comparisons per item."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from enum import StrEnum

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reproductions.calibrated.comparisons_asap import Asap
from reproductions.calibrated.comparisons_people import People
from steelyard.designs.adaptive.design import Adaptive
from steelyard.designs.base import Pick, generator_for
from steelyard.designs.match_quality.selection import sample_round
from steelyard.designs.state import AnswerNotice
from steelyard.errors import SteelyardWarning
from steelyard.models.calibrated.scale import CalibratedScale
from steelyard.models.comparisons import paired_kernels as kernels
from steelyard.models.comparisons.paired import Pairs, PairTable
from steelyard.models.comparisons.paired_model import PairLikelihood, TieRule
from steelyard.models.comparisons.trueskill import TrueSkill
from steelyard.models.inference.newton import Estimate, maximise
from steelyard.observations import Comparisons, FloatArray, Index, IntArray
from steelyard.protocols import Pairwise
from steelyard.records import Item

FULL_ASAP_ITEMS = 100
"""Number of items up to which ASAP recomputes the full posterior for every pair; above, it is approximated."""
ASAP_NOISE, TRUESKILL_NOISE = 0.75, 0.5
"""One noise level for all annotators: the best of 0.5, 0.75, 1 and 1.5, for 500 items and mixed annotators."""
_PRIOR_SD = 2.0
"""The prior of Bradley–Terry, on its logit scale: the model's default."""


class Method(StrEnum):
    """A method of pair selection, and the model that scores the pairs."""

    RANDOM = "random pairs + Bradley–Terry"
    MATCH_QUALITY = "match quality + TrueSkill"
    ASAP = "ASAP"
    RANDOM_CALIBRATED = "random pairs + calibrated scale"
    ADAPTIVE = "adaptive + calibrated scale"


Scored = Iterator[tuple[int, FloatArray]]
"""Number of comparisons, and the scores estimated from them."""


class _Log:
    """All comparisons so far."""

    def __init__(self, n_items: int) -> None:
        self.n_items = n_items
        self.left: list[int] = []
        self.right: list[int] = []
        self.outcome: list[int] = []
        self.who: list[int] = []
        self._estimate: Estimate | None = None

    def __len__(self) -> int:
        return len(self.left)

    def add(self, left: IntArray, right: IntArray, outcome: NDArray[np.int8], who: IntArray) -> None:
        self.left += left.tolist()
        self.right += right.tolist()
        self.outcome += outcome.tolist()
        self.who += who.tolist()

    def bradley_terry(self) -> FloatArray:
        pairs = Pairs(
            np.array(self.left, np.int32), np.array(self.right, np.int32), np.array(self.outcome, np.int8), None
        )
        likelihood = PairLikelihood(PairTable.count(pairs, self.n_items), TieRule(kernels.LOGIT))
        self._estimate = maximise(likelihood, prior_sd=_PRIOR_SD, tolerance=1e-3, start=self._estimate)
        return self._estimate.theta

    def calibrated(self, people: int) -> FloatArray:
        observed = Comparisons(
            items=Index(map(str, range(self.n_items))),
            annotators=Index(map(str, range(people))),
            annotator=np.array(self.who, np.int32),
            left=np.array(self.left, np.int32),
            right=np.array(self.right, np.int32),
            outcome=np.array(self.outcome, np.int8),
        )
        with warnings.catch_warnings():
            # The model warns that the first few comparisons leave the scores uncertain.
            warnings.simplefilter("ignore", SteelyardWarning)
            scores = CalibratedScale().fit(observed).scores
        score = np.zeros(self.n_items)
        score[scores["item"].cast(pl.Int64).to_numpy()] = scores["score"].fill_null(0.0).to_numpy()
        return score


def _random(people: People, rng: np.random.Generator, score: Callable[[_Log], FloatArray]) -> Scored:
    n = len(people.truth)
    log = _Log(n)
    while True:
        order = rng.permutation(n).astype(np.int32)
        left, right = order[: n // 2], order[n // 2 : n // 2 * 2]
        who = people.next(len(left))
        log.add(left, right, people.compare(left, right, who), who)
        yield len(log), score(log)


def _match_quality(people: People, rng: np.random.Generator) -> Scored:
    n = len(people.truth)
    model = TrueSkill(gamma=TRUESKILL_NOISE, epsilon=0.0)
    state = model.start(n)
    index = Index(map(str, range(n)))
    done = 0
    while True:
        left, right = sample_round(state, 2, TRUESKILL_NOISE, rng).T
        outcome = people.compare(left, right, people.next(len(left)))
        pairs = Comparisons(items=index, left=left.copy(), right=right.copy(), outcome=outcome)
        state = model.update(state, pairs)
        done += len(left)
        yield done, state.mu


def _asap(people: People, rng: np.random.Generator) -> Scored:
    n = len(people.truth)
    asap = Asap(n, ASAP_NOISE, full=n <= FULL_ASAP_ITEMS)
    done = 0
    while True:
        left, right = asap.batch(rng)
        asap.learn(left, right, people.compare(left, right, people.next(len(left))))
        done += len(left)
        yield done, asap.mean


def _adaptive(people: People, rng: np.random.Generator) -> Scored:
    """Run the design as a study does, with several annotators at a time; score from the log."""
    n = len(people.truth)
    protocol = Pairwise(ties=False)
    design = Adaptive(judgments=10_000)
    items = [Item(f"item-{number}", "") for number in range(n)]
    progress = design.new_progress(protocol, items)
    log = _Log(n)
    seed = int(rng.integers(2**31))
    every = max(n // 2, 1)
    step, due = 0, every
    while True:
        who = people.next(min(people.mixture.at_once, due - len(log)))
        picks: list[tuple[int, ...]] = []
        for person in who.tolist():
            pick = design.pick(progress, 2, str(person), generator_for(seed, 0, step))
            if not isinstance(pick, Pick):
                raise TypeError(pick.reason)
            progress.on_leased(str(person), pick.items, pick.slot, pick.round, generator_for(seed, 0, step))
            picks.append(pick.items)
            step += 1
        left, right = np.array(picks, np.int32).T
        outcome = people.compare(left, right, who)
        log.add(left, right, outcome, who)
        for number, (shown, person, first_won) in enumerate(zip(picks, who.tolist(), outcome > 0, strict=True)):
            ids = [items[code].id for code in shown]
            progress.on_answered(shown, None)
            observations = protocol.observations(ids, {"winner": ids[0 if first_won else 1]})
            progress.notify_answer(AnswerNotice(f"{step}-{number}", str(person), shown, observations))
        if len(log) >= due:
            due += every
            yield len(log), log.calibrated(people.count)


def scored(method: Method, people: People, rng: np.random.Generator) -> Scored:
    """Run a method and yield the scores about once per answer for each item."""
    if method == Method.RANDOM:
        return _random(people, rng, _Log.bradley_terry)
    if method == Method.RANDOM_CALIBRATED:
        return _random(people, rng, lambda log: log.calibrated(people.count))
    if method == Method.MATCH_QUALITY:
        return _match_quality(people, rng)
    return _asap(people, rng) if method == Method.ASAP else _adaptive(people, rng)
