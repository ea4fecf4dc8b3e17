"""steelyard demo: a simulated crowd works through an example study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steelyard.cli.options import Format, FormatOption


def demo(
    folder: Annotated[
        Path | None, typer.Option("--keep", help="Keep the study in this folder.", metavar="DIR", show_default=False)
    ] = None,
    people: Annotated[int, typer.Option("--people", min=2, help="How many simulated people.")] = 20,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Another crowd for another number.")] = 1,
    show: Annotated[int, typer.Option("--show", min=0, help="Print so many items, spread evenly; 0 for all.")] = 16,
    form: FormatOption = Format.table,
) -> None:
    """Watch a simulated crowd place 150 verbs on a scale, and see the scores.

    Example: steelyard demo --people 40
    """
    import tempfile

    from steelyard.errors import ConfigError

    if folder is not None:
        if folder.exists() and any(folder.iterdir()):
            raise ConfigError(f"{folder} is already there and not empty.", "Choose another folder.")
        _run(folder, people, seed, show, form)
        typer.echo(f"The study is in {folder}: try  steelyard status {folder}", err=True)
        return
    with tempfile.TemporaryDirectory(prefix="steelyard-demo-") as scratch:
        _run(Path(scratch) / "verbs", people, seed, show, form)


def _run(folder: Path, people: int, seed: int, show: int, form: Format) -> None:
    import shutil

    import numpy as np
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    from scipy import stats

    from steelyard.cli.output import err_console, print_frame, print_notes, scores_table
    from steelyard.examples import FOLDER
    from steelyard.formats import read_table
    from steelyard.simulate import make_crowd, work_through
    from steelyard.study import Study

    source = FOLDER / "verbs"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("study.toml", "items.csv"):
        shutil.copyfile(source / name, folder / name)
    oracle = dict(read_table(source / "oracle.csv").iter_rows())
    truth = {item: float(score) / 100 for item, score in oracle.items()}
    rng = np.random.default_rng(seed)
    with Study.open(folder) as study:
        goal = sum(stage.total for stage in study.status().stages)
        console = err_console()
        console.print(f"[bold]{study.config.question}[/bold]  {len(study.items)} verbs, {people} simulated people")
        columns = (TextColumn("judging"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=console, transient=True) as progress:
            bar = progress.add_task("", total=goal)
            work_through(study, make_crowd(people, rng), truth, rng, told=lambda: progress.advance(bar))
        fitted = study.fit()
        judgments = study.status().judgments
        title = f"{study.config.title}: {fitted.model} of {judgments} judgments ({judgments * 5:,} sliders)"
    everything = fitted.scores
    chosen = everything if show == 0 else everything[_spread(everything.height, show)]
    notes = []
    if form is Format.table:
        out = Console()
        out.print(scores_table(chosen, title, out.width, everything))
        if chosen.height < everything.height:
            notes.append(f"{chosen.height} of {everything.height} verbs, spread over the ranks (--show 0 for all)")
    else:
        print_frame(everything, form)
    found = fitted.scores.filter(fitted.scores["score"].is_not_null())
    agreement = stats.spearmanr([truth[item] for item in found["item"]], found["score"].to_numpy()).statistic
    notes.append(f"the crowd's answers were simulated; Spearman's ρ with the values it went by: {agreement:.3f}")
    print_notes([*fitted.notes, *notes, "now a study of your own: steelyard new words"])


def _spread(count: int, wanted: int) -> list[int]:
    """Return so many places from the first to the last, evenly spread."""
    steps = min(wanted, count)
    return sorted({round(step * (count - 1) / max(1, steps - 1)) for step in range(steps)})
