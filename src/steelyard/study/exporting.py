"""A study's judgments as conventional files, which `import`, `fit` and `agreement` read."""

from __future__ import annotations

import polars as pl

from steelyard.formats import judgment_table
from steelyard.study.study import Study


def conventional_judgments(study: Study) -> pl.DataFrame:
    """Return the judgments in the columns of docs/reference/files.md.

    With stages of several kinds the tables are stacked, and `stage` says where a row comes from.
    """
    tables = []
    for stage in study.config.stages:
        for_stage = study.observations(stage.protocol.kinds[0], stage=stage.name)
        if for_stage:
            table = judgment_table(for_stage[""] if list(for_stage) == [""] else for_stage)
            tables.append(
                table if len(study.config.stages) == 1 else table.insert_column(0, pl.lit(stage.name).alias("stage"))
            )
    return pl.concat(tables, how="diagonal_relaxed") if tables else pl.DataFrame()
