"""JSON Schema of study.toml, generated from the configuration's classes and the registered plug-ins."""

from __future__ import annotations

import json
from typing import Any

from pydantic import TypeAdapter

from steelyard import registry
from steelyard.study.config.tables import StudyTable

SCHEMA_FILE = "study.schema.json"
SCHEMA_LINE = f"#:schema ./{SCHEMA_FILE}"
"""First line of a study.toml; editors such as VS Code with Even Better TOML read the schema that it names."""
_KINDS: dict[str, registry.Kind] = {"protocol": "protocols", "design": "designs", "model": "models"}


def study_schema() -> dict[str, Any]:
    """Return the JSON Schema of study.toml, with the settings of every registered protocol, design and model.

    The schema describes keys, types and ranges. `steelyard check` also checks what a schema cannot express: whether
    files exist, and whether protocol, design and model suit one another.
    """
    schema = StudyTable.model_json_schema()
    definitions: dict[str, Any] = schema["$defs"]
    for table, kind in _KINDS.items():
        definitions[table] = _named_settings(table, kind, definitions)
    for owner in (schema, definitions["StageTable"]):
        for table in _KINDS:
            if table in owner["properties"]:
                description = owner["properties"][table].get("description", "")
                owner["properties"][table] = {"$ref": f"#/$defs/{table}", "description": description}
    schema["oneOf"] = [
        {"required": ["protocol"], "not": {"required": ["stage"]}},
        {"required": ["stage"], "not": {"anyOf": [{"required": ["protocol"]}, {"required": ["design"]}]}},
    ]
    header = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "study.toml"}
    result: dict[str, Any] = _without_null({**schema, **header, "description": "Configuration of a Steelyard study."})
    return result


def schema_text() -> str:
    """Return the schema as indented JSON."""
    return json.dumps(study_schema(), indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def _named_settings(table: str, kind: registry.Kind, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a table whose `name` decides which settings it has."""
    choices = [_settings(table, kind, name, definitions) for name in registry.names(kind)]
    if table != "protocol":
        # Without a name, the settings are those of the protocol's default.
        choices.append({"type": "object", "not": {"required": ["name"]}})
    return {"type": "object", "oneOf": choices}


def _settings(table: str, kind: registry.Kind, name: str, definitions: dict[str, Any]) -> dict[str, Any]:
    prefix = f"{table}.{name}."
    settings = TypeAdapter(registry.find(kind, name)).json_schema(ref_template=f"#/$defs/{prefix}{{model}}")
    definitions.update({prefix + key: value for key, value in settings.pop("$defs", {}).items()})
    properties = {"name": {"const": name}, **settings.get("properties", {})}
    result = {"type": "object", "properties": properties, "additionalProperties": False, "title": name}
    return {**result, "required": ["name", *settings.get("required", [])]}


def _without_null(value: Any) -> Any:
    """Remove null, which TOML cannot express, from the alternatives and defaults of a schema."""
    if isinstance(value, list):
        return [_without_null(part) for part in value]
    if not isinstance(value, dict):
        return value
    result = {key: _without_null(part) for key, part in value.items() if not (key == "default" and part is None)}
    alternatives = result.get("anyOf")
    if isinstance(alternatives, list) and {"type": "null"} in alternatives:
        remaining = [part for part in alternatives if part != {"type": "null"}]
        del result["anyOf"]
        result = {**remaining[0], **result} if len(remaining) == 1 else {**result, "anyOf": remaining}
    return result
