"""Names of files and columns that would inject SQL or match other files if an engine did not quote them."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from polars.testing import assert_frame_equal

from steelyard.engines import Engine, fit_files
from steelyard.models.ratings.mean import Mean

# Each folder has a neighbour that its name would match if it were read as a pattern or an encoded URL.
FOLDERS = {
    "it's '); DROP VIEW steelyard_files; --": "its",
    "part [1]": "part 1",
    "st*r": "star",
    "wh?t": "what",
    "{one,two}": "one",
    "100%20": "100 ",
    "Übung #1": "Übung ",
    'say "so" `now`': "say so now",
}
COLUMNS = {
    "annotator": 'who\'s "x" `y`; DROP VIEW steelyard_files; --.a',
    "item": "item') AS item FROM range(9); --",
    "value": 'the.va`l"ue{p}',
}


def assert_names_are_only_names(engine: Engine, folder: Path) -> None:
    """Fit files with such names; their neighbours hold other values and must not be read."""
    ours = pl.DataFrame(
        {"annotator": ["u", "v", "u", "v"], "item": ["a", "a", "b", "b"], "value": [1.0, 2.0, 5.0, 7.0]}
    )
    theirs = ours.with_columns(value=pl.lit(9.0))
    expected = fit_files(Mean(), _written(ours, folder / "plain"), engine=engine, columns=COLUMNS, scale=(0, 10))
    assert expected.scores.sort("item")["score"].to_list() == [1.5, 6.0]
    for name, neighbour in FOLDERS.items():
        _written(theirs, folder / neighbour)
        file = _written(ours, folder / name)
        fitted = fit_files(Mean(), file, engine=engine, columns=COLUMNS, scale=(0, 10))
        assert_frame_equal(fitted.scores, expected.scores)


def _written(frame: pl.DataFrame, folder: Path) -> Path:
    folder.mkdir()
    with (folder / f"{folder.name}.parquet").open("wb") as file:
        frame.rename(COLUMNS).write_parquet(file)
    return folder / f"{folder.name}.parquet"
