"""The wheel holds the library, its data files and the pages of the documentation, and nothing else of the "
"repository."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from scripts.release_check import problems

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


def test_pages_that_messages_refer_to_are_in_the_wheel(wheel_files):
    """A message must not send a user to a file that an installation lacks."""
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")]
    pages = {name for text in sources for name in re.findall(r"steelyard docs ([a-z][a-z-]+)", text)}
    assert {"files", "crowd", "study-toml"} <= pages
    packaged = {Path(path).stem for path in wheel_files if path.startswith("steelyard/docs/")}
    assert pages <= packaged
    assert not [path for path in wheel_files if path.startswith("steelyard/docs/") and not path.endswith(".md")]


@pytest.mark.slow
def test_no_text_of_the_package_names_a_file_of_the_repository():
    """Comments and docstrings may; texts that are shown may not."""
    for path in (ROOT / "src").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
                assert not re.search(r"docs/\w+/[\w-]+\.md", node.value), f"{path.name} line {node.lineno}"


def test_a_release_needs_one_version_a_changelog_and_no_placeholders(tmp_path):
    for name in ("pyproject.toml", "CITATION.cff", "CHANGELOG.md"):
        (tmp_path / name).write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    placeholders = problems(root=tmp_path)
    assert all("placeholder" in problem for problem in placeholders)
    text = (tmp_path / "pyproject.toml").read_text(encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text(text.replace("steelyard.example", "steelyard.test"), encoding="utf-8")
    assert problems(root=tmp_path) == []
    (tmp_path / "CHANGELOG.md").write_text("## Unreleased\n\n## 0.1.0 (2026-11-18)\n- A change.\n", encoding="utf-8")
    assert problems("v0.1.0", tmp_path) == []
    assert problems("v0.1.1", tmp_path) == ["the tag is v0.1.1, but the version is 0.1.0."]
    (tmp_path / "CHANGELOG.md").write_text("## Unreleased\n- New.\n\n## 0.1.0 (2026-11-18)\n", encoding="utf-8")
    assert [problem.split()[1:4] for problem in problems("v0.1.0", tmp_path)] == [["has", "unreleased", "entries;"]]
    (tmp_path / "CITATION.cff").write_text("version: 0.0.9\n", encoding="utf-8")
    (tmp_path / "CHANGELOG.md").write_text("## Unreleased\n", encoding="utf-8")
    assert [problem.split()[0] for problem in problems(root=tmp_path)] == ["CITATION.cff", "CHANGELOG.md"]
