"""Small studies for the pages: their items' texts are 'word a', 'word b' and so on, so that a text names its id."""

from __future__ import annotations

from pathlib import Path
from typing import Any

LETTERS = "abcdefghijklmnopqrstuvwxyz"

PROTOCOLS: dict[str, dict[str, Any]] = {
    "direct": {"protocol": 'name = "direct"\nlabels = ["bad", "so-so", "good"]'},
    "direct-page": {"protocol": 'name = "direct"\nitems_per_page = 3'},
    "direct-criteria": {
        "protocol": 'name = "direct"\n[protocol.criteria.joy]\n[protocol.criteria.valence]\nscale = [-100, 100]'
    },
    "likert": {"protocol": 'name = "likert"\nlabels = ["bad", "poor", "fair", "good", "great"]'},
    "likert-page": {"protocol": 'name = "likert"\nscale = [-2, 2]\nlabels = ["no", "yes"]\nitems_per_page = 2'},
    "choice": {"protocol": 'name = "choice"\nlabels = ["red", "green", "blue"]'},
    "choice-criteria": {
        "protocol": 'name = "choice"\n[protocol.criteria.colour]\nlabels = ["red", "green"]\n'
        '[protocol.criteria.size]\nlabels = ["small", "large"]'
    },
    "pairwise": {"protocol": 'name = "pairwise"'},
    "pairwise-bad": {"protocol": 'name = "pairwise"\nboth_bad = true'},
    "unjudged": {
        "protocol": 'name = "direct"\nitems_per_page = 2\n'
        '[answers]\ncannot_judge = true\nreasons = ["too short", "too long"]\ncomments = true\n'
    },
    "pairwise-unjudged": {"protocol": 'name = "pairwise"\n[answers]\ncannot_judge = true\n'},
    "pairwise-criteria": {
        "protocol": 'name = "pairwise"\n[protocol.criteria.adequacy]\n[protocol.criteria.fluency]\nweight = 2'
    },
    "best-worst-criteria": {
        "protocol": 'name = "best_worst"\nsize = 3\n[protocol.criteria.adequacy]\n[protocol.criteria.fluency]'
    },
    "pairwise-graded": {"protocol": 'name = "pairwise"\nsteps = 7'},
    "best-worst": {"protocol": 'name = "best_worst"'},
    "scored-ranking": {"protocol": 'name = "scored_ranking"\nsize = 5\nlabels = ["low", "high"]'},
    "ranking": {"protocol": 'name = "ranking"\nsize = 4'},
    "error-spans": {"protocol": 'name = "error_spans"'},
    "error-spans-mqm": {"protocol": 'name = "error_spans"\nscore = "mqm"\ncategories = ["Accuracy", "Fluency"]'},
}


def write_study(
    folder: Path,
    protocol: str = 'name = "pairwise"',
    *,
    items: int = 12,
    people: str = "",
    page: str = "",
    design: str = "",
    quality: str = "",
    columns: dict[str, str] | None = None,
    files: dict[str, str] | None = None,
) -> Path:
    """Write a study's folder; `columns` are further columns that all items share."""
    folder.mkdir(parents=True)
    shared = columns or {}
    lines = [",".join(["id", "text", *shared])]
    lines += [",".join([letter, f"word {letter}", *shared.values()]) for letter in LETTERS[:items]]
    (folder / "items.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for name, text in (files or {}).items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "study.toml").write_text(
        f'name = "{folder.name}"\ntitle = "Words"\nquestion = "How good are they?"\nitems = "items.csv"\n'
        f"[annotators]\n{people}\n[page]\n{page}\n[design]\n{design}\n[quality]\n{quality}\n[protocol]\n{protocol}\n",
        encoding="utf-8",
    )
    return folder
