"""Position bias: whether the left item is chosen more often than the right one."""

from __future__ import annotations

import numpy as np
import scipy

from steelyard.errors import DataError
from steelyard.models.labels.majority import wilson
from steelyard.observations import Observations
from steelyard.reliability.bootstrap import Bootstrap
from steelyard.reliability.statistic import Significance, Statistic

NAME = "position_bias"
EXACT, CLUSTERED = "exact binomial", "t over annotators"


def position_bias(observations: Observations, *, order_known: bool | None = None, level: float = 0.95) -> Significance:
    """Compute the proportion of decided comparisons won by the left (or first) item, and test it against one half.

    Ties are left out and counted in the note. If annotators are known and some of them answered more than once, the
    proportion is that of all answers, its variance is over annotators (each a cluster), and the test is Student's t
    with annotators − 1 degrees of freedom, because answers of one annotator are not independent. Otherwise the test
    is the exact binomial, and the interval is Wilson's.

    Parameters
    ----------
    observations
        Comparisons or rankings, in the order shown.
    order_known
        Whether left and right are as shown. By default this is assumed unless the left item always won or tied,
        as in files of winners and losers.
    level
        Confidence level of the interval.
    """
    bootstrap = Bootstrap.of(0, 200, level)
    if not observations.has_comparisons:
        raise DataError(f"position bias needs comparisons or rankings; these are {observations.kind}.")
    comparisons = observations.to_comparisons()
    left = comparisons.outcome > 0
    decided = comparisons.outcome != 0
    total, ties = int(decided.sum()), int((~decided).sum())

    def undefined(why: str) -> Significance:
        return Significance(Statistic(NAME, None, n=len(comparisons), note=f"undefined: {why}"), None, 0.5, EXACT)

    if not total:
        return undefined("no comparison was decided")
    if order_known is False:
        return undefined("the presentation order is unknown")
    if order_known is None and left.sum() == total:
        return undefined("the winner is always on the left, as in files without the presentation order")
    share = float(left.sum()) / total
    note = f"{int(left.sum()):,} of {total:,} decided comparisons" + (f"; {ties:,} ties left out" if ties else "")
    annotator = comparisons.annotator[decided]
    annotators, code = np.unique(annotator, return_inverse=True)
    if comparisons.knows_annotators and 1 < len(annotators) < total:
        wins, size = np.bincount(code, left[decided]), np.bincount(code)
        off = (wins - share * size) / total
        sd = float(np.sqrt((off @ off) * len(annotators) / (len(annotators) - 1)))
        statistic = bootstrap.statistic_from_sd(
            NAME,
            share,
            sd,
            len(annotators),
            unit="annotators",
            interval="sandwich(annotators)",
            note=note,
            low=0.0,
        )
        if statistic.lower is not None:
            p_value = float(2 * scipy.stats.t.sf(abs(share - 0.5) / sd, len(annotators) - 1))
            return Significance(_with_p(statistic, p_value, CLUSTERED), p_value, 0.5, CLUSTERED)
    p_value = float(scipy.stats.binomtest(int(left.sum()), total).pvalue)
    lower, upper = wilson(np.array([left.sum()], np.int32), np.array([total], np.int32), level)
    low, high = max(float(lower[0]), 0.0), min(float(upper[0]), 1.0)
    statistic = Statistic(NAME, share, low, high, "wilson(comparisons)", total, note)
    return Significance(_with_p(statistic, p_value, EXACT), p_value, 0.5, EXACT)


def _with_p(statistic: Statistic, p_value: float, test: str) -> Statistic:
    p_text = f"p = {p_value:.3f}" if p_value >= 0.001 else "p < .001"
    return Statistic(
        statistic.key,
        statistic.value,
        statistic.lower,
        statistic.upper,
        statistic.interval,
        statistic.n,
        f"{statistic.note}; {p_text} against 1/2 ({test})",
    )
