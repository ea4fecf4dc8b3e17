"""A file system that can be filled up or made read-only, and the servers of tests/web."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.web.conftest import serve_study

__all__ = ["serve_study"]


@dataclass
class Disk:
    """A small file system of its own."""

    path: Path

    def fill(self) -> None:
        """Leave no room."""
        with (self.path / "ballast").open("wb", buffering=0) as file:
            for size in (65536, 4096, 1):
                try:
                    while file.write(b"\0" * size) == size:
                        pass
                except OSError:
                    continue

    def make_room(self) -> None:
        """Take away what filled it."""
        (self.path / "ballast").unlink()

    def remount(self, how: str) -> None:
        """Make it read-only (ro), or not (rw)."""
        subprocess.run(["mount", "-o", f"remount,{how}", self.path], check=True, capture_output=True)


@contextmanager
def mounted(place: Path, megabytes: int) -> Iterator[Disk]:
    """Mount a file system in memory while in the block."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    place.mkdir()
    options = f"size={megabytes}m,mode=777"
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", place], capture_output=True)
    if done.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {done.stderr.decode().strip()}")
    try:
        yield Disk(place)
    finally:
        subprocess.run(["umount", "-l", place], check=True)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Disk]:
    """A file system of two megabytes."""
    with mounted(tmp_path / "disk", 2) as disk:
        yield disk
