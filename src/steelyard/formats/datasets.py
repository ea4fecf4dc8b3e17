"""Read and write folders of Hugging Face `datasets`, as `save_to_disk` writes them, without that library."""

from __future__ import annotations

import io
import json
import shutil
import uuid
from pathlib import Path
from typing import Any

import polars as pl

from steelyard.errors import DataError

SUFFIX = ".hf"
"""Suffix of a path to which `write_table` writes such a folder; reading needs no suffix."""
_STATE, _INFO, _SPLITS = "state.json", "dataset_info.json", "dataset_dict.json"
_UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException)
_TYPES = {
    pl.String: "large_string",
    pl.Boolean: "bool",
    pl.Float64: "float64",
    pl.Float32: "float32",
    pl.Int64: "int64",
    pl.Int32: "int32",
    pl.Int16: "int16",
    pl.Int8: "int8",
    pl.UInt64: "uint64",
    pl.UInt32: "uint32",
    pl.UInt16: "uint16",
    pl.UInt8: "uint8",
}


def is_dataset_folder(path: Path) -> bool:
    """Return whether a folder was written by `save_to_disk`."""
    return path.is_dir() and any((path / name).is_file() for name in (_STATE, _SPLITS))


def read_dataset_folder(path: Path, label: str) -> pl.DataFrame:
    """Read a data set; of a dictionary of splits, the only split."""
    if not (path / _STATE).is_file():
        splits = _read_json(path / _SPLITS, label).get("splits", [])
        if len(splits) != 1:
            example = f"{label}/{splits[0]}" if splits else label
            raise DataError(
                f"it has {len(splits)} splits: {', '.join(map(str, splits))}.", f"Choose one: {example}", file=label
            )
        return read_dataset_folder(path / str(splits[0]), f"{label}/{splits[0]}")
    state = _read_json(path / _STATE, label)
    names = [Path(str(part.get("filename", ""))).name for part in state.get("_data_files", [])]
    if not names:
        raise DataError(f"{_STATE} names no data files.", "Save the data set again.", file=label)
    if state.get("_indices_data_files"):
        raise DataError(
            "its rows are a selection of other rows.",
            "Save it after dataset.flatten_indices().",
            file=label,
        )
    frame = pl.concat(_read_arrow(path / name, label) for name in names)
    columns = state.get("_format_columns")
    return frame.select(columns) if columns else frame


def write_dataset_folder(frame: pl.DataFrame, path: Path) -> None:
    """Write a data set that `datasets.load_from_disk` reads, in place of what the path holds."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        temporary.mkdir()
        data = "data-00000-of-00001.arrow"
        frame.write_ipc_stream(temporary / data, compat_level=pl.CompatLevel.oldest())
        state: dict[str, Any] = {
            "_data_files": [{"filename": data}],
            "_fingerprint": uuid.uuid4().hex[:16],
            "_format_columns": None,
            "_format_kwargs": {},
            "_format_type": None,
            "_output_all_columns": False,
            "_split": None,
        }
        features = {name: _feature(dtype, name) for name, dtype in frame.schema.items()}
        info = {"citation": "", "description": "", "features": features, "homepage": "", "license": ""}
        for name, content in ((_STATE, state), (_INFO, info)):
            (temporary / name).write_text(json.dumps(content, indent=2, ensure_ascii=False), encoding="utf-8")
        if is_dataset_folder(path):
            shutil.rmtree(path)
        temporary.rename(path)
    except OSError as error:
        raise DataError(
            f"it cannot be written ({error.strerror or error}).",
            "Give a new path in an existing, writable folder.",
            file=str(path),
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _feature(dtype: pl.DataType, name: str) -> dict[str, object]:
    if isinstance(dtype, pl.List):
        return {"feature": _feature(_inner(dtype), name), "_type": "LargeList"}
    if isinstance(dtype, pl.Datetime):
        unit = dtype.time_unit
        return {"dtype": f"timestamp[{unit}{f', tz={dtype.time_zone}' if dtype.time_zone else ''}]", "_type": "Value"}
    type_name = _TYPES.get(dtype.base_type())
    if type_name is None:
        raise DataError(f"a column of type {dtype} cannot be written to a data set.", "Convert it first.", field=name)
    return {"dtype": type_name, "_type": "Value"}


def _inner(dtype: pl.List) -> pl.DataType:
    inner = dtype.inner
    return inner if isinstance(inner, pl.DataType) else inner()


def _read_json(path: Path, label: str) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path.name} cannot be read ({error}).", "Save the data set again.", file=label) from error
    if not isinstance(content, dict):
        raise DataError(f"{path.name} is not a JSON object.", "Save the data set again.", file=label)
    return content


def _read_arrow(path: Path, label: str) -> pl.DataFrame:
    try:
        return pl.read_ipc_stream(io.BytesIO(path.read_bytes()))
    except OSError as error:
        raise DataError(f"{path.name} cannot be read ({error.strerror}).", "Save it again.", file=label) from error
    except _UNREADABLE as error:
        reason = str(error).partition("\n")[0]
        raise DataError(f"{path.name} is not an Arrow stream ({reason}).", "Save it again.", file=label) from error
