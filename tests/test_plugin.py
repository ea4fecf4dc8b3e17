"""A plug-in uses the same door as the built-ins: an entry point."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from steelyard import registry
from steelyard.errors import ConfigError

PLUGIN = '''
from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from steelyard.models.fit import Fit, Model


@dataclass(frozen=True, slots=True)
class FirstValue(Model):
    """Score every item by the first value it got."""

    name: ClassVar[str] = "first_value"
    accepts: ClassVar[tuple[str, ...]] = ("ratings",)

    add: float = 0.0

    def fit(self, observations):
        self.check_kind(observations)
        first = {}
        for item, value in zip(observations.item, observations.value, strict=True):
            first.setdefault(observations.items[int(item)], float(value) + self.add)
        none = [None] * len(first)
        frame = pl.DataFrame(
            {
                "item": list(first), "score": list(first.values()), "unit_score": none, "sd": none, "lower": none,
                "upper": none, "interval": none, "rank": [1] * len(first), "rank_lower": none, "rank_upper": none,
                "judgments": [1] * len(first), "annotators": none,
            }
        )
        return Fit(self.name, self.settings(), frame)
'''


@pytest.fixture(scope="module")
def plugin_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp("plugin")
    (source / "toy_model.py").write_text(PLUGIN)
    (source / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
        '[project]\nname = "steelyard-toy"\nversion = "1.0"\n'
        '[project.entry-points."steelyard.models"]\nfirst_value = "toy_model:FirstValue"\n'
        '[tool.hatch.build.targets.wheel]\ninclude = ["toy_model.py"]\n'
    )
    target = tmp_path_factory.mktemp("installed")
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--target", target, source],
        check=True,
        capture_output=True,
    )
    return target


@pytest.mark.slow
def test_an_installed_plugin_model_is_used_by_name(plugin_path: Path, tmp_path: Path):
    (tmp_path / "ratings.csv").write_text("item,value\na,3\nb,5\na,9\n")
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "steelyard",
            "fit",
            "ratings.csv",
            "--model",
            "first_value",
            "--set",
            "add=10",
            "-f",
            "json",
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(plugin_path)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert {row["item"]: row["score"] for row in json.loads(run.stdout)} == {"a": 13.0, "b": 15.0}


def test_every_built_in_is_registered_under_its_own_name():
    for kind in ("protocols", "designs", "models"):
        assert registry.names(kind)
        for name in registry.names(kind):
            assert registry.find(kind, name).name == name


def test_an_unknown_name_gets_a_did_you_mean():
    with pytest.raises(ConfigError, match=r"no model called 'esal'.*Did you mean 'easl'"):
        registry.find("models", "esal")


def test_an_unknown_setting_gets_a_did_you_mean():
    with pytest.raises(ConfigError, match=r"per_item has no setting 'judgements'.*Did you mean 'judgments'"):
        registry.create("designs", "per_item", {"judgements": 3})


def test_all_wrong_settings_are_reported_at_once():
    with pytest.raises(ConfigError) as caught:
        registry.create("protocols", "scored_ranking", {"size": 1, "scale": [5, 1], "colour": "red"})
    assert {problem.field for problem in caught.value.problems} == {
        "protocol.size",
        "protocol.scale",
        "protocol.colour",
    }
