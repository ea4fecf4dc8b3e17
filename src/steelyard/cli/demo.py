"""steelyard demo: an example study with a simulated crowd, live on a dashboard or here in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steelyard.cli.options import Format, FormatOption

if TYPE_CHECKING:
    import threading

    from steelyard.simulate import SimulatedAnnotators
    from steelyard.web.studies import ServedStudy

_USUAL_PORT = 8000


def demo(
    folder: Annotated[
        Path | None, typer.Option("--keep", help="Keep the study in this folder.", metavar="DIR", show_default=False)
    ] = None,
    annotators: Annotated[int, typer.Option("--annotators", min=2, help="Number of simulated annotators.")] = 20,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Random seed.")] = 1,
    speed: Annotated[
        float, typer.Option("--speed", min=0.01, max=1000, help="Judgments per second, of all annotators together.")
    ] = 2.0,
    port: Annotated[
        int | None,
        typer.Option("--port", min=0, max=65535, help="Port; default: 8000, or any free port.", show_default=False),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option("--seconds", min=0, help="Stop after this many seconds; default: at Ctrl-C.", show_default=False),
    ] = None,
    terminal: Annotated[
        bool, typer.Option("--terminal", help="Do not serve pages: simulate all judgments and print the scores.")
    ] = False,
    show: Annotated[
        int, typer.Option("--show", min=0, help="Number of items to print, evenly spaced; 0 for all.")
    ] = 16,
    form: FormatOption = Format.table,
) -> None:
    """Watch simulated annotators rate 150 verbs, live in the browser.

    You can judge along.

    With --terminal (or another --format than table) the crowd judges at once and the scores are printed here.

    Example: steelyard demo --annotators 40
    """
    import tempfile

    from steelyard.errors import ConfigError

    if folder is not None and folder.exists() and any(folder.iterdir()):
        raise ConfigError(f"{folder} is already there and not empty.", "Choose another folder.")
    with tempfile.TemporaryDirectory(prefix="steelyard-demo-") as scratch:
        place = folder if folder is not None else Path(scratch) / "verbs"
        if terminal or form is not Format.table:
            _in_terminal(place, annotators, seed, show, form)
        else:
            _live(place, annotators, seed, speed, port, seconds)
    if folder is not None:
        typer.echo(f"The study is in {folder}: try  steelyard status {folder}", err=True)


def _set_up(folder: Path) -> dict[str, float]:
    """Put the example study into a folder; return the true scores of its simulated annotators."""
    import shutil

    from steelyard.examples import FOLDER
    from steelyard.formats import read_table

    source = FOLDER / "verbs"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("study.toml", "items.csv"):
        shutil.copyfile(source / name, folder / name)
    oracle = dict(read_table(source / "oracle.csv").iter_rows())
    return {item: float(score) / 100 for item, score in oracle.items()}


# Live


def _live(folder: Path, annotators: int, seed: int, speed: float, port: int | None, seconds: float | None) -> None:
    import os
    import secrets
    import threading

    import numpy as np
    import uvicorn

    from steelyard.cli.serve import SERVER_OPTIONS
    from steelyard.simulate import SimulatedAnnotators, make_crowd
    from steelyard.web.app import TOKEN, configure_logging, create_app
    from steelyard.web.studies import Studies

    truth = _set_up(folder)
    listener = _free_port(port)
    token = os.environ.get(TOKEN) or secrets.token_urlsafe(24)
    studies = Studies([folder])
    [served] = studies.all()
    rng = np.random.default_rng(seed)
    crowd = SimulatedAnnotators(make_crowd(annotators, rng), truth, rng)
    configure_logging()
    server = uvicorn.Server(uvicorn.Config(create_app(studies, token=token), **SERVER_OPTIONS))
    stop = threading.Event()
    _print_links(served, listener.getsockname()[1], token, annotators)
    working = threading.Thread(target=_work, args=(served, crowd, speed, rng, stop))
    ending = threading.Thread(target=_end, args=(server, seconds, stop))
    working.start()
    ending.start()
    try:
        server.run(sockets=[listener])
    except KeyboardInterrupt:
        pass
    finally:
        stop.set()
        working.join()
        ending.join()
        judgments = served.study.status().judgments
        studies.close()
    typer.echo(f"Stopped after {judgments:,} judgments.", err=True)


def _free_port(port: int | None) -> Any:
    from steelyard.cli.serve import listen
    from steelyard.errors import ConfigError

    if port is not None:
        return listen("127.0.0.1", port)
    try:
        return listen("127.0.0.1", _USUAL_PORT)
    except ConfigError:
        return listen("127.0.0.1", 0)


def _print_links(served: ServedStudy, port: int, token: str, annotators: int) -> None:
    from rich.console import Console
    from rich.text import Text

    base = f"http://127.0.0.1:{port}"
    config = served.study.config
    console = Console(highlight=False)
    console.print(Text(config.question, style="bold"), soft_wrap=True)
    console.print(f"{len(served.study.items)} verbs, {annotators} simulated annotators", soft_wrap=True)
    # A link with the token that leads straight to the dashboard.
    console.print(Text(f"  watch   {base}/manage/{served.slug}/?token={token}"), soft_wrap=True)
    console.print(Text(f"  judge   {base}{served.url}"), soft_wrap=True)
    console.print(Text("Open both and join them. Stop with Ctrl-C.", style="dim"), soft_wrap=True)


def _work(served: ServedStudy, crowd: SimulatedAnnotators, speed: float, rng: Any, stop: threading.Event) -> None:
    """Let the crowd judge at its pace until told to stop; when there is nothing to do, look again later."""
    from steelyard.errors import SteelyardError

    while not stop.is_set():
        name = crowd.names[int(rng.integers(len(crowd.names)))]
        try:
            # The manager may have the study opened anew at any time.
            study = served.study
            task = study.ask(name)
            if stop.wait(float(rng.exponential(1 / speed))):
                break
            if task is not None:
                protocol = study.core.stage_of(task).protocol
                study.tell(task, crowd.answer(name, protocol, task.item_ids), seconds=crowd.seconds(protocol))
        except SteelyardError:
            stop.wait(1)


def _end(server: Any, seconds: float | None, stop: threading.Event) -> None:
    if seconds is not None and not stop.wait(seconds):
        server.should_exit = True


# In the terminal


def _in_terminal(folder: Path, annotators: int, seed: int, show: int, form: Format) -> None:
    import numpy as np
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    from scipy import stats

    from steelyard.cli.output import err_console, print_frame, print_notes, scores_table
    from steelyard.simulate import answer_study_with_crowd, make_crowd
    from steelyard.study import Study

    truth = _set_up(folder)
    rng = np.random.default_rng(seed)
    with Study.open(folder) as study:
        goal = sum(stage.total for stage in study.status().stages)
        console = err_console()
        console.print(
            f"[bold]{study.config.question}[/bold]  {len(study.items)} verbs, {annotators} simulated annotators"
        )
        columns = (TextColumn("judging"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=console, transient=True) as progress:
            bar = progress.add_task("", total=goal)
            answer_study_with_crowd(
                study, make_crowd(annotators, rng), truth, rng, on_progress=lambda: progress.advance(bar)
            )
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
    scores = fitted.scores.filter(fitted.scores["score"].is_not_null())
    agreement = stats.spearmanr([truth[item] for item in scores["item"]], scores["score"].to_numpy()).statistic
    notes.append(f"the crowd's answers were simulated; Spearman's ρ with the values it went by: {agreement:.3f}")
    print_notes([*fitted.notes, *notes, "now a study of your own: steelyard new words"])


def _spread(count: int, wanted: int) -> list[int]:
    """Return so many places from the first to the last, evenly spread."""
    steps = min(wanted, count)
    return sorted({round(step * (count - 1) / max(1, steps - 1)) for step in range(steps)})
