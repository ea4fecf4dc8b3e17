"""Person or model: what it costs to order items by a policy that weighs gain against cost, and by fixed splits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, NamedTuple, Self

import numpy as np
import polars as pl
from scipy import stats

from reproductions.base import Claim, Experiment, Outcome, Progress
from steelyard.designs.adaptive import Adaptive
from steelyard.designs.adaptive.state import AdaptiveState
from steelyard.designs.base import Pick
from steelyard.designs.state import AnswerNotice
from steelyard.observations import FloatArray, Rating
from steelyard.protocols import Direct
from steelyard.records import Item

TARGET = 0.95
PEOPLE, BIAS, NOISE, ITEM_SD = 40, 6.0, 14.0, 18.0
JUDGES = ("good", "mediocre", "useless", "uneven")
POLICY, FIXED, SPREAD, ALONE = "person or model", "10 % people, 90 % model", "by residual spread", "people alone"
METHODS = (POLICY, FIXED, SPREAD, ALONE)


class Scene(NamedTuple):
    """True scores on 0–100, the judge's score of each item without its call noise, and the groups of the items."""

    truth: FloatArray
    judge: FloatArray
    groups: tuple[str, ...]
    residual: FloatArray
    """Sd of the true score given the judge's, as it was simulated."""


def simulated_scene(judge: str, items: int, rng: np.random.Generator) -> Scene:
    """Draw true scores, and a judge with a correlation of .9 (good), .7 (mediocre), 0, or .95 and 0 (uneven)."""
    z = rng.standard_normal(items)
    kind = np.arange(items) % 10 >= 7
    rho = {"good": 0.9, "mediocre": 0.7, "useless": 0.0}.get(judge)
    correlation = np.full(items, rho) if rho is not None else np.where(kind, 0.0, 0.95)
    error = rng.standard_normal(items)
    f = correlation * z + np.sqrt(1 - correlation**2) * error
    groups = tuple("hard" if one else "easy" for one in kind)
    return Scene(50 + ITEM_SD * z, 50 + ITEM_SD * f, groups, ITEM_SD * np.sqrt(1 - correlation**2))


class Run:
    """One simulated study: a state that learns from everything, whoever chose it, and the money spent."""

    def __init__(self, scene: Scene, model_cost: float, rng: np.random.Generator) -> None:
        self.scene, self.rng = scene, rng
        self.items = [Item(id=f"i{n}", text=f"i{n}", group=group) for n, group in enumerate(scene.groups)]
        self.design = Adaptive(judgments=1000, model_cost=model_cost, person_cost=1.0)
        self.progress = self.design.new_progress(Direct(), self.items)
        self.bias = rng.normal(0, BIAS, PEOPLE)
        self.model_cost, self.cost = model_cost, 0.0
        self.by_people = np.zeros(len(self.items), np.int64)
        self.by_model = np.zeros(len(self.items), np.int64)
        self._model_total = np.zeros(len(self.items))
        self._step = 0

    @property
    def state(self) -> AdaptiveState:
        """The design's state."""
        state = self.progress.design_state
        if not isinstance(state, AdaptiveState):
            raise TypeError("the design has no adaptive state")
        return state

    def rho(self) -> float:
        """Return Spearman's ρ of the posterior means with the true scores; 0 before the first answers."""
        mean = self.state.mean
        return float(stats.spearmanr(mean, self.scene.truth).statistic) if np.ptp(mean) > 0 else 0.0

    def ask_person(self, item: int | None = None) -> None:
        """Let a person rate an item, or the item that the design picks."""
        who = int(self.rng.integers(PEOPLE))
        if item is None:
            pick = self.design.pick(self.progress, 1, f"p{who}", np.random.default_rng(self._step))
            if not isinstance(pick, Pick):
                return
            (item,) = pick.items
        value = self.scene.truth[item] + self.bias[who] + self.rng.normal(0, NOISE)
        self.progress.on_leased(f"p{who}", (item,), None)
        self.progress.on_answered((item,), None)
        self.progress.notify_answer(self._notice(f"p{who}", item, value))
        self.by_people[item] += 1
        self.cost += 1.0

    def ask_model(self, item: int) -> None:
        """Let the model rate an item; repeated calls are averaged."""
        self._model_total[item] += self.scene.judge[item] + self.rng.normal(0, 3.0)
        self.by_model[item] += 1
        value = self._model_total[item] / self.by_model[item]
        self.progress.notify_model_answer(self._notice("model", item, value))
        self.cost += self.model_cost

    def _notice(self, who: str, item: int, value: float) -> AnswerNotice:
        self._step += 1
        name = self.items[item].id
        rating = Rating(name, float(np.clip(value, 0, 100)))
        return AnswerNotice(str(self._step), who, (item,), [rating])


def _by_policy(run: Run) -> None:
    pick = run.design.pick_for_model(run.progress)
    if isinstance(pick, Pick):
        run.ask_model(pick.items[0])
    else:
        run.ask_person()


def _by_fixed_split(run: Run) -> None:
    by_person = run.rng.random() < 0.1
    counts = run.by_people if by_person else run.by_model
    item = int(run.rng.choice(np.flatnonzero(counts == counts.min())))
    (run.ask_person if by_person else run.ask_model)(item)


def _by_spread(run: Run) -> None:
    """Ask the model about everything once, then people in proportion to the judge's (known) residual sd."""
    if (run.by_model == 0).any():
        run.ask_model(int(np.flatnonzero(run.by_model == 0)[0]))
    else:
        # The item that is furthest behind its share.
        behind = (run.by_people + run.rng.random(len(run.items))) / run.scene.residual
        run.ask_person(int(behind.argmin()))


def _by_people(run: Run) -> None:
    counts = run.by_people
    run.ask_person(int(run.rng.choice(np.flatnonzero(counts == counts.min()))))


CHOICES: dict[str, Callable[[Run], None]] = {
    POLICY: _by_policy,
    FIXED: _by_fixed_split,
    SPREAD: _by_spread,
    ALONE: _by_people,
}


@dataclass(frozen=True, slots=True)
class WhoNext(Experiment):
    """Simulate studies in which people and a model rate items, and record ρ by cost."""

    name: ClassVar[str] = "judges.who_next"
    paper: ClassVar[str] = "Steelyard's own"
    title: ClassVar[str] = "Person or model by expected gain per cost: cost of a rank correlation of .95"
    data: ClassVar[tuple[str, ...]] = ()

    judges: tuple[str, ...] = JUDGES
    model_costs: tuple[float, ...] = (0.1, 0.05, 0.01)
    items: int = 150
    runs: int = 10
    most_cost: float = 20.0
    """Per item."""
    seed: int = 0

    def small(self) -> Self:
        """Return one run with few items."""
        return replace(self, judges=("mediocre",), model_costs=(0.1,), items=40, runs=1, most_cost=8.0)

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Simulate every judge, cost and method."""
        rows: list[dict[str, object]] = []
        alone: dict[int, list[dict[str, object]]] = {}
        cells = [(judge, cost) for judge in self.judges for cost in self.model_costs]
        for number, (judge, cost) in enumerate(cells):
            for run in range(self.runs):
                for method in METHODS:
                    # People alone do not depend on the judge or its cost.
                    source = method != ALONE or number == 0
                    curve = self._curve(judge, cost, method, run) if source else alone[run]
                    alone[run] = curve if method == ALONE else alone.get(run, [])
                    rows += [{**row, "judge": judge, "model_cost": cost} for row in curve]
            progress(number + 1, len(cells))
        table = pl.DataFrame(rows)
        return Outcome(tuple(self._claims(table)), self._summary(table), notes=NOTES)

    def _curve(self, judge: str, cost: float, method: str, run: int) -> list[dict[str, object]]:
        scene = simulated_scene(judge, self.items, np.random.default_rng([self.seed, run]))
        study = Run(scene, cost, np.random.default_rng([self.seed, run, 1]))
        rows: list[dict[str, object]] = []
        next_look = 0.0
        while study.cost < self.most_cost * self.items:
            CHOICES[method](study)
            if study.cost >= next_look:
                rho = study.rho()
                rows.append(
                    {
                        "judge": judge,
                        "model_cost": cost,
                        "method": method,
                        "run": run,
                        "cost": study.cost / self.items,
                        "rho": rho,
                        "people": study.by_people.mean(),
                        "model": study.by_model.mean(),
                    }
                )
                # Single values of ρ scatter; the target counts as reached at the second look in a row above it.
                if len(rows) > 1 and min(rho, float(str(rows[-2]["rho"]))) >= TARGET:
                    break
                next_look = study.cost + 0.1 * self.items
        return rows

    def _reached(self, table: pl.DataFrame) -> pl.DataFrame:
        last = table.group_by("judge", "model_cost", "method", "run", maintain_order=True).last()
        return last.with_columns((pl.col("cost") < self.most_cost).alias("reached"))

    def _summary(self, table: pl.DataFrame) -> pl.DataFrame:
        return (
            self._reached(table)
            .group_by("judge", "model_cost", "method", maintain_order=True)
            .agg(
                pl.col("cost").mean(),
                (pl.col("cost").std() / pl.len().sqrt()).alias("se"),
                pl.col("people").mean(),
                pl.col("model").mean(),
                pl.col("reached").mean(),
            )
        )

    def _claims(self, table: pl.DataFrame) -> list[Claim]:
        claims = []
        reached = self._reached(table)
        for judge in self.judges:
            for cost in self.model_costs:
                own = reached.filter((pl.col("judge") == judge) & (pl.col("model_cost") == cost)).pivot(
                    on="method", index="run", values="cost"
                )
                for baseline in METHODS[1:]:
                    ratio = 100 * float(own[POLICY].mean()) / float(own[baseline].mean())  # type: ignore[arg-type]
                    each = 100 * (own[POLICY] / own[baseline]).to_numpy()
                    half = 1.96 * float(each.std(ddof=1)) / np.sqrt(len(each)) if len(each) > 1 else 0.0
                    what = f"{judge} judge at {cost:g} of a person's cost: cost of ρ = {TARGET} relative to {baseline}"
                    claims.append(Claim(what, ratio, ratio - half, ratio + half, unit="%"))
        return claims


NOTES = (
    "Items: sd 18 on a scale of 100; 40 people with bias (sd 6) and noise (sd 14); the judge's errors are those of the "
    "item, repeated calls differ by an sd of 3. Correlation with the true scores: good .9, mediocre .7, useless 0; "
    "uneven: .95 for seven items in ten and 0 for the others, which form a group.",
    "All methods use the same posterior; they differ in who is asked about which item. Fixed split: each answer is by "
    "a person with probability .1, else by the model, both about the items that they have answered least often. By "
    "residual spread: the model answers every item once, people in proportion to the sd that the simulation gives the "
    "judge's errors, which a real study does not know.",
    "The cost is per item, in units of a person's judgment, when ρ with the true scores reaches .95.",
)
