"""What tests look up, and change, of a study on the stand-in for Prolific."""

from __future__ import annotations

from pathlib import Path

from steelyard.recruitment.ledger import PlatformLedger
from steelyard.study import Study


def platform_ledger(folder: Path) -> PlatformLedger:
    with Study.open(folder) as study:
        return PlatformLedger.of(study.recruitment.steps())


def only(platform):
    (study,) = platform.studies.values()
    return study


def set_key(folder: Path, old: str, new: str) -> None:
    text = (folder / "study.toml").read_text(encoding="utf-8")
    assert old in text
    (folder / "study.toml").write_text(text.replace(old, new), encoding="utf-8")


OWED = {"p1": 65, "p2": 65, "p3": 40}
"""0.1 × 4 tasks, and 0.25 for who passed the check."""
