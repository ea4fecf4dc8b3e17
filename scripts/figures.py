"""Draw the figures of docs/concepts from the project's own code: python -m scripts.figures [NAME…]."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import polars as pl
from scipy import stats

import steelyard
from reproductions.calibrated.methods import Crowd, both_ways, pearson
from steelyard.models.ratings.easl import BetaState
from steelyard.observations import Choices, Comparisons, FloatArray, Index, Labels, Rankings, Ratings
from steelyard.report.typeface import FAMILY, renderer

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "images"
BLUE, WARM, GREY = "#2c5e8a", "#c0632b", "#8a959b"
PALETTE = [BLUE, WARM, GREY, "#4f8a5b"]

FIGURES: dict[str, Callable[[], Any]] = {}


def figure(make: Callable[[], Any]) -> Callable[[], Any]:
    """Register a figure; its file has the function's name."""
    FIGURES[make.__name__.replace("_", "-")] = make
    return make


# Made-up people and items


def index(count: int, word: str = "item") -> Index:
    """Name so many things."""
    return Index([f"{word} {number}" for number in range(count)])


def compared(theta: FloatArray, count: int, rng: np.random.Generator, tie: float = 0.0) -> Comparisons:
    """Compare random pairs of items whose strengths are `theta`."""
    pairs = np.array([rng.choice(len(theta), 2, replace=False) for _ in range(count)], np.int32)
    difference = theta[pairs[:, 0]] - theta[pairs[:, 1]] + rng.logistic(size=count)
    outcome = np.where(np.abs(difference) < tie, 0, np.sign(difference)).astype(np.int8)
    return Comparisons(items=index(len(theta)), left=pairs[:, 0], right=pairs[:, 1], outcome=outcome)


def chosen(theta: FloatArray, count: int, rng: np.random.Generator) -> tuple[Choices, Rankings]:
    """Show random tuples of four: what is best and worst, and the whole ranking."""
    tuples = np.array([rng.choice(len(theta), 4, replace=False) for _ in range(count)], np.int32)
    percepts = theta[tuples] + rng.gumbel(size=tuples.shape)
    order = np.take_along_axis(tuples, np.argsort(-percepts, axis=1), axis=1)
    names = index(len(theta))
    rankings = Rankings(
        items=names,
        start=np.arange(0, 4 * count + 1, 4, dtype=np.int64),
        item=order.ravel(),
        rank=np.tile(np.arange(1, 5, dtype=np.int32), count),
    )
    return Choices(items=names, shown=tuples, best=order[:, 0], worst=order[:, 3]), rankings


def rated(truth: FloatArray, each: int, rng: np.random.Generator, people: int = 40) -> Ratings:
    """Rate every item `each` times on 0 to 100, by people with biases of their own."""
    item = np.tile(np.arange(len(truth), dtype=np.int32), each)
    who = np.concatenate([rng.permutation(people)[: len(truth)] for _ in range(each)]).astype(np.int32)
    value = truth[item] + rng.normal(0, 8, people)[who] + rng.normal(0, 12, len(item))
    names = index(len(truth))
    return Ratings(
        items=names,
        annotators=index(people, "ann"),
        annotator=who,
        item=item,
        value=np.clip(value, 0, 100),
        scale=(0, 100),
    )


def against_truth(scores: pl.DataFrame, truth: FloatArray, title: str, x: str) -> Any:
    """Draw scores with their intervals against the truth they were made from."""
    truth_table = pl.DataFrame({"item": list(index(len(truth)).ids), "truth": truth})
    base = alt.Chart(scores.join(truth_table, on="item"), title=title).encode(x=alt.X("truth:Q", title=x))
    line = alt.Chart(truth_table).mark_line(color=GREY, strokeDash=[4, 4]).encode(x="truth:Q", y="truth:Q")
    bars = base.mark_rule(color=BLUE).encode(y=alt.Y("lower:Q", title="score with its 95 % interval"), y2="upper:Q")
    return line + bars + base.mark_circle(color=BLUE, size=45).encode(y="score:Q")


def lines(rows: list[dict[str, Any]], title: str, x: str, y: str, by: str) -> Any:
    """Draw one line for each value of `by`."""
    return (
        alt.Chart(pl.DataFrame(rows), title=title)
        .mark_line(point=True)
        .encode(x=alt.X(f"{x}:Q"), y=alt.Y(f"{y}:Q", scale=alt.Scale(zero=False)), color=color(by))
    )


def color(by: str) -> alt.Color:
    """One colour for each value."""
    return alt.Color(
        f"{by}:N", scale=alt.Scale(range=PALETTE), legend=alt.Legend(orient="bottom", labelLimit=260, columns=2)
    )


# The figures


@figure
def rating_models() -> Any:
    """Intervals of the mean narrow with more ratings."""
    rng = np.random.default_rng(1)
    truth = np.linspace(15, 85, 200)
    rows = []
    for each in (2, 3, 5, 8, 12, 20, 30, 40):
        ratings = rated(truth, each, rng, people=250)
        for name, model in (
            ("t (mean's default)", steelyard.Mean()),
            ("bootstrap", steelyard.EASL(interval="bootstrap")),
        ):
            scores = model.fit(ratings).scores.drop_nulls("upper")
            width = np.mean(scores["upper"].to_numpy() - scores["lower"].to_numpy())
            rows.append({"ratings per item": each, "width": float(width), "interval": name})
    return lines(rows, "Width of 95 % intervals", "ratings per item", "width", "interval")


@figure
def calibrated_scale() -> Any:
    """The same simulated judgments, scored by their mean and on the calibrated scale."""
    rows = []
    for each in (3, 4, 6, 8, 10, 14, 20):
        agreed: dict[str, list[float]] = {}
        for seed in range(4):
            crowd = Crowd(items=200, people=40, random=0.1).drawn(np.random.default_rng(seed))
            ratings = crowd.ratings(*crowd.who(each))
            for method, score in both_ways(ratings).items():
                agreed.setdefault(method, []).append(pearson(score, crowd.truth))
        rows += [
            {"judgments per item": each, "r with true values": float(np.mean(found)), "method": method}
            for method, found in agreed.items()
        ]
    title = "Accuracy of mean and calibrated scale"
    return lines(rows, title, "judgments per item", "r with true values", "method")


@figure
def easl() -> Any:
    """A Beta that narrows around the ratings it is given."""
    rng = np.random.default_rng(3)
    ratings = np.clip(rng.normal(0.7, 0.12, 20), 0, 1)
    model, grid = steelyard.EASL(), np.linspace(0, 1, 201)
    rows = []
    for count in (0, 2, 5, 20):
        state: BetaState = model.update(model.start(1), np.zeros(count, np.int32), ratings[:count])
        density = stats.beta.pdf(grid, state.alpha[0], state.beta[0])
        rows += [{"value": x, "density": y, "ratings": f"{count:2d}"} for x, y in zip(grid, density, strict=True)]
    chart = alt.Chart(pl.DataFrame(rows), title="Beta distribution of an item after each rating").mark_line()
    return chart.encode(x=alt.X("value:Q", title="value on [0, 1]"), y="density:Q", color=color("ratings"))


@figure
def bradley_terry() -> Any:
    """Bradley–Terry finds the strengths that made the comparisons."""
    rng = np.random.default_rng(2)
    theta = np.sort(rng.normal(size=25))
    theta -= theta.mean()
    scores = steelyard.BradleyTerry().fit(compared(theta, 400, rng, tie=0.3)).scores
    return against_truth(scores, theta, "400 comparisons of 25 items", "true strength")


@figure
def thurstone() -> Any:
    """Probit and logit tell nearly the same story."""
    gap = np.linspace(-4, 4, 161)
    curves = {"Thurstone": stats.norm.cdf(gap / 1.7), "Bradley–Terry": stats.logistic.cdf(gap)}
    rows = [
        {"difference of scores": x, "P(wins)": y, "model": model}
        for model, curve in curves.items()
        for x, y in zip(gap, np.asarray(curve), strict=True)
    ]
    chart = alt.Chart(pl.DataFrame(rows), title="Scaled by 1.7, the two curves differ by less than .01").mark_line()
    return chart.encode(x="difference of scores:Q", y="P(wins):Q", color=color("model"))


@figure
def plackett_luce() -> Any:
    """Whole rankings say more than single comparisons."""
    rng = np.random.default_rng(4)
    theta = rng.normal(size=30)
    rows = []
    for tasks in (30, 60, 120, 240):
        for _ in range(8):
            choices, rankings = chosen(theta, tasks, rng)
            for model, found in (
                ("ranking of four", steelyard.PlackettLuce().fit(rankings)),
                ("best and worst of four", steelyard.MaxDiff().fit(choices)),
                ("one pair", steelyard.BradleyTerry().fit(compared(theta, tasks, rng))),
            ):
                score = dict(found.scores.select("item", "score").drop_nulls().iter_rows())
                scored_items = [n for n in range(30) if f"item {n}" in score]
                rho = stats.spearmanr([score[f"item {n}"] for n in scored_items], theta[scored_items]).statistic
                rows.append({"tasks": tasks, "ρ with true scores": rho, "one task is": model})
    mean = pl.DataFrame(rows).group_by("tasks", "one task is", maintain_order=True).mean()
    return lines(mean.to_dicts(), "Accuracy by question type", "tasks", "ρ with true scores", "one task is")


@figure
def best_worst() -> Any:
    """Counting and maxdiff on the same tuples."""
    rng = np.random.default_rng(5)
    theta = np.sort(rng.normal(size=40))
    choices, _ = chosen(theta, 160, rng)
    counting = steelyard.Counting().fit(choices).scores.select("item", pl.col("score").alias("counting"))
    maxdiff = steelyard.MaxDiff().fit(choices).scores.select("item", pl.col("score").alias("maxdiff"))
    chart = alt.Chart(
        counting.join(maxdiff, on="item"), title="With tuples drawn at random, counting and maxdiff agree"
    )
    return chart.mark_circle(color=BLUE, size=50).encode(x="counting:Q", y="maxdiff:Q")


@figure
def trueskill() -> Any:
    """Two skills become certain as they are compared."""
    rng = np.random.default_rng(6)
    theta = np.array([-1.0, -0.3, 0.4, 1.2])
    model = steelyard.TrueSkill()
    state, rows = model.start(4), []
    for step in range(121):
        if step % 4 == 0:
            rows += [
                {
                    "comparisons": step,
                    "μ": float(state.mu[n]),
                    "item": f"item {n}",
                    "sd": float(np.sqrt(state.variance[n])),
                }
                for n in range(4)
            ]
        state = model.update(state, compared(theta, 1, rng))
    frame = pl.DataFrame(rows).with_columns(low=pl.col("μ") - pl.col("sd"), high=pl.col("μ") + pl.col("sd"))
    base = alt.Chart(frame, title="TrueSkill: beliefs about four items, ± 1 sd").encode(
        x="comparisons:Q", color=color("item")
    )
    return base.mark_area(opacity=0.18).encode(y=alt.Y("low:Q", title="μ"), y2="high:Q") + base.mark_line().encode(
        y="μ:Q"
    )


@figure
def bounded_ranking() -> Any:
    """Bounded scores by rounds of comparisons."""
    rng = np.random.default_rng(7)
    theta = np.array([-2.0, -0.7, 0.7, 2.0])
    model = steelyard.BoundedRanking()
    state, rows = model.start(4), []
    for step in range(401):
        if step % 10 == 0:
            rows += [{"comparisons": step, "mode": float(state.mode[n]), "item": f"item {n}"} for n in range(4)]
        state = model.update(state, compared(theta, 1, rng))
    chart = alt.Chart(pl.DataFrame(rows), title="Bounded ranking: modes of four items")
    return chart.mark_line().encode(
        x="comparisons:Q", y=alt.Y("mode:Q", scale=alt.Scale(domain=[0, 1])), color=color("item")
    )


@figure
def elo() -> Any:
    """Elo wanders for ever."""
    rng = np.random.default_rng(8)
    theta = np.array([-1.0, -0.3, 0.3, 1.0])
    model = steelyard.Elo()
    state, rows = model.start(4), []
    for step in range(401):
        if step % 5 == 0:
            rows += [{"comparisons": step, "rating": float(state.rating[n]), "item": f"item {n}"} for n in range(4)]
        state = model.update(state, compared(theta, 1, rng))
    chart = alt.Chart(pl.DataFrame(rows), title="Elo ratings of four items, k = 32")
    return chart.mark_line().encode(
        x="comparisons:Q", y=alt.Y("rating:Q", scale=alt.Scale(zero=False)), color=color("item")
    )


@figure
def dominance() -> Any:
    """More comparisons by people who err: a cycle swallows the graph."""
    rng = np.random.default_rng(9)
    rows = []
    for asked in range(5, 16):
        for noise in (0.3, 1.0):
            clean: list[float] = []
            for _ in range(60):
                theta = rng.permutation(6) / 2
                pairs = compared(theta / noise, asked, rng)
                by_one = replace(pairs, annotators=index(1, "ann"), annotator=np.zeros(asked, np.int32))
                result = steelyard.cycle_consistency(by_one)
                value = next(f.value for f in result.statistics if f.key == "items_in_no_cycle")
                clean.append(1.0 if value is None else value)
            rows.append(
                {"comparisons of six items": asked, "items in no cycle": float(np.mean(clean)), "noise": f"{noise}"}
            )
    return lines(rows, "More comparisons create more cycles", "comparisons of six items", "items in no cycle", "noise")


@figure
def label_models() -> Any:
    """Dawid–Skene gains on majority when annotators differ."""
    rng = np.random.default_rng(10)
    rows = []
    for each in (3, 5, 7, 9):
        right: dict[str, list[float]] = {"majority": [], "Dawid–Skene": [], "MACE": []}
        for _ in range(6):
            truth = rng.integers(0, 2, 150)
            accuracy = rng.choice([0.55, 0.9], 20)
            item = np.tile(np.arange(150, dtype=np.int32), each)
            who = rng.integers(0, 20, len(item)).astype(np.int32)
            label = np.where(rng.random(len(item)) < accuracy[who], truth[item], 1 - truth[item]).astype(np.int32)
            labels = Labels(
                items=index(150),
                annotators=index(20, "ann"),
                annotator=who,
                item=item,
                label=label,
                classes=Index(["no", "yes"]),
            )
            for name, model in (
                ("majority", steelyard.Majority()),
                ("Dawid–Skene", steelyard.DawidSkene(interval="none")),
                ("MACE", steelyard.MACE(interval="none", restarts=3)),
            ):
                labels_by_item = dict(model.fit(labels).scores.select("item", "label").iter_rows())
                right[name].append(
                    float(np.mean([labels_by_item[f"item {n}"] == ("no", "yes")[truth[n]] for n in range(150)]))
                )
        rows += [{"labels per item": each, "accuracy": float(np.mean(v)), "model": name} for name, v in right.items()]
    return lines(rows, "Half of the annotators are careless", "labels per item", "accuracy", "model")


@figure
def gold_calibration() -> Any:
    """Biases found on gold items."""
    rng = np.random.default_rng(11)
    truth = rng.uniform(10, 90, 80)
    bias = rng.normal(0, 10, 12)
    item = np.tile(np.arange(80, dtype=np.int32), 6)
    who = rng.integers(0, 12, len(item)).astype(np.int32)
    value = np.clip(truth[item] + bias[who] + rng.normal(0, 8, len(item)), 0, 100)
    ratings = Ratings(
        items=index(80), annotators=index(12, "ann"), annotator=who, item=item, value=value, scale=(0, 100)
    )
    gold = {f"item {n}": float(truth[n]) for n in range(40)}
    annotator_table = steelyard.GaussianCalibration().fit(ratings, gold=gold).annotators
    assert annotator_table is not None
    truth_table = pl.DataFrame({"annotator": list(index(12, "ann").ids), "true bias": bias})
    base = alt.Chart(
        annotator_table.join(truth_table, on="annotator"),
        title="Bias estimated from forty gold items",
    ).encode(x="true bias:Q")
    bars = base.mark_rule(color=BLUE).encode(
        y=alt.Y("bias_lower:Q", title="bias with its 95 % interval"), y2="bias_upper:Q"
    )
    line = alt.Chart(truth_table).mark_line(color=GREY, strokeDash=[4, 4]).encode(x="true bias:Q", y="true bias:Q")
    return line + bars + base.mark_circle(color=BLUE, size=45).encode(y="bias:Q")


@figure
def split_half() -> Any:
    """Reliability grows with the budget."""
    rng = np.random.default_rng(12)
    curve = steelyard.split_half_by_budget(rated(rng.uniform(20, 80, 40), 20, rng))
    rows = curve.filter(pl.col("statistic").is_in(["split_half_spearman", "split_half_spearman_corrected"]))
    base = alt.Chart(rows, title="Split-half reliability grows with the judgments in each half").encode(
        x=alt.X("per_half:Q", title="judgments per item in each half"), color=color("label")
    )
    band = base.mark_area(opacity=0.18).encode(y=alt.Y("lower:Q", title="ρ", scale=alt.Scale(zero=False)), y2="upper:Q")
    return band + base.mark_line(point=True).encode(y="value:Q")


@figure
def adaptive() -> Any:
    """What a comparison tells by how far apart the items are, for annotators of different noise."""
    from steelyard.designs.adaptive.kernels import comparison_information
    from steelyard.designs.adaptive.objective import information_table
    from steelyard.models.calibrated.online import LEVELS, START

    variance = 0.15
    people = {f"noise {level:g}": np.where(np.isclose(LEVELS, level), 1.0, 0.0) for level in (0.1, 0.4, 1.0)}
    people["unknown annotator"] = START
    x, y = "difference of the two means, in standard deviations of the items", "reduction of variance, %"
    rows = [
        {x: distance, y: 100 * variance / 2 * comparison_information(answers, distance, variance), "annotator": who}
        for who, chance in people.items()
        for answers in [information_table(chance, 0.0)]
        for distance in np.linspace(0, 2, 101).tolist()
    ]
    title = "Expected reduction of variance by one comparison"
    return lines(rows, title, x, y, "annotator").mark_line()


@figure
def choosing_a_design() -> Any:
    """What the planner says about 200 items and the usual people."""
    from steelyard.report.plan_chart import plan_chart
    from steelyard.simulate import choose_options, plan

    planned = plan(200, 0.9, choose_options(200), jobs=2)
    return plan_chart(planned.curve, planned.table(), 0.9)


def main() -> None:
    """Draw the figures named, or all."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    renderer()  # lays texts out with the product's typeface
    for name in sys.argv[1:] or FIGURES:
        chart = FIGURES[name]().properties(width=460, height=260)
        if chart.config is alt.Undefined:
            chart = chart.configure(font=FAMILY)
        chart.configure_view(stroke=None).configure_axis(grid=False).save(FOLDER / f"{name}.svg")
        print(f"docs/images/{name}.svg")


if __name__ == "__main__":
    main()
