"""steelyard status: the progress of a study."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.cli.options import Format, FormatOption, StudyFolder, open_study

if TYPE_CHECKING:
    from rich.console import Console

_MOST_ITEMS = 10
"""Items set aside that are listed."""


def _counted(n: int, name: str) -> str:
    return f"{n:,} {name.removesuffix('s') if n == 1 and name.endswith('s') else name}"


def status(folder: StudyFolder, form: FormatOption = Format.table) -> None:
    """Print a study's progress.

    Example: steelyard status words
    """
    from dataclasses import asdict

    import polars as pl
    from rich.console import Console
    from rich.text import Text

    from steelyard.cli.output import plain_table, print_frame

    with open_study(folder) as study:
        current, basis, set_aside = study.status(), study.judges.basis(), study.quality.items_set_aside()
    if form is not Format.table:
        stages = [asdict(stage) for stage in current.stages]
        whole = {key: value for key, value in asdict(current).items() if key != "stages"}
        whole["deviations"] = "; ".join(current.deviations)
        whole["set_aside_reasons"] = "; ".join(f"{item}: {reason}" for item, reason in set_aside.items())
        frame = pl.DataFrame([{**whole, **{f"stage_{key}": value for key, value in s.items()}} for s in stages])
        print_frame(frame, form)
        return
    console = Console(highlight=False)
    console.print(Text(current.title, style="bold"))
    counted = {
        "items": current.items,
        "annotators": current.annotators,
        "judgments": current.judgments,
        "imported": current.imported,
        "late": current.late,
        "revised": current.revisions,
        "skipped": current.skips,
        "flagged": current.flags,
        "abandoned": current.expired,
        "set aside": current.set_aside,
        "models": current.models,
        "judgments by models": current.model_judgments,
    }
    always = {"items", "annotators", "judgments"}
    console.print(" · ".join(_counted(n, name) for name, n in counted.items() if n or name in always))
    _print_set_aside(console, set_aside)
    if current.model_judgments and not current.counts_models:
        words = basis.sentence if basis.priors else "Judgments by models do not count in the scores"
        console.print(f"{words.removesuffix('.')}; see: steelyard judges report")
    if current.frozen:
        console.print(
            f"Preregistered: SHA-256 {current.frozen[:12]}…, {_counted(len(current.deviations), 'deviations')}."
        )
        for deviation in current.deviations:
            console.print(f"  • {deviation}")
    if current.state != "open":
        console.print(f"The study is {current.state}.")
    rows = [
        {
            "stage": stage.name,
            "design": stage.design,
            "done": f"{stage.done:,} of {stage.total:,}",
            "": f"{100 * stage.done // max(1, stage.total)} %",
            "leased": stage.leased,
        }
        for stage in current.stages
    ]
    console.print(plain_table(pl.DataFrame(rows), ""))


def _print_set_aside(console: Console, set_aside: dict[str, str]) -> None:
    from rich.text import Text

    if set_aside:
        console.print(f"{_counted(len(set_aside), 'items')} set aside, so that nobody is asked about them any more:")
    for item, reason in list(set_aside.items())[:_MOST_ITEMS]:
        console.print(Text(f"  • {item}: {reason}"))
    if len(set_aside) > _MOST_ITEMS:
        console.print(f"  • and {len(set_aside) - _MOST_ITEMS:,} more; see: steelyard export --what scores")
