"""Tournaments: a few items of one source ranked by hardly more comparisons than items (Pighin et al. 2012)."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import Annotated, ClassVar, Literal, cast

import numpy as np
from pydantic import Field

from steelyard.designs.base import EXACT_PROPENSITY_ITEMS, WAITING, Design, Goal, Nothing, Pick
from steelyard.designs.graph import Pair
from steelyard.designs.memory import Memory
from steelyard.designs.progress import Progress
from steelyard.designs.tournament_memory import Tournaments, comparisons_for
from steelyard.errors import Problem
from steelyard.protocols.base import Protocol


@dataclass(frozen=True, slots=True)
class Tournament(Design):
    """Compare the items of each source in pairs, bracket by bracket, until they are connected.

    Six comparisons for five or six items (§3.1 of the paper). One annotator does all of a source; items that
    differ in letter case and spacing alone are the same and are not asked. A source that its annotator gives up
    goes back to the pool: somebody else begins it anew, or the same person goes on, whoever asks first.
    """

    name: ClassVar[str] = "tournament"

    annotators: Annotated[
        int, Field(ge=1, description="annotators for each source, each with their own tournament")
    ] = 1
    source: Annotated[
        Literal["context", "all"], Field(description="what is ranked together: items with one context, or all items")
    ] = "context"
    follow_up: Annotated[
        bool, Field(description="compare the top items that never met, until nobody dominates just one")
    ] = False

    patience_minutes: Annotated[
        float, Field(gt=0, description="how long a source is kept for an annotator who does not come back")
    ] = 30.0

    def memory(self, protocol: Protocol) -> Memory:
        """Return the tournaments of a stage that has not begun."""
        return Tournaments(
            self.annotators,
            one_source=self.source == "all",
            follow_up=self.follow_up,
            patience_minutes=self.patience_minutes,
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
            return [Problem(f"{n_items} item makes no tournament.", "Add items.", field="design.name")]
        return []

    def same_as(self, progress: Progress) -> dict[int, int]:
        """Items that differ from an earlier one of their source in letter case and spacing alone."""
        first = cast("Tournaments", progress.memory).sources.vertex
        return {item: vertex for item, vertex in enumerate(first) if item != vertex}

    def pick(self, progress: Progress, task_size: int, annotator: str, rng: np.random.Generator) -> Pick | Nothing:
        """Go on with the annotator's own sources, else begin one that has had fewest annotators."""
        own = self._own(progress, annotator)
        if own is not None:
            return self._pick(progress, own, 1.0, rng)
        tournaments = cast("Tournaments", progress.memory)
        new = tournaments.plan is None
        plan = tournaments.ahead(progress, rng) if tournaments.plan is None else tournaments.plan
        drawn = self._draw_source(progress, plan, annotator, rng)
        if drawn is None:
            return self._nothing(tournaments)
        source, pair, sources = drawn
        # Of a bracket that is not drawn yet, any pair of the source may be the first, each as likely.
        pairs = comb(len(tournaments.sources.vertices[source]), 2) if new else 1
        return self._pick(progress, pair, 1 / (sources * pairs), rng)

    def _pick(self, progress: Progress, pair: Pair, chance: float, rng: np.random.Generator) -> Pick:
        tournaments = cast("Tournaments", progress.memory)
        return Pick(
            tuple(rng.permutation(pair).tolist()),
            round=tournaments.round + (tournaments.plan is None),
            propensity=chance if progress.n_items <= EXACT_PROPENSITY_ITEMS else None,
        )

    def _own(self, progress: Progress, annotator: str) -> Pair | None:
        """Return the next pair of a source this annotator holds, or gave back and nobody else has taken."""
        tournaments = cast("Tournaments", progress.memory)
        seen = progress.person(annotator).sets
        unfinished = tournaments.unfinished.get(annotator, {}).values()
        for run in sorted(unfinished, key=lambda run: not run.held):
            if run.held or tournaments.taken.level[run.source] < self.annotators:
                pair = run.next_pair(seen)
                if pair is not None:
                    return pair
        return None

    def _draw_source(
        self, progress: Progress, plan: int, annotator: str, rng: np.random.Generator
    ) -> tuple[int, Pair, int] | None:
        """Draw a source to begin among those with fewest places taken: it, its first pair, and of how many."""
        tournaments = cast("Tournaments", progress.memory)
        seen = progress.person(annotator).sets

        def opening(source: int) -> Pair | None:
            pair = None if tournaments.has_begun(annotator, source) else tournaments.opening(annotator, source, plan)
            return None if pair is None or pair in seen else pair

        known = tournaments.of_annotator.get(annotator, {})
        for level in range(min(self.annotators, tournaments.taken.height)):
            members = tournaments.taken.members(level)
            at_level = [source for source in known if tournaments.taken.level[source] == level]
            closed = {source for source in at_level if opening(source) is None}
            eligible = len(members) - len(closed)
            if 0 < eligible * 10 < len(members):
                members = [source for source in members if source not in closed]
            while eligible:
                source = members[int(rng.integers(len(members)))]
                pair = opening(source) if source not in closed else None
                if pair is not None:
                    return source, pair, eligible
        silent = tournaments.silent(annotator)
        pair = None if silent is None else opening(silent.source)
        return None if silent is None or pair is None else (silent.source, pair, 1)

    def _nothing(self, tournaments: Tournaments) -> Nothing:
        asked = [number for number, vertices in enumerate(tournaments.sources.vertices) if len(vertices) > 1]
        finished = [sum(run.finished for run in tournaments.of_source[source]) for source in asked]
        if not asked:
            return Nothing("No source has two different items to compare.", complete=True)
        if min(finished) >= self.annotators:
            sources = "The source has" if len(asked) == 1 else f"All {len(asked):,} sources have"
            times = "once" if self.annotators == 1 else f"by {self.annotators} annotators"
            return Nothing(f"{sources} been ranked {times}.", complete=True)
        if int(tournaments.taken.level.min()) >= self.annotators:
            return WAITING
        return Nothing("You have ranked, or given up, every source that still needs an annotator.")

    def goal(self, progress: Progress, task_size: int) -> Goal:
        """Count the comparisons of tournaments that are finished or under way.

        Those given up count only if their annotator goes on. Follow-up comparisons are known, and counted in
        the total, only when a tournament comes to them.
        """
        tournaments = cast("Tournaments", progress.memory)
        done = total = 0
        for vertices, runs in zip(tournaments.sources.vertices, tournaments.of_source, strict=True):
            counted = sorted((run for run in runs if run.finished or run.held), key=lambda run: not run.finished)
            counted = counted[: self.annotators]
            done += sum(bool(run.answers.get(pair)) for run in counted for pair in run.pairs)
            total += sum(len(run.pairs) for run in counted)
            total += comparisons_for(len(vertices)) * (self.annotators - len(counted))
        return Goal(done, total)
