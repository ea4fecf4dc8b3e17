"""Majority vote over labels; ties are reported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field
from scipy import special

from steelyard.models.fit import Fit, Model
from steelyard.models.labels.observed import ObservedLabels
from steelyard.models.labels.table import Interval, label_table
from steelyard.models.labels.tally import LabelTally
from steelyard.observations import FloatArray, IntArray, Labels


@dataclass(frozen=True, slots=True)
class Majority(Model):
    """Give each item the label most annotators chose.

    `probability` is the proportion of votes for that label, with Wilson's interval. If labels tie, `tied` is their
    number, and the first of them in the order of the classes is reported.
    """

    name: ClassVar[str] = "majority"
    accepts: ClassVar[tuple[str, ...]] = ("labels",)

    level: Annotated[float, Field(gt=0, lt=1, description="coverage of the intervals")] = 0.95

    def fit(self, observations: Labels) -> Fit:
        """Label every item; the classes' shares of the votes are columns named after them."""
        self.check_kind(observations)
        return self.solve(ObservedLabels(observations))

    def solve(self, labels: LabelTally) -> Fit:
        """Label every item from its votes."""
        votes = labels.votes
        total = votes.sum(axis=1)
        top = votes.max(axis=1)
        is_judged = total > 0
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = votes / total[:, None]
        frame = label_table(labels, shares, Interval(*wilson(top, total, self.level)), "wilson", counts=labels.counts)
        notes: tuple[str, ...] = ()
        if ties := int(((votes == top[:, None]).sum(axis=1) > 1)[is_judged].sum()):
            notes = (f"{ties} of {is_judged.sum()} items have no single majority; see the column 'tied'",)
        return Fit(self.name, self.settings(), frame, notes=notes)


def expected_accuracy(votes: IntArray, gold: IntArray) -> float:
    """Return the accuracy of the majority over random tie-breaks, exactly; `gold` is a class code per item."""
    top = votes.max(axis=1, keepdims=True)
    winners = votes == top
    right = winners[np.arange(len(gold)), gold] / winners.sum(axis=1)
    return float(right.mean())


def wilson(
    successes: IntArray | FloatArray, total: IntArray | FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    """Return Wilson's score interval of a share; NaN where nothing was counted."""
    z2 = special.ndtri((1 + level) / 2) ** 2
    # Squares of whole numbers would overflow.
    successes, total = np.asarray(successes, np.float64), np.asarray(total, np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = successes / total
        centre = (share + z2 / (2 * total)) / (1 + z2 / total)
        half = np.sqrt(z2 * (share * (1 - share) / total + z2 / (4 * total**2))) / (1 + z2 / total)
    return np.fmin(centre - half, share), np.fmax(centre + half, share)
