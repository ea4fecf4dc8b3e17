"""Recorded comparisons by people and by judges: as observations, and as a study whose judge report can be read."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl

from steelyard import Study
from steelyard.analysis.analysis import Analysis
from steelyard.analysis.judge_report import JudgeReport, judge_reports
from steelyard.errors import SteelyardWarning
from steelyard.models.calibrated.covariates import Covariates
from steelyard.models.calibrated.scale import CalibratedScale
from steelyard.models.comparisons.bradley_terry import BradleyTerry
from steelyard.observations import UNKNOWN, Comparisons, FloatArray, Index
from steelyard.study.importing import import_file

STUDY = """title = "Recorded comparisons"
question = "Which output is better?"
items = "items.csv"
[protocol]
name = "pairwise"
ties = true
"""


def reported(items: pl.DataFrame, people: pl.DataFrame, models: pl.DataFrame) -> list[JudgeReport]:
    """Import votes (`annotator`, `left`, `right`, `winner`) into a new study, and return its reports on the models."""
    with _study(items) as study, tempfile.TemporaryDirectory() as folder:
        for name, votes in (("people", people), ("models", models)):
            path = Path(folder) / f"{name}.csv"
            votes.write_csv(path)
            import_file(study, path, models=name == "models")
        return judge_reports(Analysis.of(study))


@contextmanager
def _study(items: pl.DataFrame) -> Iterator[Study]:
    with tempfile.TemporaryDirectory() as folder:
        items.write_csv(Path(folder) / "items.csv")
        (Path(folder) / "study.toml").write_text(STUDY, encoding="utf-8")
        with Study.open(folder) as study:
            yield study


def comparisons(votes: pl.DataFrame, items: pl.DataFrame) -> Comparisons:
    """Return votes as observations of all the items."""
    index = Index(items["id"].to_list())
    annotators = Index(votes["annotator"].unique(maintain_order=True).to_list())
    winner = votes["winner"].to_numpy()
    return Comparisons(
        items=index,
        annotators=annotators,
        tasks=Index(),
        annotator=annotators.codes(votes["annotator"].to_list()),
        task=np.full(votes.height, UNKNOWN, np.int32),
        left=index.codes(votes["left"].to_list()),
        right=index.codes(votes["right"].to_list()),
        outcome=((winner == votes["left"].to_numpy()) * 1 - (winner == votes["right"].to_numpy()) * 1).astype(np.int8),
    )


def own_scores(votes: Comparisons) -> FloatArray:
    """Return a judge's own Bradley–Terry scores, as a study uses them as a covariate; NaN for items without votes."""
    with warnings.catch_warnings():
        # Comparisons are within prompts, so the order across prompts is the prior's.
        warnings.simplefilter("ignore", SteelyardWarning)
        return _by_code(BradleyTerry(draws=20).fit(votes).scores, votes)


def prior_draws(people: Comparisons, columns: dict[str, FloatArray], groups: tuple[str, ...], draws: int) -> FloatArray:
    """Return draws × items of the scores from people's votes, with judges' scores as a prior; NaN without a score."""
    covariates = Covariates(tuple(columns), np.column_stack(list(columns.values())), groups) if columns else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SteelyardWarning)
        fit = CalibratedScale(draws=draws).fit(people, covariates=covariates)
    row = {name: place for place, name in enumerate(fit.scores["item"])}
    return np.asarray(fit.draws)[:, [row[name] for name in people.items.ids]]


def _by_code(scores: pl.DataFrame, votes: Comparisons) -> FloatArray:
    score = dict(scores.select("item", "score").iter_rows())
    return np.array([np.nan if score[name] is None else score[name] for name in votes.items.ids])
