"""The calibrated scale's generative model: parameters drawn from its priors, and observations simulated from them.

This states the model a second time, from its documentation, so that the sampler can be checked against it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.models.calibrated.chain import ORIGIN, SLIDER_FLOOR, STEP_FLOOR, USUAL_SPREAD, WITNESSES
from steelyard.models.calibrated.chain_state import COMPARED_SD, MARGIN_PRIOR, MEAN_PRIOR, RATED_SD, SHIFT_SD
from steelyard.models.calibrated.evidence import BEYOND, Evidence
from steelyard.models.calibrated.ladder import RUNGS
from steelyard.models.calibrated.responder_kernels import (
    ALPHA,
    BETA,
    INTERCEPT,
    INTERCEPT_PRIOR,
    INTERCEPT_SD,
    KAPPA,
    KAPPA_PRIOR,
    LAMBDA,
    LAPSE_PRIOR,
    LOG_NOISE,
    LOG_NOISE_PRIOR,
    LOG_SLOPE,
    NOISE_SD,
    OMEGA_A,
    OMEGA_B,
    OMEGA_L,
    RANDOM,
    RANDOM_NOISE,
    RANDOM_PRIOR,
    RANDOM_RATE,
    RANDOM_SLOPE,
    SLOPE_PRIOR_SD,
    SLOPE_SD,
    TAIL,
    TAIL_WEIGHT,
    Ladder,
)
from steelyard.models.comparisons.cumulative_link import strength_levels
from steelyard.observations import (
    Choices,
    Comparisons,
    FloatArray,
    Index,
    IntArray,
    Mixed,
    Observations,
    Rankings,
    Ratings,
)

STEPS = {"slider": 0, "steps": 5, "yes_no": 2}
"""Ways of rating, and the number of steps of each."""


@dataclass(frozen=True)
class Scene:
    """A kind of study: the ways of asking, and how many items, annotators and questions to each there are.

    A question is about one item (ratings), two (comparisons) or `size` (choices and rankings). Sliders have `page`
    ratings to an answer.
    """

    asks: tuple[str, ...]
    items: int = 10
    annotators: int = 8
    questions: int = 10
    size: int = 4
    page: int = 1


STRENGTHS = 3
"""Strengths of preferences in the scene of that name."""

SCENES = {
    "slider": Scene(("slider",), items=12, annotators=6, questions=12),
    "pages": Scene(("slider",), items=12, annotators=6, questions=12, page=4),
    "steps": Scene(("steps",), items=12, annotators=6, questions=12),
    "yes_no": Scene(("yes_no",), items=12, annotators=8, questions=12),
    "comparisons": Scene(("comparisons",), items=8, annotators=5, questions=25),
    "ties": Scene(("ties",), items=8, annotators=5, questions=25),
    "strengths": Scene(("strengths",), items=8, annotators=5, questions=25),
    "best_worst": Scene(("best_worst",), items=10, annotators=5, questions=8),
    "rankings": Scene(("rankings",), items=8, annotators=5, questions=4, size=5),
    "mixed": Scene(("slider", "comparisons"), items=10, annotators=6, questions=10),
    "compared_twice": Scene(("comparisons", "best_worst"), items=8, annotators=5, questions=8),
    "two_scales": Scene(("slider", "steps"), items=10, annotators=6, questions=10),
}


@dataclass(eq=False)
class Truth:
    """One draw of all unknowns, responders numbered by way of asking and annotator.

    `shift` is by annotator and item; `population` has the columns of the sampler's, up to the random rate.
    """

    x: FloatArray
    common: FloatArray
    population: FloatArray
    line: FloatArray
    lapse_rate: FloatArray
    shift: FloatArray
    tuples: dict[tuple[int, frozenset[int]], dict[int, float]]


@dataclass(frozen=True, eq=False)
class Case:
    """Simulated observations as the sampler sees them, and the truth in the sampler's numbering."""

    evidence: Evidence
    truth: Truth
    answer_shift: FloatArray
    tuple_response: FloatArray


def half_normal(rng: np.random.Generator, scale: float) -> float:
    """Draw from a half-normal distribution."""
    return abs(scale * float(rng.standard_normal()))


def draw_truth(rng: np.random.Generator, scene: Scene, rung: Ladder) -> Truth:
    """Draw all parameters from the priors."""
    is_rated = scene.asks[0] in STEPS
    mean = float(rng.normal(*MEAN_PRIOR)) if is_rated else 0.0
    sd = half_normal(rng, RATED_SD if is_rated else COMPARED_SD)
    shift_sd = half_normal(rng, SHIFT_SD)
    margin = exp(rng.normal(*MARGIN_PRIOR)) if {"ties", "strengths"} & set(scene.asks) else 0.0
    gaps = np.exp(rng.normal(*MARGIN_PRIOR, STRENGTHS - 1)) if "strengths" in scene.asks else np.zeros(0)
    populations, lines = [], []
    for group in range(len(scene.asks)):
        population, line = draw_group(rng, scene, rung, group)
        populations.append(population)
        lines.append(line)
    responders = len(scene.asks) * scene.annotators
    lapse_rate = np.clip(rng.beta(*LAPSE_PRIOR, responders), 1e-8, 0.999) if rung.random else np.zeros(responders)
    pages = rng.normal(0, shift_sd, (scene.annotators, -(-scene.items // scene.page)))
    shift = np.repeat(pages, scene.page, axis=1)[:, : scene.items] if scene.page > 1 else np.zeros((0, 0))
    x = rng.normal(mean, sd, scene.items)
    common = np.concatenate([[mean, sd, shift_sd, margin], gaps])
    return Truth(x, common, np.array(populations), np.concatenate(lines), lapse_rate, shift, {})


def draw_group(rng: np.random.Generator, scene: Scene, rung: Ladder, group: int) -> tuple[FloatArray, FloatArray]:
    """Draw one way of asking's population, and its responders' lines."""
    rates = scene.asks[group] in STEPS
    population = np.zeros(8)
    is_first = group == 0
    alpha_mean = 0.0
    if rates != (scene.asks[0] in STEPS):
        alpha_mean = log(USUAL_SPREAD) if rates else -log(USUAL_SPREAD)
    population[BETA] = ORIGIN if is_first or not rates else rng.normal(*INTERCEPT_PRIOR)
    population[ALPHA] = 0.0 if is_first else rng.normal(alpha_mean, SLOPE_PRIOR_SD)
    population[LAMBDA] = rng.normal(*LOG_NOISE_PRIOR)
    population[KAPPA] = rng.normal(*KAPPA_PRIOR)
    for column, scale in ((OMEGA_B, INTERCEPT_SD), (OMEGA_A, SLOPE_SD), (OMEGA_L, NOISE_SD)):
        population[column] = half_normal(rng, scale)
    n = scene.annotators
    is_random = np.zeros(n, np.bool_)
    # At least two responders do not answer at random; who shares items with too few others cannot be random.
    while rung.random and n > WITNESSES:
        population[RANDOM_RATE] = rng.beta(*RANDOM_PRIOR)
        is_random = rng.random(n) < population[RANDOM_RATE]
        if (~is_random).sum() >= 2:
            break
    line = np.zeros((n, 5))
    line[:, TAIL_WEIGHT] = rng.gamma(TAIL / 2, 2 / TAIL, n)
    line[:, INTERCEPT] = population[BETA]
    if rung.bias:
        line[:, INTERCEPT] += population[OMEGA_B] * rng.standard_normal(n) / np.sqrt(line[:, TAIL_WEIGHT])
    slope = population[OMEGA_A] * rng.standard_normal(n) * rung.slope
    noise = population[LAMBDA] + population[KAPPA] * slope + population[OMEGA_L] * rng.standard_normal(n) * rung.noise
    random_slope = np.log(np.abs(RANDOM_SLOPE * rng.standard_normal(n)))
    line[:, LOG_SLOPE] = population[ALPHA] + np.where(is_random, random_slope, slope)
    line[:, LOG_NOISE] = np.where(is_random, rng.normal(*RANDOM_NOISE, n), noise)
    line[:, RANDOM] = is_random
    return population, line


def simulate(rng: np.random.Generator, scene: Scene, truth: Truth) -> Observations | None:
    """Simulate all answers; None where the data would be read as another scale or another model."""
    parts: list[Observations] = []
    for group, ask in enumerate(scene.asks):
        line = truth.line[group * scene.annotators :][: scene.annotators]
        lapse_rate = truth.lapse_rate[group * scene.annotators :][: scene.annotators]
        part: Observations | None
        if ask in STEPS:
            part = rate(rng, scene, truth, line, STEPS[ask])
        elif ask in ("comparisons", "ties", "strengths"):
            part = compare(rng, scene, truth, line, lapse_rate)
        else:
            part = order(rng, scene, truth, line, ask)
        if part is None:
            return None
        parts.append(part)
    return parts[0] if len(parts) == 1 else Mixed.of(parts)


def names(scene: Scene) -> dict[str, Any]:
    """Name the items and annotators."""
    return {
        "items": Index([f"i{code:02d}" for code in range(scene.items)]),
        "annotators": Index([f"a{code:02d}" for code in range(scene.annotators)]),
    }


def rate(rng: np.random.Generator, scene: Scene, truth: Truth, line: FloatArray, steps: int) -> Ratings | None:
    """Simulate ratings: every annotator rates `questions` items, once each."""
    floor = STEP_FLOOR / (steps - 1) if steps else SLIDER_FLOOR
    who = np.repeat(np.arange(scene.annotators, dtype=np.int32), scene.questions)
    item = np.concatenate(
        [rng.permutation(scene.items)[: scene.questions].astype(np.int32) for _ in range(scene.annotators)]
    )
    response = line[who, INTERCEPT] + np.exp(line[who, LOG_SLOPE]) * (truth.x[item] - ORIGIN)
    response += np.sqrt(np.exp(2 * line[who, LOG_NOISE]) + floor**2) * rng.standard_normal(len(who))
    tasks: dict[str, Any] = {}
    if truth.shift.size:
        response += truth.shift[who, item]
        pages = truth.shift.shape[1] // scene.page
        tasks = {
            "task": (who * pages + item // scene.page).astype(np.int32),
            "tasks": Index([f"t{code}" for code in range(scene.annotators * pages)]),
        }
    if not steps and (response.min() < -BEYOND or response.max() > 1 + BEYOND):
        return None
    value = np.clip(response, 0, 1)
    if steps:
        value = np.round(value * (steps - 1)) / (steps - 1)
    # Values that all lie on coarser steps would be read as those steps.
    coarser = range(1, steps - 1 if steps else 11)
    if any(np.allclose(value * k, np.round(value * k), rtol=0, atol=1e-9) for k in coarser):
        return None
    return Ratings(**names(scene), annotator=who, item=item, value=value, scale=(0.0, 1.0), **tasks)


def compare(
    rng: np.random.Generator, scene: Scene, truth: Truth, line: FloatArray, lapse_rate: FloatArray
) -> Comparisons | None:
    """Simulate comparisons of random pairs."""
    rows = scene.annotators * scene.questions
    who = np.repeat(np.arange(scene.annotators, dtype=np.int32), scene.questions)
    left = rng.integers(scene.items, size=rows).astype(np.int32)
    right = ((left + rng.integers(1, scene.items, size=rows)) % scene.items).astype(np.int32)
    margin = truth.common[3]
    difference = np.exp(line[who, LOG_SLOPE]) * (truth.x[left] - truth.x[right]) + rng.standard_normal(rows)
    cuts = margin + np.concatenate([[0.0], np.cumsum(truth.common[4:])])
    level = (np.abs(difference)[:, None] > cuts).sum(axis=1)
    answer = np.where(level == 0, 0, np.sign(difference) * np.maximum(level, 1))
    answers = np.arange(-len(cuts), len(cuts) + 1)
    guess = rng.choice(answers if margin > 0 else answers[answers != 0], rows)
    answer = np.where(rng.random(rows) < lapse_rate[who], guess, answer)
    outcome = np.sign(answer).astype(np.int8)
    if margin > 0 and not (outcome == 0).any():
        return None
    strength = np.abs(answer).astype(np.int8) if len(cuts) > 1 else np.zeros(rows, np.int8)
    comparisons = Comparisons(**names(scene), annotator=who, left=left, right=right, outcome=outcome, strength=strength)
    # Strengths that are hardly used, or unrelated to the items, are merged or left out.
    return comparisons if len(cuts) == 1 or strength_levels(comparisons).n_levels == len(cuts) else None


def order(rng: np.random.Generator, scene: Scene, truth: Truth, line: FloatArray, ask: str) -> Observations:
    """Simulate best–worst choices or rankings of distinct random tuples."""
    who, shown, rank = [], [], []
    origin = ORIGIN if scene.asks[0] in STEPS else 0.0
    for annotator in range(scene.annotators):
        tuples: set[frozenset[int]] = set()
        while len(tuples) < scene.questions:
            tuples.add(frozenset(rng.permutation(scene.items)[: scene.size].tolist()))
        for items in sorted(tuples, key=sorted):
            codes = np.array(sorted(items))
            response = exp(line[annotator, LOG_SLOPE]) * (truth.x[codes] - origin)
            response += sqrt(0.5) * rng.standard_normal(len(codes))
            truth.tuples[annotator, items] = dict(zip(codes.tolist(), response.tolist(), strict=True))
            who.append(annotator)
            shown.append(codes)
            rank.append(1 + np.argsort(np.argsort(-response)))
    annotators, items_shown, ranks = np.array(who, np.int32), np.array(shown, np.int32), np.array(rank)
    rows = np.arange(len(annotators))
    if ask == "best_worst":
        best, worst = items_shown[rows, ranks.argmin(axis=1)], items_shown[rows, ranks.argmax(axis=1)]
        return Choices(**names(scene), annotator=annotators, shown=items_shown, best=best, worst=worst)
    start = np.arange(0, items_shown.size + 1, scene.size, dtype=np.int64)
    return Rankings(
        **names(scene),
        annotator=annotators,
        start=start,
        item=items_shown.ravel(),
        rank=ranks.ravel().astype(np.int32),
    )


def draw_case(rng: np.random.Generator, scene: Scene, rung: str) -> Case:
    """Draw parameters and observations until the observations are read as what they are.

    This rejection depends on the observations alone, so that posteriors stay what they are. Studies with a response far
    beyond the ends of a slider are rejected, too: that is part of the model (`BEYOND`).
    """
    while True:
        truth = draw_truth(rng, scene, RUNGS[rung])
        observations = simulate(rng, scene, truth)
        if observations is not None:
            evidence = Evidence.of("calibrated_scale", observations)
            if len(evidence.item) == scene.items:
                return in_order(evidence, truth, scene)


def in_order(evidence: Evidence, truth: Truth, scene: Scene) -> Case:
    """Bring the truth to the order of the evidence, which numbers responders by what they answered."""
    group = np.repeat(np.arange(len(evidence.groups)), [g.last - g.first for g in evidence.groups])
    responder = group * scene.annotators + evidence.annotator
    ratings = evidence.ratings
    answer_shift = np.zeros(int(ratings.shift.max(initial=0)) + 1)
    if truth.shift.size:
        who = np.repeat(np.arange(len(evidence.annotator)), np.diff(ratings.first))
        answer_shift[ratings.shift] = truth.shift[evidence.annotator[who], evidence.item[ratings.item]]
    rows = evidence.tuples
    response = np.zeros(len(rows.item))
    for at, r in enumerate(rows.responder):
        part = slice(rows.first[at], rows.first[at + 1])
        codes = evidence.item[rows.item[part]].tolist()
        latent = truth.tuples[int(evidence.annotator[r]), frozenset(codes)]
        response[part] = [latent[code] for code in codes]
    ordered = Truth(
        truth.x[evidence.item],
        truth.common,
        truth.population,
        truth.line[responder],
        truth.lapse_rate[responder],
        truth.shift,
        truth.tuples,
    )
    return Case(evidence, ordered, answer_shift, response)


Quantities = dict[str, float]


def quantities(
    truth_like: tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray],
    evidence: Evidence,
    rung: Ladder,
    responder: NDArray[np.int64],
) -> Quantities:
    """Return the quantities under test from locations, common unknowns, populations, lines and lapse rates.

    `responder` is the one of each group whose parameters are tested.
    """
    x, common, population, line, lapse_rate = truth_like
    is_rated = evidence.groups[0].rates
    values = {"item 0": x[0], "item 1": x[1], "item difference": x[0] - x[-1], "item sd": common[1]}
    if is_rated:
        values["item mean"] = common[0]
    else:
        values["item 0"] -= x.mean()
        values["item 1"] -= x.mean()
        values["level"] = x.mean()
    if evidence.ratings.shift.any():
        values["shift sd"] = common[2]
    if common[3] > 0:
        values["margin"] = common[3]
    values |= {f"gap {number}": gap for number, gap in enumerate(common[4:], 1)}
    for g, group in enumerate(evidence.groups):
        tag, r, prior = f"{group.kind} {g + 1} ", responder[g], population[g]
        columns = {"α": (ALPHA, g > 0), "λ": (LAMBDA, group.rates), "κ": (KAPPA, group.rates and rung.slope)}
        columns |= {"ω_b": (OMEGA_B, group.rates and rung.bias), "ω_a": (OMEGA_A, rung.slope)}
        columns |= {"ω_l": (OMEGA_L, group.rates and rung.noise), "random rate": (RANDOM_RATE, rung.random)}
        columns |= {"β": (BETA, g > 0 and group.rates)}
        values |= {tag + name: prior[column] for name, (column, is_active) in columns.items() if is_active}
        lines = {"intercept": (INTERCEPT, group.rates and rung.bias), "slope": (LOG_SLOPE, rung.slope)}
        lines |= {"noise": (LOG_NOISE, group.rates and rung.noise)}
        values |= {tag + name: line[r, column] for name, (column, is_active) in lines.items() if is_active}
        if rung.random:
            values[tag + "number random"] = line[group.first : group.last, RANDOM].sum()
            if group.kind == Comparisons.kind:
                values[tag + "lapse rate"] = lapse_rate[r]
    return {name: float(value) for name, value in values.items()}


def first_responders(evidence: Evidence) -> NDArray[np.int64]:
    """Return the responder of each group that is the first annotator."""
    who: IntArray = evidence.annotator
    return np.array([g.first + int(np.argmin(who[g.first : g.last])) for g in evidence.groups], np.int64)
