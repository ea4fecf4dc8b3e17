"""Reading study.toml: every problem is reported at once, before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from steelyard import registry
from steelyard.errors import ConfigError, Problem, did_you_mean
from steelyard.formats.toml_reading import parse_toml, refuse_extreme_values
from steelyard.models.fit import Model
from steelyard.protocols.base import Protocol
from steelyard.quality.pay import OF_CHECKS
from steelyard.renamed import renamed_remedy
from steelyard.storage.engine import without_password
from steelyard.study.config.study_config import CONFIG_FILE, Stage, StudyConfig
from steelyard.study.config.tables import (
    CONFIG_VERSION,
    AnnotatorSettings,
    Answers,
    Checks,
    Embed,
    EntryQuestion,
    ItemsSource,
    Judges,
    Link,
    Page,
    Pay,
    Prolific,
    Qualification,
    Quality,
    Rules,
    ShownField,
    StageTable,
    Stop,
    StudyTable,
)
from steelyard.study.config.toml_lines import key_lines, line_of

_SETTING_LIMITS: dict[registry.Kind, int] = {"protocols": 10**12, "designs": 10**7, "models": 10**7}
"""Scales may be in any unit; counts of judgments, rounds and resamples fit 32-bit integers, and memory."""
_LONGEST_QUOTE = 200
"""Characters of a wrong value that an error shows."""


def read_config(path: Path) -> StudyConfig:
    """Read study.toml; every problem is reported at once, each with its line."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(
            f"there is no {CONFIG_FILE} in {path.parent}.", f"Create a study with: steelyard new {path.parent}"
        ) from None
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"it is not UTF-8 text (byte {error.start}).", "Save the file as UTF-8.", file=path.name
        ) from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.", "Check the path and its permissions.") from None
    lines = key_lines(text)
    try:
        return parse_config(parse_toml(text), lines)
    except ConfigError as error:
        raise ConfigError(
            [replace(p, file=path.name, line=line_of(lines, p.field or "")) for p in error.problems]
        ) from None


def parse_config(data: Mapping[str, Any], lines: Mapping[str, int] | None = None) -> StudyConfig:
    """Build a study's configuration from plain data."""
    refuse_extreme_values(data)
    version = data.get("version", CONFIG_VERSION)
    if isinstance(version, int) and version > CONFIG_VERSION:
        raise ConfigError(
            f"it was written for a newer version of Steelyard (format {version}; this version reads up to "
            f"{CONFIG_VERSION}).",
            "Upgrade Steelyard: pip install -U steelyard.",
            field="version",
        )
    problems: list[Problem] = []
    try:
        table = StudyTable.model_validate(dict(data))
    except ValidationError as error:
        named = [problem for details in _relevant_errors(error) for problem in _problems(details)]
        raise ConfigError(named + _inner_problems(data)) from None
    stages = _stages(table, problems)
    model = _model(table, stages, problems)
    problems += _bonus_problems(table) + _consent_problems(table)
    if model is not None and table.judges.covariates and not model.takes_covariates():
        what = f"the model {model.name} does not use covariates."
        problems.append(Problem(what, 'Use [model] name = "calibrated_scale".', field="judges.covariates"))
    if problems or model is None:
        raise ConfigError(problems)
    return StudyConfig(
        title=table.title,
        question=table.question,
        items=ItemsSource(file=table.items) if isinstance(table.items, str) else table.items,
        stages=tuple(stages),
        model=model,
        annotators=table.annotators,
        page=table.page,
        answers=table.answers,
        embed=table.embed,
        quality=table.quality,
        stop=table.stop,
        pay=table.pay,
        # Participants from Prolific arrive by a link, even without a [link] table.
        link=table.link or (Link() if table.prolific is not None else None),
        prolific=table.prolific,
        judges=table.judges,
        seed=table.seed,
        database=table.database,
        name=table.name,
        source=dict(data),
        lines=lines,
    )


def _relevant_errors(error: ValidationError) -> list[Any]:
    """Leave out errors that only say that `items` is a table and not a text, or the other way round."""
    errors = error.errors()
    as_table = any("ItemsSource" in details["loc"] and len(details["loc"]) > 2 for details in errors)
    dropped = "str" if as_table else "ItemsSource"
    return [details for details in errors if not (details["loc"][0] == "items" and details["loc"][-1] == dropped)]


def _problems(details: Any) -> list[Problem]:
    location = [str(part) for part in details["loc"] if part not in {"str", "ItemsSource"}]
    path = ".".join(location)
    # Former names have no numbers of stages.
    former = ".".join(part for part in location if not part.isdigit())
    if details["type"] == "extra_forbidden":
        suggestion = renamed_remedy(former) or did_you_mean(location[-1], _known_keys(location))
        unknown = Problem(f"unknown key '{location[-1]}'.", suggestion, field=path)
        return [unknown, *_former_keys(path, details["input"])]
    if details["type"] == "missing":
        return [Problem(f"'{location[-1]}' is missing.", "Add it.", field=path)]
    what = f"{details['msg'].removeprefix('Value error, ')} (given: {_quoted(details['input'])})."
    remedy = renamed_remedy(f"{former}.{details['input']}") if details["type"] == "literal_error" else None
    return [Problem(what, remedy or "", field=path)]


def _former_keys(path: str, table: object) -> list[Problem]:
    """Name the former keys in a table whose own name is a former one, so that all are reported at once."""
    keys = table if isinstance(table, Mapping) else {}
    remedies = {f"{path}.{key}": renamed_remedy(f"{path}.{key}") for key in keys}
    return [
        Problem(f"unknown key '{key.rpartition('.')[2]}'.", remedy, field=key)
        for key, remedy in remedies.items()
        if remedy is not None
    ]


def _quoted(value: Any) -> str:
    """Quote a wrong value, shortened and without passwords."""
    text = without_password(repr(value))
    return text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}…"


def _known_keys(location: list[str]) -> list[str]:
    tables: dict[str, type[BaseModel]] = {
        "annotators": AnnotatorSettings,
        "annotators.questionnaire": EntryQuestion,
        "page": Page,
        "page.fields": ShownField,
        "answers": Answers,
        "pay": Pay,
        "link": Link,
        "prolific": Prolific,
        "judges": Judges,
        "embed": Embed,
        "items": ItemsSource,
        "stage": StageTable,
        "stop": Stop,
        "quality": Quality,
        "quality.checks": Checks,
        "quality.qualification": Qualification,
        "quality.rules": Rules,
    }
    # The location of a problem in a list of tables includes the number of the table.
    path = ".".join(part for part in location[:-1] if not part.isdigit())
    table = tables.get(path) or tables.get(location[0], StudyTable)
    if len(location) == 1:
        table = StudyTable
    return [info.alias or name for name, info in table.model_fields.items()]


def _inner_problems(data: Mapping[str, Any]) -> list[Problem]:
    """Check the tables of protocol, design and model even if other tables are wrong, to report all problems at once."""
    problems: list[Problem] = []
    protocol, design, model = (dict(t) if isinstance(t := data.get(k), Mapping) else {} for k in _TABLES)
    if protocol:
        _create("protocols", protocol, None, "protocol", problems)
    name = protocol.get("name")
    cls = registry.find("protocols", name) if name in registry.names("protocols") else None
    if design and (cls or "name" in design):
        _create("designs", design, cls.default_design if cls else None, "design", problems)
    if model and (cls or "name" in model):
        _create("models", model, cls.default_model if cls else None, "model", problems)
    return problems


_TABLES = ("protocol", "design", "model")


def _bonus_problems(table: StudyTable) -> list[Problem]:
    try:
        formula = table.pay.formula
    except ConfigError as error:
        return list(error.problems)
    needed = sorted(formula.names & OF_CHECKS) if formula is not None and table.quality.checks is None else []
    if not needed:
        return []
    what = f"the bonus depends on {needed[0]}, but the study has no checks."
    return [Problem(what, "Add [quality.checks], or change the formula.", field="pay.bonus")]


def _consent_problems(table: StudyTable) -> list[Problem]:
    if not table.annotators.questionnaire or table.annotators.consent:
        return []
    what = "annotators answer a questionnaire about themselves, but the study has no consent text."
    return [Problem(what, "Write one that says what the answers are for.", field="annotators.consent")]


def _stages(table: StudyTable, problems: list[Problem]) -> list[Stage]:
    if table.stage and (table.protocol or table.design):
        problems.append(
            Problem(
                "[[stage]] and [protocol] cannot be combined.",
                "Move [protocol] and [design] into a stage.",
                field="stage",
            )
        )
        return []
    if not table.stage and table.protocol is None:
        problems.append(Problem("'protocol' is missing.", "Add [protocol] with a name.", field="protocol"))
        return []
    tables = table.stage or [StageTable(protocol=table.protocol or {}, design=table.design or {})]
    stages = []
    for number, stage in enumerate(tables):
        prefix = f"stage.{number}." if table.stage else ""
        result = _stage(stage, prefix, problems)
        if result is not None:
            stages.append(result)
    _check_shares(tables, problems)
    names = [stage.name for stage in stages]
    problems += [
        Problem(f"two stages are called '{name}'.", "Give each stage a name.", field="stage")
        for name in dict.fromkeys(names)
        if names.count(name) > 1
    ]
    return stages


def _stage(stage: StageTable, prefix: str, problems: list[Problem]) -> Stage | None:
    protocol: Protocol | None = _create("protocols", stage.protocol, None, f"{prefix}protocol", problems)
    if protocol is None:
        # The default design depends on the protocol, but a design that is named can be checked without it.
        if "name" in stage.design:
            _create("designs", stage.design, None, f"{prefix}design", problems)
        return None
    design = _create("designs", stage.design, protocol.default_design, f"{prefix}design", problems)
    if design is None:
        return None
    return Stage(stage.name or protocol.name, protocol, design, stage.share, stage.question or "")


def _create(
    kind: registry.Kind, table: Mapping[str, Any], default: str | None, path: str, problems: list[Problem]
) -> Any:
    settings = dict(table)
    extremes = _extreme_settings(kind, settings, path)
    if extremes:
        problems += extremes
        return None
    name = settings.pop("name", default)
    if not isinstance(name, str):
        problems.append(Problem(f"{path} has no name.", f"Known: {', '.join(registry.names(kind))}.", field=path))
        return None
    try:
        return registry.create(kind, name, settings)
    except ConfigError as error:
        problems += [replace(p, field=path + (p.field or "").removeprefix(kind[:-1])) for p in error.problems]
        return None


def _extreme_settings(kind: registry.Kind, settings: Mapping[str, Any], path: str) -> list[Problem]:
    """Refuse numbers that would overflow or take forever, such as a design of 10**12 judgments per item."""
    limit = _SETTING_LIMITS[kind]
    pending = [(f"{path}.{key}", value) for key, value in settings.items() if key != "seed"]
    problems = []
    while pending:
        place, value = pending.pop()
        if isinstance(value, Mapping):
            pending += [(f"{place}.{key}", inner) for key, inner in value.items()]
        elif isinstance(value, list | tuple):
            pending += [(place, inner) for inner in value]
        elif isinstance(value, int | float) and abs(value) > limit:
            problems.append(Problem("the number is too large.", f"Use at most {limit:,}.", field=place))
    return problems


def _check_shares(stages: list[StageTable], problems: list[Problem]) -> None:
    shares = [stage.share for stage in stages]
    numbers = [share for share in shares if share is not None]
    last = f"stage.{len(stages) - 1}.share"
    if numbers and len(numbers) < len(shares):
        problems.append(
            Problem("some stages have a share and others do not.", "Set share for all stages, or for none.", field=last)
        )
    elif numbers and abs(sum(numbers) - 1) > 1e-6:
        problems.append(
            Problem(f"the shares add up to {sum(numbers):g}.", "Make them add up to 1, that is 100 %.", field=last)
        )


def _model(table: StudyTable, stages: list[Stage], problems: list[Problem]) -> Model | None:
    default = stages[0].protocol.fitting_model() or stages[0].protocol.default_model if stages else None
    if default is None and "name" not in table.model:
        return None
    model: Model | None = _create("models", table.model, default, "model", problems)
    if model is None or not stages:
        return model
    yielded = {kind for stage in stages for kind in stage.protocol.kinds}
    if not yielded & set(model.accepts):
        fitting = [name for name in registry.names("models") if yielded & set(registry.find("models", name).accepts)]
        problems.append(
            Problem(
                f"{model.name} needs {' or '.join(model.accepts)}, "
                f"but these protocols give {', '.join(sorted(yielded))}.",
                f"Use one of: {', '.join(fitting)}.",
                field="model.name",
            )
        )
    return model
