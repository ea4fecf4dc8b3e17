"""Coverage of differences between systems, family-wise error, and power by number of sources.

    python -m benchmarks.coverage_systems [replications] [method …]

Judgments are simulated with effects of sources and annotators, and with systems that differ by source (system × source)
and by annotator (system × annotator). Prints Markdown tables, which docs/concepts/systems.md quotes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from steelyard.models.systems.comparison import Method, SystemComparison, SystemOptions, compare
from steelyard.models.systems.judgments import SystemJudgments
from steelyard.observations import Comparisons, Index, Labels, Ratings

METHODS: tuple[Method, ...] = ("two_way", "bootstrap", "wmt")


@dataclass(frozen=True)
class Scene:
    """A simulated evaluation on a scale from 0 to 100; systems next to each other in rank are `step` apart."""

    design: str = "random"
    systems: int = 6
    sources: int = 50
    annotators: int = 10
    judgments: int = 2
    step: float = 0.0
    source_sd: float = 15.0
    annotator_sd: float = 10.0
    system_source_sd: float = 8.0
    system_annotator_sd: float = 3.0
    noise_sd: float = 15.0
    threshold: float = 50.0
    """The rating from which an output is labelled good."""

    @property
    def truth(self) -> np.ndarray:
        """The systems' true scores, the first the best."""
        return -self.step * np.arange(self.systems)


def ratings(scene: Scene, rng: np.random.Generator) -> SystemJudgments:
    """Rate items: each by random annotators, all of a source by one, half of them, or everything by everybody."""
    shape = (scene.systems, scene.sources)
    if scene.design == "complete":
        system, source, annotator = (axis.ravel() for axis in np.indices((*shape, scene.annotators)))
    else:
        system, source = (np.repeat(axis.ravel(), scene.judgments) for axis in np.indices(shape))
        crowd = np.argsort(rng.random((*shape, scene.annotators)), axis=2)[:, :, : scene.judgments]
        if scene.design == "by source":
            crowd = np.broadcast_to(crowd[:1], crowd.shape)
        annotator = crowd.reshape(-1)
    if scene.design == "half":
        keep = rng.random(len(system)) < 0.5
        system, source, annotator = system[keep], source[keep], annotator[keep]
    value = 50 + scene.truth[system] + effects(scene, system, source, annotator, rng)
    value += rng.normal(0, scene.source_sd, scene.sources)[source]
    value += rng.normal(0, scene.annotator_sd, scene.annotators)[annotator]
    value += rng.normal(0, scene.noise_sd, len(value))
    observations = Ratings(
        items=names(scene.systems),
        item=system.astype(np.int32),
        value=value,
        scale=(-1000.0, 1000.0),
        annotators=names(scene.annotators),
        annotator=annotator.astype(np.int32),
    )
    return SystemJudgments(observations, source.astype(np.int32), names(scene.sources))


def votes(scene: Scene, rng: np.random.Generator) -> SystemJudgments:
    """Compare two systems at a time on one source; the log-odds are a tenth of the difference, and a fifth are ties."""
    count = scene.sources * scene.systems * scene.judgments // 2
    source, annotator = rng.integers(0, scene.sources, count), rng.integers(0, scene.annotators, count)
    left = rng.integers(0, scene.systems, count)
    right = (left + rng.integers(1, scene.systems, count)) % scene.systems
    by_source = rng.normal(0, scene.system_source_sd, (scene.systems, scene.sources))
    by_annotator = rng.normal(0, scene.system_annotator_sd, (scene.systems, scene.annotators))
    score = scene.truth[:, None] + by_source
    lead = score[left, source] - score[right, source] + by_annotator[left, annotator] - by_annotator[right, annotator]
    outcome = np.where(rng.random(count) < 1 / (1 + np.exp(-lead / 10)), 1, -1)
    outcome[rng.random(count) < 0.2] = 0
    comparisons = Comparisons(
        items=names(scene.systems),
        left=left.astype(np.int32),
        right=right.astype(np.int32),
        outcome=outcome.astype(np.int8),
        annotators=names(scene.annotators),
        annotator=annotator.astype(np.int32),
    )
    return SystemJudgments(comparisons, source.astype(np.int32), names(scene.sources))


def labels(scene: Scene, rng: np.random.Generator) -> SystemJudgments:
    """Label items as the ratings say: good from `threshold` on."""
    judgments = ratings(scene, rng)
    rated = judgments.observations
    if not isinstance(rated, Ratings):
        raise TypeError("ratings expected")
    is_bad = (rated.value < scene.threshold).astype(np.int32)
    own = {name: getattr(rated, name) for name in ("items", "item", "annotators", "annotator")}
    return replace(judgments, observations=Labels(label=is_bad, classes=Index(["good", "bad"]), **own))


def effects(
    scene: Scene, system: np.ndarray, source: np.ndarray, annotator: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Draw how systems differ by source and by annotator."""
    by_source = rng.normal(0, scene.system_source_sd, (scene.systems, scene.sources))
    by_annotator = rng.normal(0, scene.system_annotator_sd, (scene.systems, scene.annotators))
    return np.asarray(by_source[system, source] + by_annotator[system, annotator])


def names(count: int) -> Index:
    return Index([str(number) for number in range(count)])


def errors(comparison: SystemComparison, truth: np.ndarray) -> tuple[float, float, bool]:
    """Return the coverage of single differences, whether all intervals hold the truth, and whether one is false."""
    table = comparison.differences
    first, second = (table[name].cast(int).to_numpy() for name in ("system", "other"))
    gap = truth[first] - truth[second]
    false_findings = bool((table["significant"].to_numpy() & (gap <= 0)).any())
    inside = (table["lower"].to_numpy() <= gap) & (gap <= table["upper"].to_numpy())
    # The p-value of the difference from its true value, if the truth is no difference.
    single = float((table["p_value"].to_numpy() >= 0.05).mean())
    return single, bool(inside.all()), false_findings


def coverage_table(
    make: Callable[[Scene, np.random.Generator], SystemJudgments],
    scenes: dict[str, Scene],
    replications: int,
    methods: Sequence[Method] = METHODS,
) -> None:
    """Print coverage, simultaneous coverage and family-wise error where all systems are equal."""
    print("| judgments | method | coverage | simultaneous | family-wise error |")
    print("|---|---|---:|---:|---:|")
    for title, scene in scenes.items():
        for method in methods:
            rng = np.random.default_rng(1)
            options = SystemOptions(method=method, draws=200)
            results = [errors(compare(make(scene, rng), options), scene.truth) for _ in range(replications)]
            single, simultaneous, false = np.mean(np.array(results, float), axis=0)
            print(f"| {title} | {method} | {single:.3f} | {simultaneous:.3f} | {false:.3f} |", flush=True)


def power_table(replications: int) -> None:
    """Print the proportion of differences of neighbours, and of systems two places apart, that are found."""
    print("| sources | method | 4 points | 8 points | clusters of 4 |")
    print("|---:|---|---:|---:|---:|")
    for sources in (25, 50, 100, 200, 400):
        scene = Scene(systems=4, sources=sources, step=4.0, judgments=1, annotators=20, system_annotator_sd=1.0)
        for method in ("two_way", "bootstrap"):
            rng = np.random.default_rng(2)
            rates = []
            for _ in range(replications):
                comparison = compare(ratings(scene, rng), SystemOptions(method=method, draws=300))
                table = comparison.differences
                gap = (table["other"].cast(int) - table["system"].cast(int)).abs().to_numpy()
                right = (
                    table["significant"].to_numpy() & (table["other"].cast(int) > table["system"].cast(int)).to_numpy()
                )
                rates.append([right[gap == 1].sum() / 3, right[gap == 2].sum() / 2, comparison.scores["cluster"].max()])
            near, far, clusters = np.mean(rates, axis=0)
            print(f"| {sources} | {method} | {near:.2f} | {far:.2f} | {clusters:.1f} |", flush=True)


def main() -> None:
    """Print all tables."""
    replications = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    methods = [name for name in METHODS if name in sys.argv[2:]] or list(METHODS)
    usual = Scene()
    scenes = {
        "ratings: 50 sources, 10 annotators, 2 of them per item": usual,
        "10 sources, 5 annotators": replace(usual, sources=10, annotators=5),
        "50 sources, 3 annotators": replace(usual, annotators=3),
        "200 sources, 40 annotators, 1 per item": replace(usual, sources=200, annotators=40, judgments=1),
        "one annotator for all systems of a source": replace(usual, design="by source", judgments=1),
        "half of the items": replace(usual, design="half", judgments=1),
        "everybody rates everything, 5 annotators": replace(usual, design="complete", annotators=5),
        "without annotators' preferences": replace(usual, system_annotator_sd=0.0),
        "15 systems": replace(usual, systems=15),
    }
    coverage_table(ratings, scenes, replications, methods)
    print()
    comparisons = {
        "comparisons: 6 per source, 50 sources, 10 annotators": usual,
        "200 sources, 40 annotators": replace(usual, sources=200, annotators=40),
        "50 sources, 5 annotators": replace(usual, annotators=5),
    }
    coverage_table(votes, comparisons, replications, methods)
    print()
    classes = {
        "labels: half good, 50 sources, 10 annotators, 2 per item": usual,
        "nine in ten good": replace(usual, threshold=18.0),
        "20 sources, 5 annotators": replace(usual, sources=20, annotators=5),
    }
    coverage_table(labels, classes, replications, [method for method in methods if method != "wmt"])
    print()
    power_table(max(replications // 4, 20))


if __name__ == "__main__":
    main()
