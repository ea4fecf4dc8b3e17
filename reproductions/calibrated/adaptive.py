"""A session of comparisons that pairs items with similar scores, as many tools for comparative judgement do."""

from __future__ import annotations

import numpy as np

from steelyard.models.comparisons import paired_kernels as kernels
from steelyard.models.comparisons.paired import Pairs, PairTable
from steelyard.models.comparisons.paired_model import PairLikelihood, TieRule
from steelyard.models.inference.newton import maximise
from steelyard.observations import Comparisons, FloatArray, Index

ITEMS, JUDGES, ROUNDS, RANDOM_ROUNDS = 150, 18, 14, 2
"""As in the adaptive session of Bramley & Vitello (2018): each script is judged once a round."""
SPREAD, PRIOR_SD = 1.5, 2.0


def adaptive_session(rng: np.random.Generator) -> tuple[Comparisons, FloatArray]:
    """Judge random pairs for two rounds, then neighbours by Bradley–Terry of all so far; return the truth too."""
    truth = rng.normal(0, SPREAD, ITEMS)
    precision = np.exp(rng.normal(0, 0.3, JUDGES))
    left, right, who, outcome = ([np.zeros(0, np.int32)] for _ in range(4))
    for number in range(ROUNDS):
        place = rng.random(ITEMS)
        if number >= RANDOM_ROUNDS:
            outcomes = np.concatenate(outcome).astype(np.int8)
            pairs = Pairs(np.concatenate(left), np.concatenate(right), outcomes, None)
            likelihood = PairLikelihood(PairTable.count(pairs, ITEMS), TieRule(kernels.LOGIT))
            place = maximise(likelihood, prior_sd=PRIOR_SD, tolerance=1e-3).theta
        one, other = np.argsort(place).reshape(-1, 2).T.astype(np.int32)
        judge = rng.integers(0, JUDGES, len(one), np.int32)
        lead = precision[judge] * (truth[one] - truth[other]) + rng.logistic(size=len(one))
        for column, values in zip((left, right, who, outcome), (one, other, judge, np.sign(lead)), strict=True):
            column.append(values.astype(np.int32))
    return (
        Comparisons(
            items=Index([f"script {n:03d}" for n in range(ITEMS)]),
            annotators=Index([f"judge {n:02d}" for n in range(JUDGES)]),
            annotator=np.concatenate(who),
            left=np.concatenate(left),
            right=np.concatenate(right),
            outcome=np.concatenate(outcome).astype(np.int8),
        ),
        truth,
    )
