"""Time adaptive: the next pick, a whole batch, and what is learnt from an answer.

Run: python benchmarks/bench_adaptive.py
Seconds are of processor time, so that other work on the machine does not count.
"""

from __future__ import annotations

import time

import numpy as np

from steelyard.designs import Adaptive, NoTask
from steelyard.designs.base import generator_for
from steelyard.designs.state import AnswerNotice
from steelyard.observations import FloatArray
from steelyard.protocols import BestWorst, Pairwise, Protocol, ScoredRanking
from steelyard.records import Item
from steelyard.simulate import answer_for


def picks(n: int, protocol: Protocol, tasks: int, out: int = 50) -> None:
    """Time picks made one by one while fifty people are at work, and what it takes to take an answer in."""
    items = [Item(f"i{number}", "") for number in range(n)]
    design = Adaptive(judgments=50)
    progress = design.new_progress(protocol, items)
    rng = np.random.default_rng(0)
    value = rng.normal(0.5, 0.15, n)
    waiting: list[tuple[str, tuple[int, ...]]] = []
    picking, folding, hearing = [], [], []
    for step in range(tasks):
        annotator = f"ann-{step % out}"
        began = time.process_time()
        pick = design.pick(progress, protocol.task_size, annotator, generator_for(0, 0, step))
        picked = time.process_time()
        if isinstance(pick, NoTask):
            break
        progress.on_leased(annotator, pick.items, pick.slot, pick.round, generator_for(0, 0, step))
        folded = time.process_time()
        picking.append(picked - began)
        folding.append(folded - picked)
        waiting.append((annotator, pick.items))
        if len(waiting) == out:
            for who, shown in waiting:
                ids = [items[code].id for code in shown]
                percepts = value[list(shown)] + rng.normal(0, 0.05, len(shown))
                observations = protocol.observations(
                    ids, answer_for(protocol, dict(zip(ids, percepts.tolist(), strict=True)), 0.0)
                )
                progress.on_answered(shown, None)
                began = time.process_time()
                progress.notify_answer(AnswerNotice(f"{step}-{who}", who, shown, observations))
                hearing.append(time.process_time() - began)
            waiting.clear()
    began = time.process_time()
    batch = design.batch(progress, n // protocol.task_size)
    whole = time.process_time() - began
    print(
        f"  {n:>9,} items  {protocol.name:14} of {protocol.task_size}: pick {_ms(picking)}, taken in {_ms(folding)}, "
        f"answer learnt {_ms(hearing)}; a batch of {len(batch):,} in {whole:.3f} s"
    )


def _ms(seconds: list[float]) -> str:
    after: FloatArray = 1000 * np.array(seconds[len(seconds) // 4 :])
    return f"{np.median(after):.2f} ms (99 %: {np.quantile(after, 0.99):.2f})"


def main() -> None:
    """Run all of them."""
    for protocol in (Pairwise(ties=False), Pairwise(), BestWorst(), ScoredRanking(size=5)):
        picks(50, protocol, 100)
    for n, tasks in ((1_000, 1000), (10_000, 1000), (30_000, 600), (1_000_000, 150)):
        picks(n, Pairwise(ties=False), tasks)
    picks(10_000, BestWorst(), 600)
    picks(10_000, ScoredRanking(size=5), 600)


if __name__ == "__main__":
    main()
