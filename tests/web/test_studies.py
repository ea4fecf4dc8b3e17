"""The studies of a server."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
import duckdb
from pathlib import Path
from steelyard.web import Studies
Studies([Path(sys.argv[1])])
"""


def test_a_process_that_served_a_study_and_used_duckdb_ends_silently(make_study):
    pytest.importorskip("duckdb")
    folder: Path = make_study()
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(folder)], capture_output=True, text=True, check=True)
    assert done.stderr == ""
