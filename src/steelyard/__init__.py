"""Graded human judgments: ask people the fewest questions that place every item on a bounded scale.

items ──▶ design picks a Task ──▶ protocol asks it ──▶ annotator answers ──▶ Judgment in the log
            ▲                                                                     │
            │                                                              observations
            └────────────── model (scores + uncertainty) ◀───────────────────────┘

    study = steelyard.Study.open("verbs")
    task = study.ask("ann-7")
    study.tell(task, {"ambulate": 4, "bring": 71, "cook": 66, "dwell": 22, "go": 98})
    study.scores()
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steelyard.errors import (
        AnswerError,
        ConfigError,
        ConvergenceWarning,
        DataError,
        SteelyardError,
        SteelyardWarning,
        StoreError,
        TaskError,
    )
    from steelyard.formats import judgment_table, read_gold, read_items, read_judgments, read_table, write_table
    from steelyard.models.counting import Counting
    from steelyard.models.easl import EASL
    from steelyard.models.fit import Fit
    from steelyard.models.majority import Majority
    from steelyard.models.mean import Mean
    from steelyard.observations import Choices, Comparisons, Index, Labels, Rankings, Ratings
    from steelyard.records import Annotator, Item, Judgment, Task
    from steelyard.reliability import agreement, krippendorff_alpha
    from steelyard.study import Study
    from steelyard.version import __version__

# Loaded on first use, so that `import steelyard` and the command line start at once.
_HOMES = {
    "steelyard.errors": (
        "AnswerError",
        "ConfigError",
        "ConvergenceWarning",
        "DataError",
        "SteelyardError",
        "SteelyardWarning",
        "StoreError",
        "TaskError",
    ),
    "steelyard.formats": ("judgment_table", "read_gold", "read_items", "read_judgments", "read_table", "write_table"),
    "steelyard.models.counting": ("Counting",),
    "steelyard.models.easl": ("EASL",),
    "steelyard.models.fit": ("Fit",),
    "steelyard.models.majority": ("Majority",),
    "steelyard.models.mean": ("Mean",),
    "steelyard.observations": ("Choices", "Comparisons", "Index", "Labels", "Rankings", "Ratings"),
    "steelyard.records": ("Annotator", "Item", "Judgment", "Task"),
    "steelyard.reliability": ("agreement", "krippendorff_alpha"),
    "steelyard.study": ("Study",),
    "steelyard.version": ("__version__",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "EASL",
    "AnswerError",
    "Annotator",
    "Choices",
    "Comparisons",
    "ConfigError",
    "ConvergenceWarning",
    "Counting",
    "DataError",
    "Fit",
    "Index",
    "Item",
    "Judgment",
    "Labels",
    "Majority",
    "Mean",
    "Rankings",
    "Ratings",
    "SteelyardError",
    "SteelyardWarning",
    "StoreError",
    "Study",
    "Task",
    "TaskError",
    "__version__",
    "agreement",
    "judgment_table",
    "krippendorff_alpha",
    "read_gold",
    "read_items",
    "read_judgments",
    "read_table",
    "write_table",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'steelyard' has no attribute '{name}'")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
