"""Write docs/reproductions.md by running every experiment: python -m scripts.reproductions [--data DIR] [--jobs N]."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from steelyard.experiments.catalogue import experiments
from steelyard.experiments.outcome import Reproduction, reproduce_all
from steelyard.experiments.wording import (
    agrees,
    covers,
    difference,
    interval,
    numbered_reasons,
    published,
    written,
)

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reproductions.md"
FIGURES = ROOT / "docs" / "images" / "reproductions"
MOST_SVG = 200_000
"""Characters beyond which a figure with many marks is stored as a picture."""

INTRODUCTION = """# Published results, made again

<!-- Made by scripts/reproductions.py from the code and the recorded judgments. -->

Each table below comes from running Steelyard's own models, designs and reliability measures. `steelyard reproduce`
lists the experiments; `steelyard reproduce NAME --data DIR --out FOLDER` runs one and writes its figure and table. All
are seeded. The recorded judgments are research data and not part of the project; small versions of all experiments are
among its tests.

How to read the tables: **ours** with its 95 % interval; **published** as printed in the paper; **difference** is ours
less published, `=` where ours rounds to the printed number, and *within* where the published number lies in our
interval. A number in brackets points to the reason for a difference, below the table.
"""


def page(found: Sequence[Reproduction]) -> str:
    """Return the page."""
    lines = [INTRODUCTION, *_summary(found)]
    for paper in dict.fromkeys(one.experiment.paper for one in found):
        lines += [f"## {paper}", ""]
        for one in found:
            if one.experiment.paper == paper:
                lines += _section(one)
    return "\n".join(lines).rstrip() + "\n"


def _summary(found: Sequence[Reproduction]) -> list[str]:
    lines = [
        "| paper | experiments | published numbers | as printed | else within our interval |",
        "|---|---:|---:|---:|---:|",
    ]
    for paper in dict.fromkeys(one.experiment.paper for one in found):
        of_paper = [one for one in found if one.experiment.paper == paper]
        claims = [claim for one in of_paper for claim in one.claims if claim.published is not None]
        same = sum(map(agrees, claims))
        within = sum(covers(claim) and not agrees(claim) for claim in claims)
        lines.append(f"| {paper} | {len(of_paper)} | {len(claims)} | {same} | {within} |")
    return [*lines, ""]


def _section(one: Reproduction) -> list[str]:
    experiment = one.experiment
    reasons = numbered_reasons(one.claims)
    lines = [f"### {experiment.title}", "", f"`steelyard reproduce {experiment.name}`", ""]
    picture = _picture(one)
    if picture is not None:
        lines += [f"![{experiment.title}](images/reproductions/{picture[0]})", ""]
    lines += ["| | ours | 95 % interval | published | difference | |", "|---|---:|---:|---:|---:|---|"]
    for claim in one.claims:
        what = f"{claim.what} ({claim.unit})" if claim.unit else claim.what
        within = "within" if covers(claim) and not agrees(claim) else ""
        mark = " ".join(part for part in (within, f"({reasons[claim.why]})" if claim.why else "") if part)
        cells = (what, written(claim.ours), interval(claim), published(claim), difference(claim), mark)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    lines.append("")
    lines += [f"({number}) {_sentence(why)}  " for why, number in reasons.items()]
    lines += [""] if reasons else []
    lines += [f"- {_sentence(note)}" for note in one.notes]
    return [*lines, ""] if one.notes else lines


def _picture(one: Reproduction) -> tuple[str, bytes] | None:
    """Return the name and content of a figure: as SVG, or as PNG where that would be much larger."""
    if one.svg is None or one.png is None:
        return None
    if len(one.svg) > MOST_SVG:
        return f"{one.experiment.name}.png", one.png
    return f"{one.experiment.name}.svg", one.svg.encode()


def _sentence(text: str) -> str:
    text = text[0].upper() + text[1:]
    return text if text.endswith((".", "…")) else f"{text}."


def main() -> None:
    """Run everything, and write the page and its figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    begin = time.perf_counter()
    found = []
    for one in reproduce_all([cls() for cls in experiments().values()], given.data, jobs=given.jobs):
        print(f"{one.seconds:7.1f} s  {one.experiment.name}", flush=True)
        found.append(one)
        picture = _picture(one)
        if picture is not None:
            FIGURES.mkdir(parents=True, exist_ok=True)
            (FIGURES / picture[0]).write_bytes(picture[1])
    kept = {picture[0] for one in found if (picture := _picture(one)) is not None}
    for path in FIGURES.iterdir():
        if path.name not in kept:
            path.unlink()
    PAGE.write_text(page(found), encoding="utf-8")
    print(f"{time.perf_counter() - begin:7.1f} s  in all; {PAGE.relative_to(ROOT)} is written")


if __name__ == "__main__":
    main()
