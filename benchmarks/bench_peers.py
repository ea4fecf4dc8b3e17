"""Time scores alone and scores with intervals beside other packages, in one run.

CPU times on one thread: the wall-clock time of a shared machine depends on its other work. The jobs of a table
alternate, and each is the best of several runs. Peers that are not installed are left out. Bootstraps of peers are
timed with a few resamples and scaled to the number of ours. Run: python -m benchmarks.bench_peers
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("RAYON_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.bench_bradley_terry import simulate as simulate_comparisons
from benchmarks.bench_labels import simulate as simulate_labels
from steelyard.models.comparisons.bradley_terry import BradleyTerry
from steelyard.models.comparisons.elo import Elo
from steelyard.models.labels.dawid_skene import DawidSkene
from steelyard.models.labels.mace import MACE
from steelyard.observations import Comparisons, Labels

RUNS = 3
PEER_RESAMPLES = 2
Job = Callable[[], object]


def cpu_seconds(jobs: Mapping[str, Job], runs: int = RUNS) -> dict[str, float]:
    """Run all jobs in turn, several times; return the least CPU time of each. The first round does not count."""
    seconds = {name: float("inf") for name in jobs}
    for number in range(runs + 1):
        for name, job in jobs.items():
            begin = time.process_time()
            job()
            if number:
                seconds[name] = min(seconds[name], time.process_time() - begin)
    return seconds


def show(
    title: str,
    ours: Mapping[str, Job],
    peers: Mapping[str, Job],
    scale: Mapping[str, float] | None = None,
    runs: int = RUNS,
) -> None:
    """Print one table: every job in seconds, and relative to our scores with intervals."""
    seconds = cpu_seconds({**ours, **peers}, runs)
    for name, factor in (scale or {}).items():
        if name in seconds:
            seconds[name] *= factor
    reference = seconds["steelyard, with intervals"]
    print(f"\n{title}\n\n| job | CPU time | ratio |\n|---|---:|---:|")
    for name, duration in seconds.items():
        print(f"| {name} | {duration:.3f} s | {duration / reference:.2f} |", flush=True)


def evalica_lists(comparisons: Comparisons) -> tuple[list[str], list[str], list[Any]]:
    """Return comparisons as evalica accepts them."""
    import evalica

    names = comparisons.items.ids
    winner = {1: evalica.Winner.X, -1: evalica.Winner.Y, 0: evalica.Winner.Draw}
    return (
        [names[code] for code in comparisons.left],
        [names[code] for code in comparisons.right],
        [winner[int(outcome)] for outcome in comparisons.outcome],
    )


def bradley_terry(comparisons: Comparisons) -> None:
    """Compare Bradley–Terry with choix, evalica and arena-rank."""
    peers: dict[str, Job] = {}
    n = len(comparisons.items)
    if find_spec("choix"):
        import choix

        def choix_fit() -> object:
            winner = np.where(comparisons.outcome > 0, comparisons.left, comparisons.right).astype(np.int64)
            loser = np.where(comparisons.outcome > 0, comparisons.right, comparisons.left)
            wins = np.bincount(winner * n + loser, minlength=n * n).reshape(n, n)
            return choix.ilsr_pairwise_dense(wins.astype(np.float64))

        peers["choix (dense), scores only"] = choix_fit
    if find_spec("evalica"):
        import evalica

        lists = evalica_lists(comparisons)
        peers["evalica, scores only"] = lambda: evalica.bradley_terry(*lists)
    if find_spec("arena_rank"):
        peers |= arena_rank_jobs(comparisons)
    # The intervals come from the same matrix as the scores, so there is no fit without them.
    show(
        f"Bradley–Terry, {len(comparisons):,} comparisons of {n} items",
        {"steelyard, with intervals": lambda: BradleyTerry().fit(comparisons)},
        peers,
    )


def arena_rank_jobs(comparisons: Comparisons) -> dict[str, Job]:
    """Return arena-rank's fits, from a table as it accepts it, without and with its sandwich intervals."""
    import pandas as pd
    from arena_rank.models.bradley_terry import BradleyTerry as Peer
    from arena_rank.utils.data_utils import PairDataset

    left, right, _ = (np.array(column) for column in evalica_lists(comparisons))
    winner = np.where(comparisons.outcome > 0, "model_a", np.where(comparisons.outcome < 0, "model_b", "tie"))
    frame = pd.DataFrame({"model_a": left, "model_b": right, "winner": winner})

    def fit(with_intervals: bool) -> object:
        dataset = PairDataset.from_pandas(frame)
        model = Peer(n_competitors=len(dataset.competitors))
        return model.compute_ratings_and_cis(dataset) if with_intervals else model.fit(dataset)

    return {
        "arena-rank, scores only": lambda: fit(with_intervals=False),
        "arena-rank, with intervals (sandwich)": lambda: fit(with_intervals=True),
    }


def elo(comparisons: Comparisons) -> None:
    """Compare Elo with evalica's."""
    model = Elo()
    peers: dict[str, Job] = {}
    scale: dict[str, float] = {}
    if find_spec("evalica"):
        import evalica

        lists = evalica_lists(comparisons)
        peers["evalica, scores only"] = lambda: evalica.elo(*lists)
        name = f"evalica, with intervals ({model.draws} resamples, scaled)"
        peers[name] = lambda: evalica.bootstrap(
            evalica.elo, *lists, n_resamples=PEER_RESAMPLES, bootstrap_method="percentile", random_state=0
        )
        # One more fit is that of the scores.
        scale[name] = (model.draws + 1) / (PEER_RESAMPLES + 1)
    show(
        f"Elo, {len(comparisons):,} comparisons of {len(comparisons.items):,} items",
        {
            "steelyard, scores only": lambda: model.update(model.start(len(comparisons.items)), comparisons),
            "steelyard, with intervals": lambda: model.fit(comparisons),
        },
        peers,
        scale,
    )


def labels(title: str, model: DawidSkene | MACE, peer: str, observed: Labels, runs: int = RUNS, **options: int) -> None:
    """Compare a model of labels with crowd-kit's."""
    peers: dict[str, Job] = {}
    if find_spec("crowdkit"):
        import pandas as pd
        from crowdkit import aggregation

        frame = pd.DataFrame({"task": observed.item, "worker": observed.annotator, "label": observed.label})
        peers["crowd-kit, scores only"] = lambda: getattr(aggregation, peer)(**options).fit(frame)
    show(
        f"{title}, {len(observed):,} labels of {len(observed.items):,} items",
        {
            "steelyard, scores only": lambda: replace(model, interval="none").fit(observed),
            "steelyard, with intervals": lambda: model.fit(observed),
        },
        peers,
        runs=runs,
    )


def main() -> None:
    """Print the tables."""
    warnings.simplefilter("ignore")
    bradley_terry(simulate_comparisons(200, 1_000_000)[1])
    for n in (200, 20_000):
        elo(simulate_comparisons(n, 1_000_000)[1])
    labels("Dawid–Skene", DawidSkene(), "DawidSkene", simulate_labels(100_000), n_iter=100)
    labels("MACE", MACE(), "MACE", simulate_labels(2_000), runs=1)


if __name__ == "__main__":
    main()
