"""Folders of Hugging Face `datasets`: ours is read by pyarrow, and pyarrow's by ours."""

from __future__ import annotations

import json

import polars as pl
import pyarrow as pa
import pytest

from steelyard import read_judgments
from steelyard.errors import DataError
from steelyard.formats import read_table, write_table
from tests.cli.running import run

FRAME = pl.DataFrame({"annotator": ["ann", "bob"], "item": ["a", "b"], "value": [1.5, None], "tags": [["x"], []]})


def save_to_disk(folder, *tables):
    """Write a data set as `datasets.Dataset.save_to_disk` (5.2) does: Arrow streams and two JSON files."""
    folder.mkdir(parents=True)
    names = [f"data-{n:05}-of-{len(tables):05}.arrow" for n in range(len(tables))]
    for name, table in zip(names, tables, strict=True):
        with pa.OSFile(str(folder / name), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table)
    state = {"_data_files": [{"filename": name} for name in names], "_format_columns": None, "_split": None}
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "dataset_info.json").write_text(json.dumps({"features": {}}))


def test_a_folder_of_arrow_streams_is_a_table(tmp_path):
    one = pa.table({"annotator": ["ann"], "item": ["a"], "value": [1.0]})
    other = pa.table({"annotator": ["bob"], "item": ["b"], "value": [2.0]})
    save_to_disk(tmp_path / "votes", one, other)
    assert read_table(tmp_path / "votes").rows() == [("ann", "a", 1.0), ("bob", "b", 2.0)]
    ratings = read_judgments(tmp_path / "votes", scale=(0, 5)).observations
    assert ratings.value.tolist() == [1.0, 2.0]
    scores = run("fit", "votes", "--model", "mean", "--scale", "0", "5", "-f", "json", cwd=tmp_path).stdout
    assert [row["item"] for row in json.loads(scores)] == ["b", "a"]


def test_the_only_split_is_read_and_several_are_named(tmp_path):
    table = pa.table({"annotator": ["ann"], "item": ["a"], "value": [1.0]})
    save_to_disk(tmp_path / "d" / "train", table)
    (tmp_path / "d" / "dataset_dict.json").write_text(json.dumps({"splits": ["train"]}))
    assert read_table(tmp_path / "d").height == 1
    save_to_disk(tmp_path / "d" / "test", table)
    (tmp_path / "d" / "dataset_dict.json").write_text(json.dumps({"splits": ["train", "test"]}))
    with pytest.raises(DataError, match=r"2 splits: train, test.*Choose one: .*d/train"):
        read_table(tmp_path / "d")
    assert read_table(tmp_path / "d" / "test").height == 1


def test_what_is_written_is_read_by_pyarrow_with_its_features(tmp_path):
    write_table(FRAME, tmp_path / "scores.hf")
    folder = tmp_path / "scores.hf"
    state = json.loads((folder / "state.json").read_text())
    (data,) = state["_data_files"]
    with pa.OSFile(str(folder / data["filename"])) as file, pa.ipc.open_stream(file) as stream:
        table = stream.read_all()
    assert table.to_pylist() == FRAME.to_dicts()
    # `datasets` refuses features that are not those of the stream, and does not know view types (checked with 5.2).
    assert not any(pa.types.is_string_view(field.type) for field in table.schema)
    features = json.loads((folder / "dataset_info.json").read_text())["features"]
    assert features["value"] == {"dtype": "float64", "_type": "Value"}
    assert features["tags"] == {"feature": {"dtype": "large_string", "_type": "Value"}, "_type": "LargeList"}
    assert read_table(folder).equals(FRAME)


def test_writing_again_replaces_a_data_set_and_nothing_else(tmp_path):
    write_table(FRAME, tmp_path / "scores.hf")
    write_table(FRAME.head(1), tmp_path / "scores.hf")
    assert read_table(tmp_path / "scores.hf").height == 1
    (tmp_path / "mine.hf").mkdir()
    (tmp_path / "mine.hf" / "notes.txt").write_text("keep")
    with pytest.raises(DataError, match="cannot be written"):
        write_table(FRAME, tmp_path / "mine.hf")
    assert (tmp_path / "mine.hf" / "notes.txt").read_text() == "keep"


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ("{", "cannot be read"),
        ("[]", "not a JSON object"),
        ('{"_data_files": []}', "names no data files"),
        ('{"_data_files": [{"filename": "../secret.arrow"}]}', "secret.arrow cannot be read"),
        ('{"_data_files": [{"filename": "x.arrow"}]}', "not an Arrow stream"),
    ],
)
def test_a_damaged_folder_is_refused(tmp_path, state, message):
    folder = tmp_path / "inner" / "d"
    folder.mkdir(parents=True)
    (tmp_path / "inner" / "secret.arrow").write_bytes(b"secret")
    (folder / "x.arrow").write_bytes(b"no arrow")
    (folder / "state.json").write_text(state)
    with pytest.raises(DataError, match=message):
        read_table(folder)
