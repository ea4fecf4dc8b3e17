"""Time the online models on a million comparisons, beside openskill, trueskill and evalica.

Run: python benchmarks/bench_online.py

openskill and trueskill take one match at a time in Python, so they are timed on a part and scaled up; an
online model's cost is the same for every match. Compilation is timed apart.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np

from steelyard.models.comparisons.bounded_ranking import BoundedRanking
from steelyard.models.comparisons.dominance import Dominance
from steelyard.models.comparisons.elo import Elo
from steelyard.models.comparisons.trueskill import TrueSkill
from steelyard.observations import Comparisons, Index

MATCHES, ITEMS, PEER_MATCHES = 1_000_000, 200, 20_000


def best_of(times: int, run: Callable[[], object]) -> float:
    """Return the shortest of several runs, in seconds."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def comparisons(n: int, items: int) -> Comparisons:
    """Draw comparisons of Bradley–Terry items, a tenth of them ties."""
    rng = np.random.default_rng(0)
    theta = rng.normal(size=items)
    left = rng.integers(0, items, n)
    right = (left + rng.integers(1, items, n)) % items
    won = np.where(rng.random(n) < 1 / (1 + np.exp(theta[right] - theta[left])), 1, -1)
    return Comparisons(
        items=Index(f"i{i}" for i in range(items)),
        left=left.astype(np.int32),
        right=right.astype(np.int32),
        outcome=np.where(rng.random(n) < 0.1, 0, won).astype(np.int8),
    )


def openskill_seconds(matches: Comparisons) -> float:
    """Time openskill's Plackett–Luce; ties go to the left, since openskill 6.2 is wrong with tied ranks."""
    from openskill.models import PlackettLuce

    model = PlackettLuce()
    rating = [model.rating() for _ in range(ITEMS)]
    start = time.perf_counter()
    for i, j, outcome in zip(
        matches.left[:PEER_MATCHES].tolist(),
        matches.right[:PEER_MATCHES].tolist(),
        matches.outcome[:PEER_MATCHES].tolist(),
        strict=True,
    ):
        first, second = (i, j) if outcome >= 0 else (j, i)
        [rating[first]], [rating[second]] = model.rate([[rating[first]], [rating[second]]])
    return (time.perf_counter() - start) * MATCHES / PEER_MATCHES


def trueskill_seconds(matches: Comparisons) -> float:
    """Time the trueskill package on the first matches."""
    import trueskill

    rating = [trueskill.Rating() for _ in range(ITEMS)]
    part = PEER_MATCHES // 10
    start = time.perf_counter()
    for i, j, outcome in zip(
        matches.left[:part].tolist(), matches.right[:part].tolist(), matches.outcome[:part].tolist(), strict=True
    ):
        first, second = (i, j) if outcome >= 0 else (j, i)
        rating[first], rating[second] = trueskill.rate_1vs1(rating[first], rating[second], drawn=outcome == 0)
    return (time.perf_counter() - start) * MATCHES / part


def evalica_seconds(matches: Comparisons) -> float:
    """Time evalica's Elo on all matches, from lists of names as it takes them."""
    import evalica

    names = matches.items.ids
    left, right = [names[i] for i in matches.left], [names[i] for i in matches.right]
    winner = {1: evalica.Winner.X, -1: evalica.Winner.Y, 0: evalica.Winner.Draw}
    outcome = [winner[int(o)] for o in matches.outcome]
    return best_of(3, lambda: evalica.elo(left, right, outcome))


def line(job: str, peer: str, theirs: float, ours: float) -> None:
    """Print one row of the ratio table."""
    print(f"| {job} | {peer} | {theirs:.3f} s | {ours:.3f} s | {theirs / ours:.0f}× |")


def main() -> None:
    """Print the ratio table."""
    matches, few = comparisons(MATCHES, ITEMS), comparisons(100, 10)
    ours = {}
    print(f"{MATCHES:,} comparisons of {ITEMS} items, in order")
    for model in (TrueSkill(), Elo(), BoundedRanking()):
        compiling = best_of(1, lambda model=model: model.update(model.start(10), few))  # type: ignore[misc]
        ours[model.name] = best_of(5, lambda model=model: model.update(model.start(ITEMS), matches))  # type: ignore[misc]
        print(f"  {model.name:16} {ours[model.name]:.3f} s online (first call {compiling:.2f} s)")
    fit = best_of(2, lambda: TrueSkill().fit(matches))
    print(f"  trueskill        {fit:.3f} s for the whole table, with intervals")
    fit = best_of(1, lambda: Elo(draws=50).fit(matches))
    print(f"  elo              {fit:.3f} s for the whole table, with 50 resamples")
    print("| job | peer | peer's time | ours | ratio |\n|---|---|---:|---:|---:|")
    if find_spec("openskill"):
        line("TrueSkill, 1M online", "openskill (scaled up)", openskill_seconds(matches), ours["trueskill"])
    if find_spec("trueskill"):
        line("TrueSkill, 1M online", "trueskill (scaled up)", trueskill_seconds(matches), ours["trueskill"])
    if find_spec("evalica"):
        line("Elo, 1M", "evalica", evalica_seconds(matches), ours["elo"])
    sources(20_000)


def sources(count: int) -> None:
    """Time dominance on many small tournaments."""
    rng = np.random.default_rng(1)
    source = np.repeat(np.arange(count), 6)
    left = rng.integers(0, 6, len(source))
    right = (left + rng.integers(1, 6, len(source))) % 6
    matches = Comparisons(
        items=Index(f"i{i}" for i in range(6 * count)),
        left=(6 * source + left).astype(np.int32),
        right=(6 * source + right).astype(np.int32),
        outcome=rng.integers(-1, 2, len(source)).astype(np.int8),
    )
    model = Dominance()
    model.graphs(matches)
    seconds = best_of(3, lambda: model.graphs(matches))
    print(f"dominance: {count:,} sources of 6 items and 6 comparisons in {seconds:.3f} s")


if __name__ == "__main__":
    main()
