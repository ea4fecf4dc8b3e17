"""The tournaments of a stage: who is ranking which source, and how far they are."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from math import ceil

import numpy as np

from steelyard.designs.graph import Pair, dominance_order
from steelyard.designs.memory import Heard, Planning
from steelyard.designs.progress import Levels, Progress, Seen
from steelyard.designs.sources import Sources
from steelyard.observations import Comparison
from steelyard.records import Item

_PATIENCE = 20
"""How many events (tasks handed out, answers) of each other annotator at work somebody may be silent for."""


def bracket(groups: Sequence[Collection[int]], asked: Collection[Pair], rng: np.random.Generator) -> list[Pair]:
    """Draw the comparisons that connect groups of items, bracket by bracket (§3.1 of Pighin et al. 2012).

    In each pass the groups merge in pairs, in random order; with an odd number the last one merges with any
    other, which has merged already. A pair is drawn from what merges, not one asked before; where none is
    left, the groups merge unasked.
    """
    standing = [sorted(group) for group in groups]
    done = set(asked)
    drawn: list[Pair] = []
    while len(standing) > 1:
        order = rng.permutation(len(standing)).tolist()
        if len(order) % 2:
            order.append(order[int(rng.integers(len(order) - 1))])
        merged = []
        for one, other in zip(order[::2], order[1::2], strict=True):
            pair = _new_pair(standing[one], standing[other], done, rng)
            if pair is not None:
                done.add(pair)
                drawn.append(pair)
            merged.append(sorted({*standing[one], *standing[other]}))
        standing = merged
    return drawn


def _new_pair(one: list[int], other: list[int], done: set[Pair], rng: np.random.Generator) -> Pair | None:
    """Draw a pair across two groups that was not asked, each as likely."""
    for _ in range(20):
        a, b = one[int(rng.integers(len(one)))], other[int(rng.integers(len(other)))]
        if a != b and (min(a, b), max(a, b)) not in done:
            return min(a, b), max(a, b)
    left = sorted({(min(a, b), max(a, b)) for a in one for b in other if a != b} - done)
    return left[int(rng.integers(len(left)))] if left else None


def comparisons_for(n: int) -> int:
    """Return how many comparisons a tournament of n different items has: n/2, and half of that, down to one."""
    count = 0
    while n > 1:
        n = ceil(n / 2)
        count += n
    return count


@dataclass(slots=True, eq=False)
class Run:
    """One annotator's tournament of one source."""

    annotator: str
    source: int
    seed: tuple[int, ...] = ()
    """What its bracket is drawn from; empty where pairs were judged elsewhere, without a bracket."""
    pairs: list[Pair] = field(default_factory=list)
    covers: int = 0
    """How many of the source's vertices the pairs connect."""
    held: bool = False
    """Whether the source is kept for this annotator."""
    finished: bool = False
    last_event: int = 0
    last_at: int = 0
    asked: Counter[Pair] = field(default_factory=Counter)
    """Pairs that are answered or out."""
    answers: defaultdict[Pair, dict[str, int]] = field(default_factory=lambda: defaultdict(dict))

    def outcomes(self) -> dict[Pair, int]:
        """The outcome of each pair that is answered; with several answers to one, their sum."""
        return {pair: sum(given.values()) for pair, given in self.answers.items() if given}

    def has_task_out(self) -> bool:
        """Whether a task is with the annotator."""
        return any(count > len(self.answers.get(pair, ())) for pair, count in self.asked.items())

    def next_pair(self, seen: Seen) -> Pair | None:
        """Return the next pair to ask; None when the rest is out, or the annotator has skipped one of them."""
        open_pairs = [pair for pair in self.pairs if not self.answers.get(pair) and not self.asked[pair]]
        return None if any(pair in seen for pair in open_pairs) else next(iter(open_pairs), None)


class Tournaments(Planning[int]):
    """All tournaments of a stage.

    A source has `places` tournaments, each by another annotator. Who begins one keeps its place until it is
    finished. A task given back (skipped, run out, or set aside) frees the place; its annotator may go on as long
    as nobody else has taken it, unless they skipped a pair; anybody else begins from the start. Whoever has no
    task out and was silent for long, by the clock or while the others went on, may be replaced, too, when nothing
    else is left.

    The plan is a number from which the bracket of every tournament is drawn.
    """

    def __init__(self, places: int, *, one_source: bool, follow_up: bool, patience_minutes: float) -> None:
        super().__init__()
        self.places = places
        self._patience = patience_minutes * 60_000_000
        self.follow_up = follow_up
        self.sources = Sources(one=one_source)
        self.taken = Levels()
        """Sources by how many places are taken: tournaments finished or held. None is free with nothing to compare."""
        self.of_source: list[list[Run]] = []
        self.of_annotator: defaultdict[str, dict[int, Run]] = defaultdict(dict)
        self.unfinished: defaultdict[str, dict[int, Run]] = defaultdict(dict)
        self._events = 0
        self._being_picked = False

    def make_plan(self, progress: Progress, rng: np.random.Generator) -> int:
        """Draw the number that brackets come from."""
        return int(rng.integers(2**62))

    def open_round(self, number: int, progress: Progress, rng: np.random.Generator) -> None:
        """Begin a round, and note that what comes next is a pick and no judgment from elsewhere."""
        super().open_round(number, progress, rng)
        self._being_picked = True

    def restart(self) -> None:
        """Draw new brackets from now on; places kept for people with no task out are free."""
        super().restart()
        for run in self._held():
            if not run.has_task_out():
                run.held = False
                self._count(run.source)

    def add_items(self, items: Sequence[Item]) -> None:
        """Take in new items; tournaments of their sources go on."""
        touched = self.sources.add(items)
        new = len(self.sources.vertices) - len(self.of_source)
        self.of_source += [[] for _ in range(new)]
        self.taken.add_items(new)
        for source in touched:
            for run in self.of_source[source]:
                self._extend(run)
            self._count(source)

    def picked(self, annotator: str, items: tuple[int, ...], slot: int | None) -> None:
        """Note that a pair goes out; a first one takes a place."""
        picked, self._being_picked = self._being_picked, False
        pair, source = self._pair(items), self.sources.source[items[0]]
        if pair is None:
            return
        run = self.of_annotator[annotator].get(source) or self._enter(annotator, source)
        if picked and not run.seed:
            self._begin(run, pair)
        picked = picked and bool(run.seed)
        self._events += 1
        run.asked[pair] += 1
        run.last_event, run.last_at = self._events, self.now
        if run.seed and not run.finished and (picked or self.taken.level[source] < self.places):
            run.held = True
        self._count(source)

    def released(self, annotator: str, items: tuple[int, ...], slot: int | None) -> None:
        """Note that a pair came back; the place is free until its annotator goes on."""
        self._events += 1
        pair, source = self._pair(items), self.sources.source[items[0]]
        run = self.of_annotator[annotator].get(source)
        if pair is not None and run is not None:
            run.asked[pair] -= 1
            run.held = False
            self._count(source)

    def heard(self, answer: Heard) -> None:
        """Take in the outcome of a pair."""
        self._events += 1
        self._note(answer, forget=False)

    def unheard(self, answer: Heard) -> None:
        """Take an outcome back."""
        self._note(answer, forget=True)

    def _note(self, answer: Heard, *, forget: bool) -> None:
        said = next((one for one in answer.observations if isinstance(one, Comparison)), None)
        pair = self._pair(answer.items) if answer.own and said is not None else None
        if pair is None or said is None:
            return
        run = self.of_annotator[answer.annotator][self.sources.source[answer.items[0]]]
        if forget:
            run.answers[pair].pop(answer.judgment_id, None)
        else:
            in_order = self.sources.vertex[answer.items[0]] == pair[0]
            run.answers[pair][answer.judgment_id] = said.outcome if in_order else -said.outcome
            run.last_event, run.last_at = self._events, self.now
        self._settle(run)

    def _pair(self, items: tuple[int, ...]) -> Pair | None:
        """Return the vertices of two items of one source."""
        if len(items) != 2 or self.sources.source[items[0]] != self.sources.source[items[1]]:
            return None
        one, other = sorted(self.sources.vertex[item] for item in items)
        return (one, other) if one != other else None

    def _enter(self, annotator: str, source: int) -> Run:
        run = Run(annotator, source)
        self.of_annotator[annotator][source] = run
        self.of_source[source].append(run)
        return run

    def _begin(self, run: Run, pair: Pair) -> None:
        """Take a place, unless the pair is one that everybody gets (an overlap), which begins nothing."""
        source, plan = run.source, self.plan or 0
        if pair != self.opening(run.annotator, source, plan):
            return
        if self.taken.level[source] >= self.places:
            silent = self.silent(run.annotator)
            if silent is None or silent.source != source:
                return
            silent.held = False
        run.seed = self._next_seed(source, plan)
        run.pairs = first_pairs(self.sources.vertices[source], run.seed)
        run.covers = len(self.sources.vertices[source])
        self._settle(run)

    def _extend(self, run: Run) -> None:
        """Connect vertices that joined since the bracket was drawn."""
        vertices = self.sources.vertices[run.source]
        if run.seed and run.covers < len(vertices):
            groups = [vertices[: run.covers], *([new] for new in vertices[run.covers :])]
            rng = np.random.default_rng([*run.seed, len(vertices)])
            asked = {*run.pairs, *run.answers}
            run.pairs += bracket(groups, asked, rng)
            run.covers = len(vertices)
            self._settle(run)

    def _settle(self, run: Run) -> None:
        """See whether a run is finished, and whether its top items have met."""
        if not run.seed:
            return
        run.finished = all(run.answers.get(pair) for pair in run.pairs)
        if run.finished and self.follow_up:
            pair = self._top_pair(run)
            if pair is not None:
                run.pairs.append(pair)
                run.finished = False
        if run.finished:
            run.held = False
            self.unfinished[run.annotator].pop(run.source, None)
        else:
            self.unfinished[run.annotator][run.source] = run
        self._count(run.source)

    def _top_pair(self, run: Run) -> Pair | None:
        """Return the two highest vertices that nobody dominates: they never met, or one would dominate the other."""
        order = dominance_order(self.sources.vertices[run.source], run.outcomes())
        top = [vertex for vertex, count in enumerate(order.dominated) if count == 0]
        if len(top) < 2:
            return None
        rng = np.random.default_rng([*run.seed, 0, len(run.pairs)])
        rng.shuffle(top)
        one, other = sorted(top, key=lambda vertex: -order.dominates[vertex])[:2]
        a, b = (order.members[vertex][int(rng.integers(len(order.members[vertex])))] for vertex in (one, other))
        return min(a, b), max(a, b)

    def _count(self, source: int) -> None:
        """Bring the number of places taken up to date."""
        taken = sum(1 for run in self.of_source[source] if run.held or run.finished)
        wanted = taken if len(self.sources.vertices[source]) > 1 else self.places
        self.taken.move(source, wanted - int(self.taken.level[source]))

    def _held(self) -> list[Run]:
        return [run for own in self.unfinished.values() for run in own.values() if run.held]

    def silent(self, annotator: str) -> Run | None:
        """Return the tournament to take over for want of another: the one that has been silent longest.

        Somebody has left if nothing was heard of them for as long as the design has patience, or if everybody who
        holds a source and was heard of later has gone on for long.
        """
        by_last = sorted(self._held(), key=lambda run: -run.last_event)
        left = [
            run
            for later, run in enumerate(by_last)
            if (self._events - run.last_event > _PATIENCE * (1 + later) or self.now - run.last_at > self._patience)
            and not run.has_task_out()
            and not self.has_begun(annotator, run.source)
        ]
        return left[-1] if left else None

    def has_begun(self, annotator: str, source: int) -> bool:
        """Whether an annotator has ever begun with a source."""
        run = self.of_annotator.get(annotator, {}).get(source)
        return run is not None and bool(run.seed)

    def opening(self, annotator: str, source: int, plan: int) -> Pair | None:
        """Return the pair with which an annotator would begin a source: the first they have not had elsewhere."""
        run = self.of_annotator.get(annotator, {}).get(source)
        pairs = first_pairs(self.sources.vertices[source], self._next_seed(source, plan))
        return next((pair for pair in pairs if run is None or not run.asked[pair]), None)

    def _next_seed(self, source: int, plan: int) -> tuple[int, ...]:
        return (plan, source, sum(1 for run in self.of_source[source] if run.seed))


def first_pairs(vertices: Sequence[int], seed: Sequence[int]) -> list[Pair]:
    """Return the comparisons of a tournament of single items."""
    return bracket([[vertex] for vertex in vertices], (), np.random.default_rng(list(seed)))
