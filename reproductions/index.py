"""Every table and figure of the four papers on which Steelyard is based, and how far each is reproduced."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from reproductions.base import Shown, Status
from reproductions.catalogue import experiments

PAPERS: dict[str, tuple[int, int]] = {
    "Sakaguchi & Van Durme, 2018": (1, 11),
    "Pighin et al., 2012": (3, 3),
    "Snow et al., 2008": (4, 7),
    "Kiritchenko & Mohammad, 2017": (3, 2),
}
"""Numbers of tables and figures of each paper."""

_PICTURE = "a picture without numbers"
ILLUSTRATIONS: dict[str, tuple[Shown, ...]] = {
    "Sakaguchi & Van Durme, 2018": (
        Shown("Figure 1", "impossible", f"{_PICTURE}: ways of asking; Steelyard's are in guides/judging.md"),
        Shown("Figure 4", "impossible", f"{_PICTURE}: how EASL works; ours is in concepts/easl.md"),
        Shown("Figure 5", "impossible", f"{_PICTURE}: the paper's page; ours is in guides/judging.md"),
    ),
}
"""Figures that show nothing to compute."""

_ORDER: tuple[Status, ...] = ("reproduced", "approximated", "impossible")


class Row(NamedTuple):
    """A table or figure: its status, the reasons for it, and the experiments."""

    paper: str
    what: str
    status: Status
    reasons: tuple[str, ...]
    experiments: tuple[str, ...]


def rows() -> Iterator[Row]:
    """List every table and figure of the papers, in their order; one without an experiment or a reason is an error."""
    for paper, (n_tables, n_figures) in PAPERS.items():
        names = [f"Table {n + 1}" for n in range(n_tables)] + [f"Figure {n + 1}" for n in range(n_figures)]
        for what in names:
            yield _row(paper, what)


def _row(paper: str, what: str) -> Row:
    entries = [
        (cls.name, shown)
        for cls in experiments().values()
        if cls.paper == paper
        for shown in cls.shows
        if shown.what == what
    ]
    entries += [("", shown) for shown in ILLUSTRATIONS.get(paper, ()) if shown.what == what]
    if not entries:
        raise LookupError(f"{paper}: {what} has no experiment. Add it to `shows` of one, or to ILLUSTRATIONS.")
    status = min((shown.status for _, shown in entries), key=_ORDER.index)
    reasons = tuple(dict.fromkeys(shown.why for _, shown in entries if shown.why))
    return Row(paper, what, status, reasons, tuple(name for name, _ in entries if name))
