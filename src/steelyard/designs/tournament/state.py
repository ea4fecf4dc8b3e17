"""State of the tournament design: which annotator ranks which source, and how far each tournament is."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from steelyard.designs.dominance_graph import Pair, dominance_order
from steelyard.designs.item_sources import ItemSources
from steelyard.designs.progress import Levels, Progress, ShownSets
from steelyard.designs.state import AnswerNotice, PlannedState
from steelyard.designs.tournament.brackets import connected_groups, draw_bracket, first_pairs
from steelyard.observations import Comparison
from steelyard.records import Item

_MAX_INACTIVE_EVENTS = 20
"""Events (leases and answers) per other active annotator after which an annotator counts as inactive."""


@dataclass(slots=True, eq=False)
class Run:
    """One annotator's tournament of one source."""

    annotator: str
    source: int
    seed: tuple[int, ...] = ()
    """Seed of its bracket; empty if its pairs were only imported or shown to everybody."""
    pairs: list[Pair] = field(default_factory=list)
    n_vertices: int = 0
    """Number of the source's vertices that the pairs connect."""
    is_overlap: bool = False
    """Whether the annotator ranks the source because everybody does, beside its places."""
    is_reserved: bool = False
    """Whether a place of the source is reserved for this annotator."""
    is_finished: bool = False
    last_event: int = 0
    last_time: int = 0
    assignments: Counter[Pair] = field(default_factory=Counter)
    """Number of leases and answers of each pair."""
    answers: defaultdict[Pair, dict[str, int]] = field(default_factory=lambda: defaultdict(dict))
    """Outcomes of each pair by judgment id."""

    def outcomes(self) -> dict[Pair, int]:
        """Return the outcome of each answered pair; the sum if a pair has several answers."""
        return {pair: sum(outcomes.values()) for pair, outcomes in self.answers.items() if outcomes}

    def has_leased_task(self) -> bool:
        """Whether a task is leased to the annotator."""
        return any(count > len(self.answers.get(pair, ())) for pair, count in self.assignments.items())

    def next_pair(self, seen_sets: ShownSets) -> Pair | None:
        """Return the next pair to ask; None if all others are leased, or the annotator has skipped one."""
        open_pairs = [pair for pair in self.pairs if not self.answers.get(pair) and not self.assignments[pair]]
        return None if any(pair in seen_sets for pair in open_pairs) else next(iter(open_pairs), None)


class TournamentState(PlannedState[int]):
    """All tournaments of a stage.

    A source has `places` tournaments, each by a different annotator. Starting one reserves a place until it is
    finished. A task that is skipped, released or expired, or whose answer no longer counts, frees the place; its
    annotator may continue until somebody else takes it, unless they skipped a pair. Anybody else starts from the
    beginning. An annotator without a leased task who has been inactive for long, in minutes or in events of the other
    annotators, may be replaced when no other place is free.

    The plan is a number that seeds the bracket of every tournament.
    """

    def __init__(self, places: int, *, one_source: bool, follow_up: bool, hold_minutes: float) -> None:
        super().__init__()
        self.places = places
        self._hold_time = hold_minutes * 60_000_000
        self.follow_up = follow_up
        self.sources = ItemSources(one_source=one_source)
        self.places_taken = Levels()
        """Sources by the number of tournaments finished or reserved; sources with nothing to compare are full."""
        self.runs_of_source: list[list[Run]] = []
        self.runs_of_annotator: defaultdict[str, dict[int, Run]] = defaultdict(dict)
        self.unfinished: defaultdict[str, dict[int, Run]] = defaultdict(dict)
        """Unfinished runs by annotator and source."""
        self.shared_sources: dict[int, None] = {}
        """Sources that every annotator ranks, all with the bracket of the first."""
        self._n_events = 0
        self._is_pick_pending = False
        """Whether the next lease comes from a pick, rather than from an import or a late answer."""

    def make_plan(self, progress: Progress, rng: np.random.Generator) -> int:
        """Draw the seed of the brackets."""
        return int(rng.integers(2**62))

    def start_round(self, number: int, progress: Progress, rng: np.random.Generator) -> None:
        """Start a round if it is new, and record that the next lease comes from a pick."""
        super().start_round(number, progress, rng)
        self._is_pick_pending = True

    def on_config_change(self) -> None:
        """Draw new brackets from now on, and free the places of annotators without a leased task."""
        super().on_config_change()
        for run in self._reserved_runs():
            if not run.has_leased_task():
                run.is_reserved = False
                self._update_places(run.source)

    def add_items(self, items: Sequence[Item]) -> None:
        """Add new items and extend the tournaments of their sources."""
        changed_sources = self.sources.add(items)
        n_new = len(self.sources.vertices) - len(self.runs_of_source)
        self.runs_of_source += [[] for _ in range(n_new)]
        self.places_taken.add_items(n_new)
        for source in changed_sources:
            for run in self.runs_of_source[source]:
                self._extend(run)
            self._update_places(source)

    def on_item_set_aside(self, item: int) -> None:
        """Leave an item out; unfinished tournaments connect their other items without it."""
        source = self.sources.withhold(item)
        if source is not None:
            for run in self.runs_of_source[source]:
                self._reconnect(run)
            self._update_places(source)

    def on_item_restored(self, item: int) -> None:
        """Take an item in again; tournaments that compared it before stay as they are."""
        source = self.sources.restore(item)
        if source is None:
            return
        for run in self.runs_of_source[source]:
            if run.is_finished and any(item in pair for pair in run.pairs):
                run.n_vertices = len(self.sources.vertices[source])
            self._extend(run)
        self._update_places(source)

    def _reconnect(self, run: Run) -> None:
        """Drop the open pairs of items that were set aside, and connect the other items."""
        vertices = self.sources.vertices[run.source]
        run.n_vertices = len(vertices)
        if not run.seed or run.is_finished:
            return
        members = set(vertices)
        run.pairs = [pair for pair in run.pairs if members.issuperset(pair) or run.answers.get(pair)]
        rng = np.random.default_rng([*run.seed, len(vertices), len(run.pairs)])
        groups = connected_groups(vertices, [pair for pair in run.pairs if members.issuperset(pair)])
        run.pairs += draw_bracket(groups, {*run.pairs, *run.answers}, rng)
        self._update_run(run)

    def on_leased(self, annotator: str, items: tuple[int, ...], slot: int | None) -> None:
        """Record the lease of a pair; the first pair of a tournament reserves a place."""
        is_pick, self._is_pick_pending = self._is_pick_pending, False
        pair, source = self._pair(items), self.sources.source[items[0]]
        if pair is None:
            return
        run = self.runs_of_annotator[annotator].get(source) or self._add_run(annotator, source)
        if is_pick and not run.seed:
            self._begin(run, pair)
        is_tournament_pick = is_pick and bool(run.seed)
        self._n_events += 1
        run.assignments[pair] += 1
        run.last_event, run.last_time = self._n_events, self.now
        has_place = is_tournament_pick or run.is_overlap or self.places_taken.level[source] < self.places
        if run.seed and not run.is_finished and has_place:
            run.is_reserved = True
        self._update_places(source)

    def on_shared(self, items: tuple[int, ...]) -> None:
        """Give a source to every annotator."""
        self.shared_sources[self.sources.source[items[0]]] = None

    def on_released(self, annotator: str, items: tuple[int, ...], slot: int | None) -> None:
        """Record that a pair was released; the place is free until its annotator continues."""
        self._n_events += 1
        pair, source = self._pair(items), self.sources.source[items[0]]
        run = self.runs_of_annotator[annotator].get(source)
        if pair is not None and run is not None:
            run.assignments[pair] -= 1
            run.is_reserved = False
            self._update_places(source)

    def on_answer(self, answer: AnswerNotice) -> None:
        """Record the outcome of a pair."""
        self._n_events += 1
        self._record(answer, retract=False)

    def on_retract(self, answer: AnswerNotice) -> None:
        """Remove the outcome of a pair."""
        self._record(answer, retract=True)

    def _record(self, answer: AnswerNotice, *, retract: bool) -> None:
        comparison = next((one for one in answer.observations if isinstance(one, Comparison)), None)
        pair = self._pair(answer.items) if answer.own_stage else None
        if pair is None:
            return
        # A pair that the annotator cannot judge is a tie here, so that the tournament goes on; scores leave it out.
        result = 0 if comparison is None else comparison.outcome
        run = self.runs_of_annotator[answer.annotator][self.sources.source[answer.items[0]]]
        if retract:
            run.answers[pair].pop(answer.judgment_id, None)
        else:
            in_order = self.sources.vertex[answer.items[0]] == pair[0]
            run.answers[pair][answer.judgment_id] = result if in_order else -result
            run.last_event, run.last_time = self._n_events, self.now
        self._update_run(run)

    def _pair(self, items: tuple[int, ...]) -> Pair | None:
        """Return the vertices of two items of one source."""
        if len(items) != 2 or self.sources.source[items[0]] != self.sources.source[items[1]]:
            return None
        one, other = sorted(self.sources.vertex[item] for item in items)
        return (one, other) if one != other else None

    def _add_run(self, annotator: str, source: int) -> Run:
        run = Run(annotator, source)
        self.runs_of_annotator[annotator][source] = run
        self.runs_of_source[source].append(run)
        return run

    def _begin(self, run: Run, pair: Pair) -> None:
        """Begin a tournament, unless the pair is not the first of a bracket."""
        source, plan = run.source, self.plan or 0
        if pair != self.opening_pair(run.annotator, source, plan):
            return
        run.is_overlap = source in self.shared_sources
        if self.places_taken.level[source] >= self.places and not run.is_overlap:
            inactive = self.inactive_run(run.annotator)
            if inactive is None or inactive.source != source:
                return
            inactive.is_reserved = False
        run.seed = self._next_seed(source, plan)
        run.pairs = first_pairs(self.sources.vertices[source], run.seed)
        run.n_vertices = len(self.sources.vertices[source])
        self._update_run(run)

    def _extend(self, run: Run) -> None:
        """Connect vertices that were added since the bracket was drawn."""
        vertices = self.sources.vertices[run.source]
        if run.seed and run.n_vertices < len(vertices):
            groups = [vertices[: run.n_vertices], *([new] for new in vertices[run.n_vertices :])]
            rng = np.random.default_rng([*run.seed, len(vertices)])
            run.pairs += draw_bracket(groups, {*run.pairs, *run.answers}, rng)
            run.n_vertices = len(vertices)
            self._update_run(run)

    def _update_run(self, run: Run) -> None:
        """Determine whether a run is finished, and whether it needs a follow-up comparison of its top items."""
        if not run.seed:
            return
        run.is_finished = all(run.answers.get(pair) for pair in run.pairs)
        if run.is_finished and self.follow_up:
            pair = self._top_pair(run)
            if pair is not None:
                run.pairs.append(pair)
                run.is_finished = False
        if run.is_finished:
            run.is_reserved = False
            self.unfinished[run.annotator].pop(run.source, None)
        else:
            self.unfinished[run.annotator][run.source] = run
        self._update_places(run.source)

    def _top_pair(self, run: Run) -> Pair | None:
        """Return the two highest undominated vertices; they were never compared, or one would dominate the other."""
        vertices = self.sources.vertices[run.source]
        outcomes = {pair: sign for pair, sign in run.outcomes().items() if set(vertices).issuperset(pair)}
        order = dominance_order(vertices, outcomes)
        top = [vertex for vertex, count in enumerate(order.dominators) if count == 0]
        if len(top) < 2:
            return None
        rng = np.random.default_rng([*run.seed, 0, len(run.pairs)])
        rng.shuffle(top)
        one, other = sorted(top, key=lambda vertex: -order.dominates[vertex])[:2]
        a, b = (order.members[vertex][int(rng.integers(len(order.members[vertex])))] for vertex in (one, other))
        return min(a, b), max(a, b)

    def _update_places(self, source: int) -> None:
        """Recount the places of a source that are taken."""
        count = sum(
            1 for run in self.runs_of_source[source] if (run.is_reserved or run.is_finished) and not run.is_overlap
        )
        level = count if len(self.sources.vertices[source]) > 1 else self.places
        self.places_taken.move(source, level - int(self.places_taken.level[source]))

    def _reserved_runs(self) -> list[Run]:
        return [run for runs in self.unfinished.values() for run in runs.values() if run.is_reserved]

    def inactive_run(self, annotator: str) -> Run | None:
        """Return the run that this annotator may take over: the one that has been inactive longest.

        A run is inactive if its last event is more than the hold time ago, or if the annotators of all other reserved
        runs with later events have been active for long since.
        """
        by_last_event = sorted(self._reserved_runs(), key=lambda run: -run.last_event)
        inactive = [
            run
            for n_later, run in enumerate(by_last_event)
            if (
                self._n_events - run.last_event > _MAX_INACTIVE_EVENTS * (1 + n_later)
                or self.now - run.last_time > self._hold_time
            )
            and not run.has_leased_task()
            and not run.is_overlap
            and not self.has_begun(annotator, run.source)
        ]
        return inactive[-1] if inactive else None

    def has_begun(self, annotator: str, source: int) -> bool:
        """Whether an annotator has ever begun the tournament of a source."""
        run = self.runs_of_annotator.get(annotator, {}).get(source)
        return run is not None and bool(run.seed)

    def opening_pair(self, annotator: str, source: int, plan: int) -> Pair | None:
        """Return the pair with which an annotator would begin a source: the first not assigned to them before."""
        run = self.runs_of_annotator.get(annotator, {}).get(source)
        pairs = first_pairs(self.sources.vertices[source], self._next_seed(source, plan))
        return next((pair for pair in pairs if run is None or not run.assignments[pair]), None)

    def _next_seed(self, source: int, plan: int) -> tuple[int, ...]:
        seeds = [run.seed for run in self.runs_of_source[source] if run.seed]
        if source in self.shared_sources and seeds:
            return seeds[0]
        return (plan, source, len(seeds))
