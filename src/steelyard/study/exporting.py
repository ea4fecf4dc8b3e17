"""A study's judgments as conventional files, which `import`, `fit` and `agreement` read."""

from __future__ import annotations

import polars as pl

from steelyard.errors import ConfigError, did_you_mean
from steelyard.formats import judgment_table
from steelyard.study.study import Study


def conventional_judgments(study: Study, stage: str | None = None, *, real_ids: bool = False) -> pl.DataFrame:
    """Return the judgments of a stage in the columns of docs/reference/files.md.

    A study of one stage needs no name; of several, one file cannot hold all. Annotators go by pseudonyms unless
    `real_ids`.
    """
    stages = {known.name: known for known in study.config.stages}
    if stage is None and len(stages) > 1:
        raise ConfigError(
            f"the study has several stages ({', '.join(stages)}), and each has a file of its own.",
            "Choose one with --stage.",
        )
    if stage is not None and stage not in stages:
        raise ConfigError(f"there is no stage called '{stage}'.", did_you_mean(stage, list(stages)))
    chosen = stages[stage] if stage else study.config.stages[0]
    found = study.observations(chosen.protocol.kinds[0], stage=chosen.name)
    if not found:
        return pl.DataFrame()
    return study.names(real=real_ids).frame(judgment_table(found[""] if list(found) == [""] else found))


def people_table(study: Study) -> pl.DataFrame:
    """Return which pseudonym is whom, and how many of each person's judgments count."""
    names = study.annotators()
    return pl.DataFrame(
        {
            "annotator": names,
            "pseudonym": [study.pseudonym(name) for name in names],
            "judgments": [study.counted_of(name) for name in names],
        },
        schema={"annotator": pl.String, "pseudonym": pl.String, "judgments": pl.Int64},
    )
