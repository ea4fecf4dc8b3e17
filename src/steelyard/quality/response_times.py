"""Fast guesses: a mixture of answers given without reading and engaged ones, by response times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from steelyard.models.labels.majority import wilson

FloatArray = NDArray[np.float64]

MIN_TIMED = 20
"""Minimum number of timed answers of an annotator."""

GAP = 1.5
"""Fast guesses are faster than the typical engaged answer by at least this difference of logarithms (4.5 times)."""

SIGNAL_SHARE = 0.1
"""There is a signal if the proportion of fast guesses is above this, with its whole interval."""

SIGNAL_Z = 2.33
"""One-sided normal quantile (1 %): fast guesses must also be worse than expected answers by this."""

_ITERATIONS = 200


@dataclass(frozen=True, slots=True, eq=False)
class TimeMixture:
    """Probability that each answer is a fast guess, and the parameters of the mixture (logarithms of seconds)."""

    probability: FloatArray
    fast_mean: float
    fast_sd: float
    engaged_mean: float
    engaged_sd: float


def time_mixture(annotator: NDArray[np.int64], seconds: FloatArray) -> TimeMixture:
    """Fit log-normal times of fast guesses and of engaged answers, the latter with a mean for each annotator.

    After Schnipke & Scrams (1997), with annotators' engaged means partially pooled: a quick annotator is not a
    guesser, and an annotator who only guesses cannot pass as quick. The proportion of guesses of each annotator has
    a Beta prior with mean 5 %.
    """
    log = np.log(np.maximum(seconds, 0.05))
    people = int(annotator.max()) + 1 if len(annotator) else 0
    median = float(np.median(log)) if len(log) else 0.0
    means = np.full(people, median)
    centre, between, within = median, 0.3, max(0.5, float(np.std(log)) / 2 if len(log) else 0.5)
    fast_mean, fast_sd, share = median - 2 * GAP, 0.5, np.full(people, 0.05)
    guess = np.zeros(len(log))
    for _ in range(_ITERATIONS):
        before = guess
        fast = share[annotator] * _density(log, fast_mean, fast_sd)
        engaged = (1 - share[annotator]) * _density(log, means[annotator], within)
        guess = fast / np.maximum(fast + engaged, 1e-300)
        # Nobody guesses slowly: above the midpoint an answer is engaged.
        guess[log > centre - GAP / 2] = 0.0
        engagement = 1 - guess
        weight = np.bincount(annotator, engagement, people)
        total = np.bincount(annotator, engagement * log, people)
        precision = weight / within**2 + 1 / between**2
        means = (total / within**2 + centre / between**2) / precision
        heavy = weight > 0
        centre = float(np.average(means[heavy])) if heavy.any() else median
        between = float(np.clip(np.sqrt(np.mean((means - centre) ** 2 + 1 / precision)), 0.05, 0.6))
        within = float(
            np.clip(np.sqrt((engagement * (log - means[annotator]) ** 2).sum() / max(engagement.sum(), 1e-9)), 0.1, 2.0)
        )
        if guess.sum() > 1e-6:
            fast_mean = min(float((guess * log).sum() / guess.sum()), centre - GAP)
            fast_sd = float(np.clip(np.sqrt((guess * (log - fast_mean) ** 2).sum() / guess.sum()), 0.1, within))
        count = np.bincount(annotator, minlength=people)
        share = (np.bincount(annotator, guess, people) + 0.5) / (count + 10)
        if np.abs(guess - before).max(initial=0.0) < 1e-6:
            break
    return TimeMixture(guess, fast_mean, fast_sd, centre, within)


def _density(x: FloatArray, mean: FloatArray | float, sd: float) -> FloatArray:
    return np.asarray(np.exp(-0.5 * ((x - mean) / sd) ** 2) / sd)


def fast_guesses(annotators: list[str], seconds: FloatArray, square: FloatArray) -> pl.DataFrame:
    """Return each annotator's proportion of fast guesses with its interval, and whether it is a signal.

    `square` are squared standardised residuals of the answers (NaN where unknown), 1 on average. A signal needs a
    proportion clearly above 10 % and fast answers that are clearly worse than answers usually are.
    Columns: annotator, fast_guesses, fast_guesses_lower, fast_guesses_upper, guessing.
    """
    schema = {"annotator": pl.String, "guessing": pl.Boolean}
    names = {name: code for code, name in enumerate(sorted(set(annotators)))}
    if not names:
        return pl.DataFrame(schema=schema)
    code = np.array([names[name] for name in annotators], np.int64)
    probability = time_mixture(code, seconds).probability
    count = np.bincount(code, minlength=len(names)).astype(np.float64)
    hits = np.bincount(code, probability, len(names)).astype(np.float64)
    lower, upper = wilson(hits, count, 0.95)
    known_error = np.isfinite(square)
    weight = np.where(known_error, probability, 0.0)
    error = np.where(known_error, square, 0.0)
    error_sd = float(np.std(square[known_error])) if known_error.any() else 1.0
    mean = np.bincount(code, weight * error, len(names)) / np.maximum(np.bincount(code, weight, len(names)), 1e-9)
    usual = float(np.average(error, weights=np.where(known_error, 1 - probability, 0.0) + 1e-12))
    effective = np.bincount(code, weight, len(names)) ** 2 / np.maximum(np.bincount(code, weight**2, len(names)), 1e-9)
    worse = (mean - usual) * np.sqrt(effective) > SIGNAL_Z * error_sd
    enough = count >= MIN_TIMED
    columns = {"fast_guesses": hits / np.maximum(count, 1), "fast_guesses_lower": lower, "fast_guesses_upper": upper}
    return pl.DataFrame(
        {"annotator": list(names)}
        | {name: pl.Series(np.where(enough, value, np.nan)).fill_nan(None) for name, value in columns.items()}
        | {"guessing": enough & worse & (lower > SIGNAL_SHARE)}
    )
