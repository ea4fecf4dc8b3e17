"""PandaLM's test set: two judges beside three people, and what the judges save as a prior for comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import polars as pl
from scipy import stats

from reproductions.base import Claim, Experiment, Outcome, Progress
from reproductions.judges.votes import comparisons, own_scores, prior_draws, reported
from steelyard.observations import Comparisons, FloatArray

VOTES = "pandalm/votes.csv.gz"
BOTH, ALONE, NOISE = "both judges", "people alone", "noise"


@dataclass(frozen=True, slots=True)
class PandaLM(Experiment):
    """Report on the judges of the recorded votes, and replay people's votes with and without them as a prior."""

    name: ClassVar[str] = "judges.pandalm"
    paper: ClassVar[str] = "Steelyard's own"
    title: ClassVar[str] = "PandaLM: two judges beside three people, and as a prior for comparisons"
    data: ClassVar[tuple[str, ...]] = (VOTES,)

    budgets: tuple[float, ...] = (0.25, 0.5, 1.0)
    """Votes by people per comparison."""
    runs: int = 2
    prompts: int = 170
    draws: int = 200
    seed: int = 0

    def small(self) -> Self:
        """Return one run with few prompts."""
        return replace(self, budgets=(0.5, 1.0), runs=1, prompts=12, draws=40)

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Report on the judges, then replay the votes."""
        votes, items = read_votes(data, self.prompts)
        people, models = (votes.filter(pl.col("judge_kind") == kind) for kind in ("human", "llm"))
        claims = _report_claims(items, people, models)
        judges = {name: own_scores(comparisons(own, items)) for (name,), own in models.group_by("annotator")}
        columns = {name: judges[name] for name in sorted(judges)}
        rows: list[dict[str, object]] = []
        for run in range(self.runs):
            rows += self._replay(people, items, columns, np.random.default_rng([self.seed, run]), run)
            progress(run + 1, self.runs)
        table = pl.DataFrame(rows)
        means = table.group_by("method", "budget", maintain_order=True).agg(
            pl.col("correct").mean(), (pl.col("correct").std() / pl.len().sqrt()).alias("se")
        )
        return Outcome((*claims, *self._prior_claims(table)), means, notes=NOTES)

    def _replay(
        self,
        people: pl.DataFrame,
        items: pl.DataFrame,
        columns: dict[str, FloatArray],
        rng: np.random.Generator,
        run: int,
    ) -> list[dict[str, object]]:
        """Hold out one vote of each comparison, and buy one of the others for some of the comparisons."""
        shuffled = people.sample(fraction=1, shuffle=True, seed=int(rng.integers(2**31)))
        place = pl.int_range(pl.len()).over("comparison")
        held_out = comparisons(shuffled.filter(place == 0), items)
        order = rng.permutation(people["comparison"].unique(maintain_order=True).to_numpy())
        noise = {NOISE: rng.standard_normal(items.height)}
        single = {name: {name: column} for name, column in columns.items()}
        methods = {ALONE: {}, **single, BOTH: columns, NOISE: noise}
        rows = []
        for budget in self.budgets:
            bought = order[: round(budget * len(order))]
            part = shuffled.filter((place == 1) & pl.col("comparison").is_in(bought.tolist()))
            for method, own in methods.items():
                draws = prior_draws(comparisons(part, items), own, tuple(items["system"]), self.draws)
                rows.append(
                    {"method": method, "budget": budget, "run": run, "correct": 100 * _correct(draws, held_out)}
                )
        return rows

    def _prior_claims(self, table: pl.DataFrame) -> list[Claim]:
        claims = []
        for method in table["method"].unique(maintain_order=True):
            for budget in self.budgets:
                own = table.filter((pl.col("method") == method) & (pl.col("budget") == budget))["correct"].to_numpy()
                lower, upper = _t_interval(own)
                what = f"held-out votes predicted, {method}, {budget:g} votes by people per comparison"
                claims.append(Claim(what, float(own.mean()), lower, upper, unit="%"))
        curve = table.group_by("method", "budget").agg(pl.col("correct").mean()).sort("budget")
        value = {(method, budget): correct for method, budget, correct in curve.iter_rows()}
        for baseline, name in ((ALONE, "alone"), (NOISE, "with a judge of noise")):
            for method in [name for name in table["method"].unique(maintain_order=True) if name not in (ALONE, NOISE)]:
                for budget in self.budgets[1:]:
                    reached = [value[method, one] for one in self.budgets]
                    needed = _needed(value[baseline, budget], self.budgets, reached) / budget
                    what = f"votes needed with {method} as prior for what {budget:g} per comparison give {name}"
                    claims.append(Claim(what, 100 * needed, unit="%"))
        return claims


def read_votes(data: Path, prompts: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read votes (`annotator`, `left`, `right`, `winner`, …) and the items: the models' outputs for each prompt."""
    votes = pl.read_csv(data / VOTES).drop_nulls("winner").rename({"judge": "annotator"})
    chosen = votes["prompt"].unique(maintain_order=True)[:prompts]
    votes = votes.filter(pl.col("prompt").is_in(chosen.to_list())).with_columns(
        pl.concat_str("prompt", "model_a", separator="/").alias("left"),
        pl.concat_str("prompt", "model_b", separator="/").alias("right"),
    )
    winner = pl.when(pl.col("winner") == "a").then("left").when(pl.col("winner") == "b").then("right")
    votes = votes.with_columns(winner.otherwise(pl.lit("tie")).alias("winner"))
    sides = [
        votes.select(pl.col(side).alias("id"), pl.col(model).alias("system"), pl.col("prompt").alias("source"))
        for side, model in (("left", "model_a"), ("right", "model_b"))
    ]
    items = pl.concat(sides).unique("id").sort("id").with_columns(pl.col("id").alias("text"))
    return votes, items


def _report_claims(items: pl.DataFrame, people: pl.DataFrame, models: pl.DataFrame) -> list[Claim]:
    columns = ("annotator", "left", "right", "winner")
    reports = reported(items, people.select(columns), models.select(columns))
    of_people = reports[0].people_agreement
    claims = [Claim("agreement of two people", of_people.value or 0.0, of_people.lower, of_people.upper)]
    for report in reports:
        agreement = report.agreement
        claims.append(
            Claim(f"agreement of {report.judge} and a person", agreement.value or 0.0, agreement.lower, agreement.upper)
        )
        if report.alternative is not None:
            claims.append(Claim(f"{report.judge}: winning rate", report.alternative.winning_rate))
            claims.append(Claim(f"{report.judge}: advantage", report.alternative.advantage))
        if report.first_share is not None:
            share = report.first_share
            claims.append(Claim(f"{report.judge}: the first output wins", share.value or 0.0, share.lower, share.upper))
    return claims


def _correct(draws: FloatArray, held_out: Comparisons) -> float:
    """Return the proportion of decided votes for the item of higher score; without a score, a vote counts half."""
    score = draws.mean(axis=0)
    decided = held_out.outcome != 0
    difference = (score[held_out.left] - score[held_out.right])[decided]
    right = np.sign(difference) == held_out.outcome[decided]
    return float(np.where(np.isfinite(difference), right, 0.5).mean())


def _needed(value: float, budgets: Sequence[float], values: Sequence[float]) -> float:
    """Return the budget that reaches a value, between the smallest and the largest budget tried."""
    for place, reached in enumerate(values):
        if reached >= value:
            if place == 0:
                return budgets[0]
            part = (value - values[place - 1]) / (reached - values[place - 1])
            return budgets[place - 1] + part * (budgets[place] - budgets[place - 1])
    return budgets[-1]


def _t_interval(values: FloatArray) -> tuple[float | None, float | None]:
    if len(values) < 3:
        return None, None
    half = float(stats.t.ppf(0.975, len(values) - 1)) * float(values.std(ddof=1)) / np.sqrt(len(values))
    return float(values.mean()) - half, float(values.mean()) + half


NOTES = (
    "999 comparisons of five models' outputs for 170 prompts, each by three people and two judges, one order only. The "
    "judge report is that of a study into which the votes were imported; agreement is the proportion of equal answers "
    "(first, second, tie) to the same comparison.",
    "Replay: one vote of each comparison is held out. Of the other votes, one is bought for a part of the comparisons, "
    "drawn at random. Predicted: the held-out votes, ties left out, that are for the output of higher score; outputs "
    "without a score count as one half. Votes needed: by interpolation between the budgets tried.",
    "The prior of each output is a judge's own Bradley–Terry score from its votes on all comparisons, with an effect "
    "of each model. People alone have no such effects; a judge of noise has nothing else, so both are baselines.",
)
