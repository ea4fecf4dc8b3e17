"""Labels from a propagation stage, and the number of questions it saved (Pighin et al. 2012, §3.2)."""

from __future__ import annotations

import polars as pl

from steelyard.designs.propagation.design import Propagation
from steelyard.designs.propagation.state import Effort
from steelyard.study.study import Study

_SCHEMA = {
    "item": pl.String,
    "adequate": pl.Boolean,
    "how": pl.String,
    "through": pl.String,
    "inferred": pl.Boolean,
}


def adequacy_labels(study: Study) -> pl.DataFrame:
    """Return whether each item is adequate: item, adequate, how, through, and whether the label is inferred."""
    with study.core.log.read() as state:
        labels = [
            (*label, label.is_inferred)
            for stage, progress in zip(study.config.stages, state.progress, strict=True)
            if isinstance(stage.design, Propagation)
            for label in stage.design.labels(progress)
        ]
    return pl.DataFrame(labels, schema=_SCHEMA, orient="row")


def asking_effort(study: Study) -> dict[str, Effort]:
    """Return how much asking each propagation stage saved, by stage (Table 2 of Pighin et al. 2012)."""
    with study.core.log.read() as state:
        return {
            stage.name: stage.design.effort(progress)
            for stage, progress in zip(study.config.stages, state.progress, strict=True)
            if isinstance(stage.design, Propagation)
        }
