"""The latest results of a study, kept beside it: a dashboard shows them until newer ones are computed."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import polars as pl

from steelyard.study import Study
from steelyard.study.checkpoints import settings_digest


def _name(part: str) -> str:
    return f"results-{part}"


def _settings(study: Study) -> str:
    return settings_digest(study.config.source)


def save_part(study: Study, name: str, part: Any, digest: str) -> None:
    """Keep a part of the results (a dataclass with `seq` and `tables`) until the next one.

    `digest` is that of event `seq` when the log was read.
    """
    log = study.core.log
    if log.checkpoints is None:
        return
    values = {field.name: getattr(part, field.name) for field in fields(part)}
    values["tables"] = {table: _to_bytes(frame) for table, frame in part.tables.items()}
    log.checkpoints.write(_name(name), values, seq=part.seq, digest=digest, settings=_settings(study))
    log.checkpoints.delete_if_rewritten(part.seq, digest, log.digest_of)


def load_parts(study: Study, types: Mapping[str, type[Any]]) -> dict[str, Any]:
    """Return the parts that were kept, by name, if they are of this study, these settings and this version."""
    log = study.core.log
    if log.checkpoints is None:
        return {}
    parts = {}
    for name, part_type in types.items():
        values = log.checkpoints.read(_name(name), settings=_settings(study), digest_of=log.digest_of)
        if isinstance(values, dict) and set(values) == {field.name for field in fields(part_type)}:
            values["tables"] = {table: pl.read_ipc(data) for table, data in values["tables"].items()}
            parts[name] = part_type(**values)
    return parts


def _to_bytes(frame: pl.DataFrame) -> bytes:
    file = io.BytesIO()
    frame.write_ipc(file, compression="lz4")
    return file.getvalue()
