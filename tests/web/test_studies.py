"""The studies of a server."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from steelyard.web.studies import slug_of

PROGRAM = """
import sys
import duckdb
from pathlib import Path
from steelyard.web import Studies
Studies([Path(sys.argv[1])])
"""


@pytest.mark.slow
def test_a_process_that_served_a_study_and_used_duckdb_ends_silently(make_study):
    pytest.importorskip("duckdb")
    folder: Path = make_study()
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(folder)], capture_output=True, text=True, check=True)
    assert done.stderr == ""


@pytest.mark.parametrize(("name", "slug"), [("Drafts", "drafts-study"), ("new", "new-study"), ("Über uns", "uber-uns")])
def test_no_study_takes_an_address_of_the_managers_pages(make_study, name, slug):
    assert slug_of(make_study(name=name)) == slug
