"""What README and docs say is run, and what the code has is documented."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.reference import PAGES
from steelyard import registry
from steelyard.cli import prolific
from steelyard.cli.app import Commands
from steelyard.study import parse_config
from tests.cli.running import run as run_here

ROOT = Path(__file__).resolve().parent.parent
DOCS = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r'^```(\w+)(?: title="([^"\n]+)")?\n(.*?)^```$', re.M | re.S)
BIN = Path(sys.executable).parent
ANSWERS = "1\n2\n" * 50
"""What whoever is asked answers."""


def blocks(path: Path) -> list[tuple[str, str, str]]:
    return [(m[1], m[2] or "", m[3]) for m in BLOCK.finditer(path.read_text(encoding="utf-8"))]


RUNNABLE = [path for path in DOCS if any(kind in {"python", "console"} for kind, _, _ in blocks(path))]


@pytest.mark.slow
@pytest.mark.parametrize("path", RUNNABLE, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_examples_run(path: Path, tmp_path: Path):
    """Run a page from top to bottom in an empty folder; `csv` and `py` blocks with a title become files."""
    names: dict[str, object] = {}
    for kind, name, text in blocks(path):
        if kind in {"csv", "py"} and name:
            (tmp_path / name).write_text(text, encoding="utf-8")
        elif kind == "python":
            with contextlib.chdir(tmp_path):
                exec(compile(text, str(path), "exec"), names)
        elif kind == "console":
            for line in text.splitlines():
                assert line.startswith("$ "), f"{path}: a console line without a prompt: {line}"
                command = shlex.split(line[2:])
                # A process for each command would import everything each time; README's show that it works.
                if path.name == "README.md" or command[0] != "steelyard":
                    run(command, tmp_path)
                else:
                    run_here(*command[1:], cwd=tmp_path, text=ANSWERS)


def run(command: list[str], folder: Path) -> None:
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment, input=ANSWERS)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


def test_toml_examples_that_are_whole_studies_are_valid():
    import tomllib

    count = 0
    for path in DOCS:
        for kind, _, text in blocks(path):
            if kind == "toml" and text.startswith("title"):
                parse_config(tomllib.loads(text))
                count += 1
    assert count >= 1


@pytest.mark.parametrize("name", PAGES)
def test_generated_pages_are_up_to_date(name):
    page = ROOT / "docs" / "reference" / name
    assert page.read_text(encoding="utf-8") == PAGES[name](), "run: python -m scripts.reference"


@pytest.mark.parametrize("path", DOCS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_every_setting_has_a_description():
    page = PAGES["study-toml.md"]()
    assert not [line for line in page.splitlines() if re.match(r"\| `\w+` \| .* \|  \|$", line)]


def test_every_command_is_documented():
    page = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    names = [entry.name for entry in Commands.entries if entry.name != "prolific"]
    names += [f"prolific {command.callback.__name__}" for command in prolific.app.registered_commands]
    assert "prolific bonus" in names
    for name in names:
        assert f"## steelyard {name}" in page


def test_every_dependency_has_a_reason():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    reasons = (ROOT / "docs" / "concepts" / "dependencies.md").read_text(encoding="utf-8").lower()
    for group in [project["dependencies"], *project["optional-dependencies"].values()]:
        for dependency in group:
            name = re.split(r"[\[<>=]", dependency)[0].lower()
            assert name == "steelyard" or name.removeprefix("pytest-") in reasons, name


def test_every_model_has_a_concept_page():
    pages = " ".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "concepts").glob("*.md")).lower()
    for name in registry.names("models"):
        assert f"`{name}`" in pages or f"--model {name}`" in pages, name
