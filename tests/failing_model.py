"""A plug-in model that raises on every judgment, for tests of what must go on without scores."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from steelyard import registry
from steelyard.web.calculator_process import CalculatorProcess

NAME = "always_fails"
REASON = "float division by zero"
MODULE = f'''
from dataclasses import dataclass
from typing import ClassVar

from steelyard.models.fit import Model


@dataclass(frozen=True, slots=True)
class AlwaysFails(Model):
    """Raise what a careless model would."""

    name: ClassVar[str] = "{NAME}"
    accepts: ClassVar[tuple[str, ...]] = ("ratings",)
    level: float = 0.95

    def fit(self, observations):
        self.check_kind(observations)
        raise ZeroDivisionError("{REASON}")
'''


@contextmanager
def installed(folder: Path) -> Iterator[str]:
    """Install the model as an entry point on the import path of this process and those it starts; give its name."""
    package = folder / "failing_model_plugin"
    info = package / "steelyard_failing-1.0.dist-info"
    info.mkdir(parents=True)
    (package / "steelyard_always_fails.py").write_text(MODULE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: steelyard-failing\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[steelyard.models]\n{NAME} = steelyard_always_fails:AlwaysFails\n")
    sys.path.insert(0, str(package))
    _forget_cached()
    try:
        yield NAME
    finally:
        sys.path.remove(str(package))
        sys.modules.pop("steelyard_always_fails", None)
        _forget_cached()


def _forget_cached() -> None:
    registry._entry_points.cache_clear()
    registry._validator.cache_clear()
    # The calculator process has the import path of the moment it was started.
    CalculatorProcess.end()
