"""A simulated study on disk: a copy of a study's folder with the judgments of simulated annotators."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import tomlkit

from steelyard.errors import ConfigError
from steelyard.simulate.annotators import SimulatedAnnotators
from steelyard.simulate.population import Population, make_crowd
from steelyard.simulate.study_driver import answer_study
from steelyard.storage.engine import sqlite_files, study_url
from steelyard.study import Study
from steelyard.study.config import CONFIG_FILE
from steelyard.study.opening import check_study


def save_simulated_study(
    folder: Path,
    target: Path,
    *,
    people: int = 30,
    population: Population | None = None,
    seed: int = 0,
    on_progress: Callable[[], None] = lambda: None,
) -> int:
    """Copy a study without its judgments, have simulated annotators answer it, and return the number of judgments.

    The copy is an ordinary study: its dashboard, report and exports are those that the study would have. Its title says
    that it is simulated. Annotators take the qualification test and answer checks as `forecast_study` has them do.
    """
    if target.exists():
        raise ConfigError(f"{target} already exists.", "Choose another folder.")
    config, items = check_study(folder)
    if config.database is not None:
        raise ConfigError(
            "the study has a database of its own, into which simulated judgments must not go.",
            "Copy the folder, remove `database` from study.toml, and simulate the copy.",
            file=CONFIG_FILE,
        )
    judgments = {file.resolve() for file in sqlite_files(study_url(folder, None))}

    def left_out(parent: str, names: list[str]) -> list[str]:
        return [name for name in names if name.startswith(".") or Path(parent, name).resolve() in judgments]

    shutil.copytree(folder, target, ignore=left_out)
    document = tomlkit.parse((target / CONFIG_FILE).read_text(encoding="utf-8"))
    document["title"] = f"{config.title} (simulated)"
    (target / CONFIG_FILE).write_text(tomlkit.dumps(document), encoding="utf-8")
    rng = np.random.default_rng([seed, 0])
    settings = population or Population()
    crowd = make_crowd(people, rng, settings)
    annotators = SimulatedAnnotators(crowd, settings.truth([item.id for item in items], rng), rng)
    with Study.open(target) as study:
        _take_tests(study, annotators)
        return answer_study(study, annotators, rng, on_progress=on_progress, answer_check=annotators.answer_check)


def _take_tests(study: Study, annotators: SimulatedAnnotators) -> None:
    """Have every annotator take the qualification test, if there is one."""
    questions = study.annotators.qualification()
    for name in annotators.names:
        for number, question in enumerate(questions, 1):
            study.annotators.answer_test(name, number, annotators.answer_check(name, question, question.item_ids))
