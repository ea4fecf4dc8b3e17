"""Forms generated from the code: settings of protocols, designs, models and the study, with their descriptions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, Field, TypeAdapter

from steelyard import registry
from steelyard.study.config.tables import StudyTable

_MANY_ITEMS = 1000
"""Number of items for which every design can tell whether it supports a protocol."""


class FieldOut(BaseModel):
    """One setting as a field of a form."""

    name: str
    kind: Annotated[
        Literal["text", "lines", "integer", "number", "yes_no", "choice", "texts", "range", "toml"],
        Field(description="texts: a list of strings; range: two numbers; toml: any other value, written as TOML"),
    ]
    description: str = ""
    default: Any = None
    required: bool = False
    minimum: float | None = None
    maximum: float | None = None
    options: list[Any] = []


class PartOut(BaseModel):
    """A protocol, design or model: its description and settings."""

    description: str
    fields: list[FieldOut]
    design: Annotated[str | None, Field(description="a protocol's default design")] = None
    model: Annotated[str | None, Field(description="a protocol's default model")] = None
    designs: Annotated[list[str], Field(description="designs that support a protocol")] = []
    models: Annotated[list[str], Field(description="models that accept a protocol's observations")] = []


class FormsOut(BaseModel):
    """Everything that the form of a study needs."""

    study: list[FieldOut]
    sections: dict[str, list[FieldOut]]
    protocols: dict[str, PartOut]
    designs: dict[str, PartOut]
    models: dict[str, PartOut]


_LONG = {"consent", "instructions", "question"}
_NOT_ASKED = {"version", "database", "name", "items", "protocol", "design", "model", "stage"}


@cache
def forms() -> FormsOut:
    """Describe all settings."""
    schema = StudyTable.model_json_schema()
    settings = {name: info for name, info in StudyTable.model_fields.items() if name not in _NOT_ASKED}
    tables = {name: table for name, info in settings.items() if (table := _table(info.annotation))}
    plain = {name: part for name, part in schema["properties"].items() if name in settings and name not in tables}
    required = schema.get("required", [])
    return FormsOut(
        study=[_field(name, part, schema, name in required) for name, part in plain.items()],
        sections={name: _fields(table.model_json_schema()) for name, table in tables.items()},
        protocols={name: _protocol(name) for name in registry.names("protocols")},
        designs={name: _part("designs", name) for name in registry.names("designs")},
        models={name: _part("models", name) for name in registry.names("models")},
    )


def _table(annotation: Any) -> type[BaseModel] | None:
    """Return the table class of a key of study.toml; None if its value is not a table, or not always."""
    options = [one for one in get_args(annotation) or (annotation,) if one is not type(None)]
    only = options[0] if len(options) == 1 else None
    return only if isinstance(only, type) and issubclass(only, BaseModel) else None


def _protocol(name: str) -> PartOut:
    cls = registry.find("protocols", name)
    # choice has no default labels, but designs may use them.
    example = cls() if not cls().problems() else cls(labels=("yes", "no"))
    fitting = [design for design in registry.names("designs") if _supports(design, example)]
    accepting = [m for m in registry.names("models") if set(cls.kinds) & set(registry.find("models", m).accepts)]
    return _part("protocols", name).model_copy(
        update={
            "design": cls.default_design,
            "model": cls.model_of_new_studies(),
            "designs": fitting,
            "models": accepting,
        }
    )


def _supports(design: str, protocol: Any) -> bool:
    problems = registry.find("designs", design)().problems(protocol, _MANY_ITEMS)
    return not any(problem.field == "design.name" for problem in problems)


def _part(kind: registry.Kind, name: str) -> PartOut:
    cls = registry.find(kind, name)
    description = " ".join((cls.__doc__ or "").strip().split("\n\n")[0].split()).replace("`", "")
    return PartOut(description=description, fields=_fields(TypeAdapter(cls).json_schema()))


def _fields(schema: Mapping[str, Any]) -> list[FieldOut]:
    required = schema.get("required", [])
    return [_field(name, part, schema, name in required) for name, part in schema.get("properties", {}).items()]


def _field(name: str, part: Mapping[str, Any], whole: Mapping[str, Any], required: bool) -> FieldOut:
    """Describe one setting; `whole` is the schema in which references are resolved."""
    options = [one for one in part.get("anyOf", [part]) if one.get("type") != "null"]
    only = options[0] if len(options) == 1 else {}
    if "$ref" in only:
        only = whole["$defs"][only["$ref"].rpartition("/")[2]]
    kind = _kind(name, only)
    return FieldOut(
        name=name,
        kind=kind,
        description=str(part.get("description", "")).replace("`", ""),
        default=part.get("default"),
        required=required,
        minimum=only.get("minimum", only.get("exclusiveMinimum")),
        maximum=only.get("maximum", only.get("exclusiveMaximum")),
        options=only.get("enum", []),
    )


def _kind(name: str, schema: Mapping[str, Any]) -> Any:
    if "enum" in schema:
        return "choice"
    kind = schema.get("type")
    if kind == "array":
        if "prefixItems" in schema:
            return (
                "range" if all(part.get("type") in {"number", "integer"} for part in schema["prefixItems"]) else "toml"
            )
        return "texts" if schema.get("items", {}).get("type") == "string" else "toml"
    simple = {"boolean": "yes_no", "integer": "integer", "number": "number"}
    if kind == "string":
        return "lines" if name in _LONG else "text"
    return simple.get(str(kind), "toml")
