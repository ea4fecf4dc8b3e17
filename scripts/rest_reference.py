"""Write the reference of the REST API from its OpenAPI description, as a page of the documentation site."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from steelyard.web.app import create_app
from steelyard.web.studies import Studies

Schema = dict[str, Any]

GROUPS = {
    "judging": (
        "Annotators",
        "For the annotators' page and `steelyard.Client`. Authentication: session cookie.",
    ),
    "manage": (
        "Researchers",
        "For the dashboard and scripts. Authentication: `Authorization: Bearer TOKEN`, or the browser's session.",
    ),
    "platforms": ("Webhooks", "Called by recruitment platforms."),
    "languages": ("Languages", "Texts of the annotators' page."),
    "service": ("Service", "For monitoring. No authentication."),
}
"""Headings and introductions of the groups of endpoints, by the tag they have in the description."""
STUDY = "/api/v1/studies/{study}"


def description() -> Schema:
    """Return the OpenAPI description of the API."""
    # The token opens nothing: no server is started.
    return create_app(Studies([]), token="0123456789abcdef").openapi()


def page() -> str:
    """Return the reference as Markdown."""
    document = description()
    schemas = document["components"]["schemas"]
    lines = [
        "# Endpoints of the REST API",
        "",
        f"Generated from the OpenAPI description of version {document['info']['version']}, which every server has at",
        "`/api/v1/openapi.json`. The [overview](api.md) explains sessions, tokens and errors.",
        "",
    ]
    for tag, (heading, introduction) in GROUPS.items():
        lines += [f"## {heading}", "", introduction, ""]
        for method, path, operation in _operations(document, tag):
            lines += _operation(method, path, operation, schemas)
    lines += ["## Objects", "", "JSON objects in requests and responses, in alphabetical order.", ""]
    for name in sorted(schemas, key=_short):
        lines += _object(name, schemas[name])
    return "\n".join(lines)


def _operations(document: Schema, tag: str) -> Iterator[tuple[str, str, Schema]]:
    """Yield the operations with a tag; a path below a study that repeats one without a study is left out."""
    paths = document["paths"]
    for path, operations in paths.items():
        if path.replace(STUDY, "/api/v1") != path and path.replace(STUDY, "/api/v1") in paths:
            continue
        for method, operation in operations.items():
            if tag in operation.get("tags", ()):
                yield method, path, operation


def _operation(method: str, path: str, operation: Schema, schemas: Schema) -> list[str]:
    lines = [f"### `{method.upper()} {path.removeprefix('/api/v1')}` {{ #{operation['operationId']} }}", ""]
    lines += [" ".join(str(operation.get("description", "")).split()), ""]
    rows = [
        (item["name"], item["in"], _type(item["schema"]), item.get("description", ""))
        for item in operation.get("parameters", ())
        if item["name"] != "study"
    ]
    if rows:
        lines += ["| parameter | in | type | meaning |", "|---|---|---|---|"]
        lines += [f"| `{name}` | {place} | {kind} | {meaning} |" for name, place, kind, meaning in rows]
        lines.append("")
    body = _json(operation.get("requestBody"))
    if body:
        lines += [f"Request: {_type(body)}", ""]
    for status, response in operation["responses"].items():
        if status.startswith("2"):
            content = _json(response)
            lines += [f"Response {status}: {_type(content) if content else 'no JSON'}", ""]
    return lines


def _json(holder: Schema | None) -> Schema | None:
    """Return the schema of the JSON body of a request or response."""
    schema = ((holder or {}).get("content") or {}).get("application/json", {}).get("schema")
    return schema or None


def _object(name: str, schema: Schema) -> list[str]:
    lines = [f"### {_short(name)} {{ #{_anchor(name)} }}", "", " ".join(str(schema.get("description", "")).split()), ""]
    required = set(schema.get("required", ()))
    rows = []
    for field, inner in schema.get("properties", {}).items():
        notes = [str(inner.get("description", ""))] if inner.get("description") else []
        if inner.get("default") not in (None, "", [], {}):
            notes.append(f"default `{inner['default']}`")
        rows.append(
            f"| `{field}` | {_type(inner)} | {'yes' if field in required else 'no'} | {_cell('; '.join(notes))} |"
        )
    return [*lines, "| field | type | required | meaning |", "|---|---|---|---|", *rows, ""] if rows else lines


def _type(schema: Schema) -> str:
    """Return the type of a value in a few words, with a link if it is an object of this page."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        return f"[{_short(name)}](#{_anchor(name)})"
    for combination in ("anyOf", "oneOf", "allOf"):
        if combination in schema:
            return " or ".join(dict.fromkeys(_type(part) for part in schema[combination]))
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    if values:
        return " or ".join(f"`{value}`" for value in values)
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_type(schema['additionalProperties'])}"
    return str(kind)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def _short(name: str) -> str:
    return name.rsplit("__", 1)[-1]


def _anchor(name: str) -> str:
    return f"object-{name.lower().replace('__', '-')}"
