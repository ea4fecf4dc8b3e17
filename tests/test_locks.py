"""The lock files pin everything by hash, and cover what pyproject.toml asks for."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def requirements(extras: tuple[str, ...]) -> set[str]:
    """Return the names that pyproject.toml asks for with some extras, which may name other extras."""
    texts = [*PROJECT["dependencies"], *(text for extra in extras for text in PROJECT["optional-dependencies"][extra])]
    inner = [re.findall(r"\w+", text.partition("[")[2].partition("]")[0]) for text in texts if "steelyard[" in text]
    names = {re.split(r"[^\w.-]", text)[0].lower().replace("_", "-") for text in texts if "steelyard[" not in text}
    return names.union(*(requirements(tuple(more)) for more in inner)) if inner else names


@pytest.mark.parametrize(
    ("lock", "extras"), [("requirements-server.lock", ("postgres", "oidc")), ("requirements-dev.lock", ("dev",))]
)
def test_a_lock_file_pins_every_requirement_with_hashes_and_names_no_index(lock, extras):
    text = (ROOT / lock).read_text(encoding="utf-8")
    entries = re.split(r"\n(?=\w)", text)
    versions = {entry.partition("==")[0].partition("[")[0].lower(): entry for entry in entries if "==" in entry}
    assert requirements(extras) - set(versions) == set()
    assert [name for name, entry in versions.items() if "--hash=sha256:" not in entry] == []
    assert "index-url" not in text
    assert "://" not in text


def test_the_image_installs_from_the_lock_file_by_hash():
    dockerfile = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    assert "--require-hashes --requirement requirements-server.lock" in dockerfile
    assert "--no-deps --no-build-isolation ." in dockerfile
