"""Reading an uploaded Parquet file in a process that may not take much memory.

A Parquet file of a few kilobytes can unpack to many gigabytes, and what its footer says about that need not be true.
So it is unpacked in a process of its own with a limit: if the file is too large for it, that process ends and nothing
else happens.
"""

from __future__ import annotations

import io
import subprocess
import sys
from typing import IO

import polars as pl

from steelyard.errors import DataError

MAX_UNPACKED_BYTES = 400_000_000
"""Largest size of all texts in a file."""
_MAX_ADDRESS_SPACE = 3_000_000_000
"""The interpreter with its libraries maps about half of it."""
_MAX_SECONDS = 60
_REFUSED = 3

_CHILD = """
import sys
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, ({memory}, {memory}))
except (ImportError, ValueError, OSError):
    pass  # Windows and some other systems have no such limit; the sizes are checked all the same.
from steelyard.formats.confined_parquet import write_as_text
sys.exit(write_as_text(sys.stdin.buffer, sys.stdout.buffer, sys.stderr))
"""


def read_confined_parquet(data: bytes, name: str) -> pl.DataFrame:
    """Return a Parquet file with all columns as texts; refuse one that takes too much memory or time."""
    too_large = DataError(
        f"it unpacks to more than {MAX_UNPACKED_BYTES / 1e6:,.0f} MB, which is too much for a table.",
        "Split it, or create the study on the command line: steelyard new.",
        file=name,
    )
    command = [sys.executable, "-c", _CHILD.format(memory=_MAX_ADDRESS_SPACE)]
    try:
        child = subprocess.run(command, input=data, capture_output=True, timeout=_MAX_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise too_large from None
    if child.returncode == _REFUSED:
        what, _, remedy = child.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2].partition("\t")
        raise DataError(what, remedy, file=name)
    if child.returncode != 0:
        raise too_large
    return pl.read_ipc(io.BytesIO(child.stdout))


def write_as_text(source: IO[bytes], target: IO[bytes], problems: IO[str]) -> int:
    """Read a Parquet file and write it with all columns as texts; return the exit status of the process."""
    # Imported here: uploads imports this module.
    from steelyard.formats.tables import parse_parquet
    from steelyard.formats.uploads import as_text

    try:
        frame = parse_parquet(source.read(), "")
    except DataError as error:
        problem = error.problems[0]
        problems.write(f"{problem.what}\t{problem.remedy}\n".replace("\n", " ").strip() + "\n")
        return _REFUSED
    texts = [column for column in frame if column.dtype == pl.String]
    # Repeated texts are stored once, in the file and in memory; in a table of items they are not.
    size = sum(int(column.str.len_bytes().sum() or 0) for column in texts) + 8 * frame.height * frame.width
    if size > MAX_UNPACKED_BYTES:
        return 1
    frame.select(as_text(column) for column in frame).write_ipc(target)
    return 0
