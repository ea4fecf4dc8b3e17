"""The tournament design: items of one source ranked by few comparisons (Pighin et al. 2012)."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import Annotated, ClassVar, cast

import numpy as np
from pydantic import Field

from steelyard.designs.base import EXACT_PROPENSITY_ITEMS, WAITING, Design, Goal, NoTask, Pick
from steelyard.designs.contexts import AcrossContexts
from steelyard.designs.dominance_graph import Pair
from steelyard.designs.progress import Progress
from steelyard.designs.state import DesignState
from steelyard.designs.tournament.brackets import comparisons_for
from steelyard.designs.tournament.state import TournamentState
from steelyard.errors import Problem
from steelyard.protocols.base import Protocol


@dataclass(frozen=True, slots=True)
class Tournament(Design):
    """Compare the items of each source in pairs, bracket by bracket, until they are connected.

    Six comparisons for five or six items (§3.1 of the paper). One annotator compares all items of a source. Items that
    differ only in letter case and spacing are duplicates and are not compared. A source that its annotator abandons
    becomes free: either another annotator starts it from the beginning, or the same annotator continues, whoever asks
    first. Overlap ([quality] overlap_rate) gives whole sources to everybody, with the same comparisons, so that
    agreement is measured on whole tournaments (§4.1).
    """

    name: ClassVar[str] = "tournament"

    annotators_per_source: Annotated[
        int, Field(ge=1, description="distinct annotators per source; each runs a separate tournament")
    ] = 1
    across_contexts: AcrossContexts = False
    follow_up: Annotated[bool, Field(description="whether undominated items are compared until only one is left")] = (
        False
    )

    hold_minutes: Annotated[
        float, Field(gt=0, description="minutes for which a source stays reserved for an inactive annotator")
    ] = 30.0

    @property
    def shares_sources(self) -> bool:
        """Overlap gives whole tournaments to everybody."""
        return True

    def initial_state(self, protocol: Protocol) -> DesignState:
        """Return the state before the first tournament."""
        return TournamentState(
            self.annotators_per_source,
            one_source=self.across_contexts,
            follow_up=self.follow_up,
            hold_minutes=self.hold_minutes,
        )

    def problems(self, protocol: Protocol, n_items: int) -> list[Problem]:
        """Refuse protocols that do not compare two items."""
        if protocol.task_size != 2 or "comparisons" not in protocol.kinds:
            return [
                Problem(
                    f"a tournament compares two items at a time, but {protocol.name} does not.",
                    "Use the protocol pairwise, or another design.",
                    field="design.name",
                )
            ]
        if n_items < 2:
            return [Problem(f"{n_items} item is too few for a tournament.", "Add items.", field="design.name")]
        return []

    def duplicates(self, progress: Progress) -> dict[int, int]:
        """Return the items that differ from an earlier one of their source only in letter case and spacing."""
        vertices = cast("TournamentState", progress.design_state).sources.vertex
        return {item: vertex for item, vertex in enumerate(vertices) if item != vertex}

    def pick(self, progress: Progress, task_size: int, annotator: str, rng: np.random.Generator) -> Pick | NoTask:
        """Continue a source of this annotator, else begin one with the fewest annotators."""
        pair = self._continued_pair(progress, annotator)
        if pair is not None:
            return self._pick(progress, pair, 1.0, rng)
        state = cast("TournamentState", progress.design_state)
        is_first_pick = state.plan is None
        plan = state.next_plan(progress, rng) if state.plan is None else state.plan
        opening = self._draw_source(progress, plan, annotator, rng)
        if opening is None:
            return self._no_task(state)
        source, pair, n_sources = opening
        # Until the seed of the brackets is drawn, every pair of the source is equally likely to be its first.
        n_pairs = comb(len(state.sources.vertices[source]), 2) if is_first_pick else 1
        return self._pick(progress, pair, 1 / (n_sources * n_pairs), rng)

    def is_continued(self, progress: Progress, annotator: str, items: tuple[int, ...]) -> bool:
        """Whether the annotator has begun the source of these items."""
        state = cast("TournamentState", progress.design_state)
        return state.has_begun(annotator, state.sources.source[items[0]])

    def is_overlap(self, progress: Progress, annotator: str, items: tuple[int, ...]) -> bool:
        """Whether the source of these items is ranked by all annotators."""
        state = cast("TournamentState", progress.design_state)
        run = state.runs_of_annotator.get(annotator, {}).get(state.sources.source[items[0]])
        return run is not None and run.is_overlap

    def shared_pick(self, progress: Progress, annotator: str, rng: np.random.Generator) -> Pick | None:
        """Choose the first pair of a source that all annotators rank and this annotator has not started."""
        state = cast("TournamentState", progress.design_state)
        for source in state.shared_sources:
            if not state.has_begun(annotator, source):
                pair = state.opening_pair(annotator, source, state.plan or 0)
                if pair is not None and pair not in progress.history(annotator).sets:
                    return self._pick(progress, pair, 1.0, rng)
        return None

    def _pick(self, progress: Progress, pair: Pair, probability: float, rng: np.random.Generator) -> Pick:
        state = cast("TournamentState", progress.design_state)
        return Pick(
            tuple(rng.permutation(pair).tolist()),
            round=state.round + (state.plan is None),
            propensity=probability if progress.n_items <= EXACT_PROPENSITY_ITEMS else None,
        )

    def _continued_pair(self, progress: Progress, annotator: str) -> Pair | None:
        """Return the next pair of a source reserved for this annotator, or abandoned by them and still free."""
        state = cast("TournamentState", progress.design_state)
        seen_sets = progress.history(annotator).sets
        unfinished = state.unfinished.get(annotator, {}).values()
        for run in sorted(unfinished, key=lambda run: not run.is_reserved):
            has_place = run.is_overlap or state.places_taken.level[run.source] < self.annotators_per_source
            if run.is_reserved or has_place:
                pair = run.next_pair(seen_sets)
                if pair is not None:
                    return pair
        return None

    def _draw_source(
        self, progress: Progress, plan: int, annotator: str, rng: np.random.Generator
    ) -> tuple[int, Pair, int] | None:
        """Draw a source with the fewest places taken; return it, its first pair, and the number of such sources."""
        state = cast("TournamentState", progress.design_state)
        seen_sets = progress.history(annotator).sets

        def opening_pair(source: int) -> Pair | None:
            has_begun = state.has_begun(annotator, source)
            pair = None if has_begun else state.opening_pair(annotator, source, plan)
            return None if pair is None or pair in seen_sets else pair

        own_sources = state.runs_of_annotator.get(annotator, {})
        for level in range(min(self.annotators_per_source, state.places_taken.height)):
            members = state.places_taken.members(level)
            at_level = [source for source in own_sources if state.places_taken.level[source] == level]
            closed_sources = {source for source in at_level if opening_pair(source) is None}
            eligible = len(members) - len(closed_sources)
            if 0 < eligible * 10 < len(members):
                members = [source for source in members if source not in closed_sources]
            while eligible:
                source = members[int(rng.integers(len(members)))]
                pair = opening_pair(source) if source not in closed_sources else None
                if pair is not None:
                    return source, pair, eligible
        inactive = state.inactive_run(annotator)
        pair = None if inactive is None else opening_pair(inactive.source)
        return None if inactive is None or pair is None else (inactive.source, pair, 1)

    def _no_task(self, state: TournamentState) -> NoTask:
        sources = [number for number, vertices in enumerate(state.sources.vertices) if len(vertices) > 1]
        if not sources:
            return NoTask("No source has two different items to compare.", complete=True)
        finished = [
            sum(run.is_finished and not run.is_overlap for run in state.runs_of_source[source]) for source in sources
        ]
        if min(finished) >= self.annotators_per_source:
            subject = "The source has" if len(sources) == 1 else f"All {len(sources):,} sources have"
            times = "once" if self.annotators_per_source == 1 else f"by {self.annotators_per_source} annotators"
            return NoTask(f"{subject} been ranked {times}.", complete=True)
        if int(state.places_taken.level.min()) >= self.annotators_per_source:
            return WAITING
        return NoTask("You have ranked, or abandoned, every source that still needs an annotator.")

    def goal(self, progress: Progress, task_size: int) -> Goal:
        """Count the comparisons of tournaments that are finished or reserved.

        Abandoned tournaments count only if their annotator continues. A follow-up comparison is added to the total when
        its tournament reaches it.
        """
        state = cast("TournamentState", progress.design_state)
        done = total = 0
        for vertices, runs in zip(state.sources.vertices, state.runs_of_source, strict=True):
            active = [run for run in runs if (run.is_finished or run.is_reserved) and not run.is_overlap]
            active = sorted(active, key=lambda run: not run.is_finished)[: self.annotators_per_source]
            done += sum(bool(run.answers.get(pair)) for run in active for pair in run.pairs)
            total += sum(len(run.pairs) for run in active)
            total += comparisons_for(len(vertices)) * (self.annotators_per_source - len(active))
        return Goal(done, total)
