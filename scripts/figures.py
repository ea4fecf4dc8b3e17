"""Draw the figures of docs/concepts from the project's own code: python -m scripts.figures [NAME…]."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import altair as alt
import numpy as np
import polars as pl
from scipy import stats

from steelyard.models.easl import EASL, BetaState

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "images"
BLUE, WARM, GREY = "#2c5e8a", "#c0632b", "#8a959b"

FIGURES: dict[str, Callable[[], alt.Chart | alt.LayerChart]] = {}


def figure(name: str) -> Callable[[Callable[[], alt.Chart | alt.LayerChart]], Callable[[], alt.Chart | alt.LayerChart]]:
    """Register a figure under the name of its file."""

    def register(make: Callable[[], alt.Chart | alt.LayerChart]) -> Callable[[], alt.Chart | alt.LayerChart]:
        FIGURES[name] = make
        return make

    return register


@figure("easl")
def easl() -> alt.Chart:
    """A Beta that narrows around the ratings it is given."""
    rng = np.random.default_rng(3)
    ratings = np.clip(rng.normal(0.7, 0.12, 20), 0, 1)
    model, grid = EASL(), np.linspace(0, 1, 201)
    rows = []
    for count in (0, 2, 5, 20):
        state: BetaState = model.update(model.start(1), np.zeros(count, np.int32), ratings[:count])
        density = stats.beta.pdf(grid, state.alpha[0], state.beta[0])
        rows += [{"value": x, "density": y, "ratings": f"{count}"} for x, y in zip(grid, density, strict=True)]
    return (
        alt.Chart(pl.DataFrame(rows), title="Each rating narrows the Beta of its item")
        .mark_line()
        .encode(
            x=alt.X("value:Q", title="value on [0, 1]"),
            y=alt.Y("density:Q"),
            color=alt.Color("ratings:N", title="ratings so far", scale=alt.Scale(range=[GREY, WARM, "#6d8fb0", BLUE])),
        )
    )


def main() -> None:
    """Draw the figures named, or all."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[1:] or FIGURES:
        chart = FIGURES[name]().properties(width=460, height=260).configure_view(stroke=None)
        chart.configure_axis(grid=False).save(FOLDER / f"{name}.svg")
        print(f"docs/images/{name}.svg")


if __name__ == "__main__":
    main()
