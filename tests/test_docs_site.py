"""The documentation site: it builds without a warning, loads nothing from other hosts, and has everything public."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import steelyard
from scripts import rest_reference
from scripts.docs_site import relocate_links
from scripts.notebooks import FOLDER, cells, markdown_of

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
# Elements that make a browser load something when the page is opened.
LOADED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\bsrc(?:set)?=["']?(https?:)?//|<link\b[^>]*href=["']?https?://"""
)


@pytest.mark.slow
def test_the_site_builds_strictly_and_needs_no_other_host(tmp_path: Path):
    """Build the site once, with warnings as errors: dead links and anchors, pages outside the navigation."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr

    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) > 60
    for page in pages:
        assert not LOADED.search(page.read_text(encoding="utf-8")), f"{page.name} loads something from another host"
    for style in tmp_path.rglob("*.css"):
        assert not re.search(r"url\([\"']?https?:|@import", style.read_text(encoding="utf-8")), style.name

    index = json.loads((tmp_path / "search" / "search_index.json").read_text(encoding="utf-8"))
    text = {entry["location"]: entry["text"] for entry in index["docs"]}
    # A parameter of a docstring, a route of the API, a setting of study.toml, and a sentence of a notebook are found.
    assert any("covariates" in content for place, content in text.items() if "reference/python/systems" in place)
    assert any("Lease up to" in content for place, content in text.items() if "reference/rest" in place)
    assert any("notebooks/leaderboard" in place for place in text)


@pytest.mark.parametrize("name", sorted(set(steelyard.__all__) - {"__version__", "plot"}))
def test_every_public_name_is_in_the_reference(name: str):
    pages = [path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "reference" / "python").glob("*.md")]
    assert any(f"::: steelyard.{name}\n" in page + "\n" for page in pages), f"add {name} to docs/reference/python"


@pytest.mark.slow
def test_the_rest_reference_has_every_route():
    page = rest_reference.page()
    for path, operations in rest_reference.description()["paths"].items():
        shared = path.replace(rest_reference.STUDY, "/api/v1")
        for method in operations:
            names = (f"`{method.upper()} {place.removeprefix('/api/v1')}`" for place in (path, shared))
            assert any(name in page for name in names), f"{method} {path}"


def test_links_out_of_docs_lead_to_their_place_on_the_site():
    text = "[a](../../CONTRIBUTING.md#habits) [b](../guides/quality.md) [d](https://x.org/y.md)"
    assert relocate_links(text, "docs/concepts/systems.md", "concepts/systems.md") == (
        "[a](../about/contributing.md#habits) [b](../guides/quality.md) [d](https://x.org/y.md)"
    )
    contributing = relocate_links("[a](docs/concepts/architecture.md)", "CONTRIBUTING.md", "about/contributing.md")
    assert contributing == "[a](../concepts/architecture.md)"


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(path: Path, tmp_path: Path):
    """Run the cells from top to bottom in an empty folder, in this process: a kernel for each would cost seconds."""
    names: dict[str, object] = {}
    with contextlib.chdir(tmp_path):
        for cell in cells(path):
            if cell["cell_type"] == "code":
                exec(compile(cell["source"], str(path), "exec"), names)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_keep_the_outputs_that_the_site_shows(path: Path):
    code = [cell for cell in cells(path) if cell["cell_type"] == "code"]
    assert any(cell["outputs"] for cell in code), f"run: python -m scripts.notebooks {path.stem}"
    assert not any(output["output_type"] == "error" for cell in code for output in cell["outputs"])
    assert "notebook-output" in markdown_of(path) or "```text" in markdown_of(path)


def test_there_is_a_notebook_for_each_page_in_the_navigation():
    named = set(re.findall(r"notebooks/([\w-]+)\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8")))
    assert named == {path.stem for path in NOTEBOOKS} != set()
