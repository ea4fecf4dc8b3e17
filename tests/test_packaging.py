"""The wheel holds the library and its data files, and nothing else of the repository."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def wheel_files(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Return the paths in a wheel built from the repository."""
    folder = tmp_path_factory.mktemp("wheel")
    build = "import hatchling.build, sys; hatchling.build.build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, str(folder)], cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return set(zipfile.ZipFile(wheel).namelist())


def test_the_wheel_holds_one_package(wheel_files):
    assert {path.split("/")[0].split("-")[0] for path in wheel_files} == {"steelyard"}


def test_the_wheel_is_typed(wheel_files):
    assert "steelyard/py.typed" in wheel_files


def test_the_wheel_holds_every_tracked_file_of_the_package(wheel_files):
    """Migrations, SQL, templates, scripts, translations and examples are found by path at run time."""
    listing = subprocess.run(["git", "ls-files", "src"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    tracked = {line.removeprefix("src/") for line in listing.splitlines() if (ROOT / line).exists()}
    assert tracked <= wheel_files
