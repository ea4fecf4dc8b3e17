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
    top: Annotated[int, typer.Option("--top", min=0, help="Print only so many items; 0 for all.")] = 20,
    form: FormatOption = Format.table,
) -> None:
    """Watch a simulated crowd place 150 verbs on a scale, and see the scores.

    Example: steelyard demo --top 10
    """
    import tempfile

    from steelyard.errors import ConfigError

    if folder is not None:
        if folder.exists() and any(folder.iterdir()):
            raise ConfigError(f"{folder} is already there and not empty.", "Choose another folder.")
        _run(folder, people, seed, top, form)
        typer.echo(f"The study is in {folder}: try  steelyard status {folder}", err=True)
        return
    with tempfile.TemporaryDirectory(prefix="steelyard-demo-") as scratch:
        _run(Path(scratch) / "verbs", people, seed, top, form)


def _run(folder: Path, people: int, seed: int, top: int, form: Format) -> None:
    import shutil

    import numpy as np
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    from scipy import stats

    from steelyard.cli.output import err_console, print_notes, print_scores
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
    print_scores(fitted.scores, title, form, top or None)
    found = fitted.scores.filter(fitted.scores["score"].is_not_null())
    agreement = stats.spearmanr([truth[item] for item in found["item"]], found["score"].to_numpy()).statistic
    print_notes(
        [*fitted.notes, f"the crowd's answers were simulated; Spearman's ρ with what it went by: {agreement:.3f}"]
    )
