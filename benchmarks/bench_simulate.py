"""Simulated people: judgments a second in memory, by design; and how long a plan takes.

Rates are per second of computing, so that others on the same machine do not count.

`--plan` also plans for 500 items with everything that is usual, on two cores (goal: under a minute).
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
from typing import Any

import numpy as np

from steelyard import registry
from steelyard.records import Item
from steelyard.simulate import Population, SimulatedAnnotators, choose_options, make_crowd, plan, simulate_study
from steelyard.study.config import parse_config

ITEMS, PEOPLE, RUNS = 500, 50, 3
STAGES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"name": "direct"}, {"name": "per_item", "judgments": 20}),
    ({"name": "direct", "items_per_page": 5}, {"name": "per_item", "judgments": 20}),
    ({"name": "pairwise"}, {"name": "random_tuples", "judgments": 20}),
    ({"name": "pairwise"}, {"name": "all_pairs"}),
    ({"name": "best_worst"}, {"name": "random_tuples", "judgments": 20}),
    ({"name": "best_worst"}, {"name": "balanced_tuples", "factor": 2, "annotators_per_task": 3}),
    ({"name": "scored_ranking"}, {"name": "random_tuples", "judgments": 20}),
    ({"name": "scored_ranking"}, {"name": "match_quality", "rounds": 20}),
    ({"name": "pairwise"}, {"name": "adaptive", "judgments": 20}),
]


def simulated(protocol: dict[str, Any], design: dict[str, Any], most: int) -> tuple[int, float, float]:
    """Work through a study; return its judgments, and the seconds to ask and to answer."""
    config = parse_config({"title": "B", "question": "Q", "items": "i.csv", "protocol": protocol, "design": design})
    items = [Item(f"i{number}", "") for number in range(ITEMS)]
    rng, population = np.random.default_rng(0), Population()
    truth = population.truth([item.id for item in items], rng)
    people = SimulatedAnnotators(make_crowd(PEOPLE, rng, population), truth, rng)
    began = time.process_time()
    study = simulate_study(config, items, people, rng, most=most)
    ask_end = time.process_time()
    study.observations()
    return len(study), ask_end - began, time.process_time() - ask_end


def main() -> None:
    """Print the rates, medians of a few runs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--plan", action="store_true")
    parser.add_argument("--most", type=int, default=5000)
    arguments = parser.parse_args()
    print(f"{ITEMS} items, {PEOPLE} people (goal: tens of thousands of judgments a second)")
    for protocol, design in STAGES:
        if design["name"] not in registry.names("designs"):
            continue
        simulated(protocol, design, 200)
        runs = [simulated(protocol, design, arguments.most) for _ in range(RUNS)]
        judgments = runs[0][0]
        seconds = statistics.median(asking + answering for _, asking, answering in runs)
        answering = statistics.median(answering / (asking + answering) for _, asking, answering in runs)
        name = f"{protocol['name']} · {design['name']}"
        print(
            f"  {name:32} {judgments / seconds:8,.0f} judgments a second ({100 * answering:.0f} % answering)",
            flush=True,
        )
    if arguments.plan:
        began = time.perf_counter()
        options = choose_options(ITEMS)
        plan(ITEMS, 0.9, options, jobs=2)
        elapsed = time.perf_counter() - began
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(
            f"plan of {len(options)} options for {ITEMS} items on two cores: {elapsed:.0f} s (goal: under 60), "
            f"{used.ru_utime + used.ru_stime:.0f} s of computing"
        )


if __name__ == "__main__":
    main()
