"""What a command imports before it starts: only what it needs."""

from __future__ import annotations

import os
import pty
import random
import subprocess
import sys
from pathlib import Path

import pytest

from steelyard.cli.app import Commands, load
from tests.cli.running import run

SERVICE = (
    "sqlalchemy",
    "fastapi",
    "starlette",
    "uvicorn",
    "altair",
    "steelyard.analysis",
    "steelyard.report",
    "steelyard.storage",
    "steelyard.study",
    "steelyard.web",
)
"""Packages of studies and the web service, which commands on files do not need."""


def imported(*arguments: str) -> set[str]:
    """Run a command in a process of its own; return the modules that it imported."""
    program = (
        "import sys\nfrom steelyard.cli.app import main\ntry: main()\nfinally: print(*sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines()[-1].split())


@pytest.fixture
def ratings(tmp_path: Path) -> Path:
    path = tmp_path / "ratings.csv"
    rng = random.Random(1)
    rows = [f"item{i},annotator{a},{rng.randint(0, 100)}" for i in range(10) for a in range(5)]
    path.write_text("\n".join(["item,annotator,rating", *rows]))
    return path


def test_help_imports_no_command():
    modules = imported("--help")
    assert not modules & {*SERVICE, "numpy", "polars", "scipy", "numba", "pydantic"}
    assert not modules & {entry.module for entry in Commands.entries}


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--model", "mean")])
def test_fit_does_not_import_the_service_or_what_the_model_does_not_need(ratings, options):
    modules = imported("fit", str(ratings), "--scale", "0", "100", *options)
    assert "steelyard.models.ratings.mean" in modules
    assert not modules & {*SERVICE, "scipy.stats", "numba", "duckdb", "pyspark"}


@pytest.mark.parametrize("entry", Commands.entries, ids=lambda entry: entry.name)
def test_the_line_in_the_overview_is_the_beginning_of_the_commands_help(entry):
    paragraph = load(entry).help.split("\n\n")[0]
    assert " ".join(paragraph.split()) == entry.summary
    assert len(entry.summary) < 80


@pytest.mark.parametrize("entry", Commands.entries, ids=lambda entry: entry.name)
def test_help_of_options_is_at_most_80_characters(entry):
    command = load(entry)
    commands = [*getattr(command, "commands", {}).values(), command]
    long = [parameter.help for each in commands for parameter in each.params if len(parameter.help or "") > 80]
    assert not long


def test_a_misspelt_command_is_refused_with_the_nearest_one(tmp_path):
    assert "Did you mean 'fit'" in run("fti", cwd=tmp_path, code=2).stderr


@pytest.mark.slow
def test_compilation_of_kernels_is_announced_once_on_a_terminal(tmp_path):
    path = tmp_path / "comparisons.csv"
    path.write_text("left,right,winner\na,b,a\nb,c,b\na,c,c\nc,b,c\n")
    command = [sys.executable, "-m", "steelyard", "fit", str(path), "--model", "elo"]
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def stderr_on_terminal() -> str:
        terminal, stderr = pty.openpty()
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=stderr, check=True)
        os.close(stderr)
        text = b""
        try:
            while part := os.read(terminal, 4096):
                text += part
        except OSError:
            # Linux reports the end of a closed terminal as an error.
            pass
        os.close(terminal)
        return text.decode()

    assert stderr_on_terminal().count("Compiling numerical kernels") == 1
    assert "Compiling" not in stderr_on_terminal()
