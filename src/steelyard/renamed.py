"""Former names of designs, protocols, models and settings, so that an old study.toml is refused with the new name."""

from __future__ import annotations

RENAMED: dict[str, str] = {
    "designs.information_gain": "adaptive",
    "designs.redundant": "per_item",
    "design.aim": "objective",
    "design.first_looks": "initial_views",
    "design.patience_minutes": "hold_minutes",
    "population.noise_spread": "noise_cv",
    "population.spam": "careless",
    "population.spread": "item_sd",
}
"""New names by former path.

`designs.NAME`, `protocols.NAME` and `models.NAME` are registered names. Other paths are keys of study.toml:
`design.KEY`, `protocol.KEY` and `model.KEY` for settings, `TABLE.KEY` for keys of a table, `KEY` at the top level.
`population.KEY` are settings of a simulated population.
"""


def new_name(path: str) -> str | None:
    """Return the new name of a registered name or key, by its former path; None if it was never renamed."""
    return RENAMED.get(path)


def renamed_remedy(path: str) -> str | None:
    """Return what to write instead of a former name, for error messages; None if it was never renamed."""
    name = new_name(path)
    return None if name is None else f"It is now called '{name}'."
