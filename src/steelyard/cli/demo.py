"""steelyard demo: an example study with a simulated crowd, live on a dashboard or here in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steelyard.cli.options import Format, FormatOption

if TYPE_CHECKING:
    import threading

    from steelyard.simulate import SimulatedAnnotators
    from steelyard.web.studies import ServedStudy, Studies

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
        bool, typer.Option("--terminal", help="Simulate all judgments and print the scores, without a server.")
    ] = False,
    show: Annotated[
        int, typer.Option("--show", min=0, help="Number of items to print, evenly spaced; 0 for all.")
    ] = 16,
    form: FormatOption = Format.table,
) -> None:
    """Watch simulated annotators answer two studies, live in the browser.

    They rate 150 verbs and compare four translation systems. You can also annotate.

    With --terminal (or --format json or csv) all judgments are simulated at once and the scores are printed.

    Example: steelyard demo --annotators 40
    """
    import tempfile

    from steelyard.errors import ConfigError

    if folder is not None and folder.exists() and any(folder.iterdir()):
        raise ConfigError(f"{folder} already exists and is not empty.", "Choose another folder.")
    with tempfile.TemporaryDirectory(prefix="steelyard-demo-") as scratch:
        place = folder if folder is not None else Path(scratch) / "verbs"
        if terminal or form is not Format.table:
            _in_terminal(place, annotators, seed, show, form)
        else:
            _live(place, Path(scratch), annotators, seed, speed, port, seconds)
    if folder is not None:
        typer.echo(f"The study is kept in {folder}. Next: steelyard status {folder}", err=True)


def _set_up(folder: Path, example: str = "verbs", title: str = "") -> dict[str, float]:
    """Put an example study into a folder; return the true scores of its simulated annotators."""
    import shutil

    import tomlkit

    from steelyard.examples import FOLDER
    from steelyard.formats import read_table

    source = FOLDER / example
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source / "items.csv", folder / "items.csv")
    config = tomlkit.parse((source / "study.toml").read_text(encoding="utf-8"))
    config["title"] = title or config["title"]
    (folder / "study.toml").write_text(tomlkit.dumps(config), encoding="utf-8")
    scores = dict(read_table(source / "oracle.csv").iter_rows())
    return {item: float(score) / 100 for item, score in scores.items()}


# Live


class _LiveCrowd:
    """Simulated annotators who answer the demo's studies until they are stopped.

    When a study is complete, the next one is created, so that there is always something to watch.
    """

    def __init__(self, workspace: Path, studies: Studies, annotators: int, seed: int, speed: float) -> None:
        import threading

        import numpy as np

        self.stop = threading.Event()
        self.judgments = 0
        self._workspace = workspace
        self._studies = studies
        self._annotators = annotators
        self._speed = speed
        self._rng = np.random.default_rng(seed)
        self._crowds: dict[str, SimulatedAnnotators] = {}
        self._created = 0

    def open_next(self, folder: Path | None = None) -> ServedStudy:
        """Create and serve the next study: verbs and translations in turn."""
        from steelyard.simulate import SimulatedAnnotators, make_crowd

        example = _EXAMPLES[self._created % len(_EXAMPLES)]
        number = self._created // len(_EXAMPLES) + 1
        self._created += 1
        name = example if number == 1 else f"{example}-{number}"
        title = "" if number == 1 else f"{_TITLES[example]} {number}"
        folder = folder or self._workspace / name
        truth = _set_up(folder, example, title)
        served = self._studies.add(folder)
        crowd = make_crowd(self._annotators, self._rng)
        self._crowds[served.slug] = SimulatedAnnotators(crowd, truth, self._rng)
        return served

    def answer(self, served: ServedStudy, count: int) -> None:
        """Answer some tasks at once, so that a study has results when it is first looked at."""
        for _ in range(count):
            self._answer_one(served, 0.0)

    def run(self) -> None:
        """Answer at the crowd's pace until stopped."""
        from steelyard.errors import SteelyardError

        while not self.stop.is_set():
            try:
                active = self._incomplete()
                if len(active) < len(_EXAMPLES):
                    active.append(self.open_next())
                served = active[int(self._rng.integers(len(active)))]
                self._answer_one(served, float(self._rng.exponential(1 / self._speed)))
            except SteelyardError:
                self.stop.wait(1)

    def _incomplete(self) -> list[ServedStudy]:
        """Return the studies with tasks to do; excluding an annotator may make a complete one incomplete again."""
        studies = [served for slug in self._crowds if (served := self._studies.get(slug)) is not None]
        return [served for served in studies if not _is_complete(served)]

    def _answer_one(self, served: ServedStudy, pause: float) -> None:
        """Let one annotator answer a task after a pause, if there is one for them."""
        crowd = self._crowds[served.slug]
        name = crowd.names[int(self._rng.integers(len(crowd.names)))]
        # The manager may have the study reopened at any time, so it is looked up again.
        study = served.study
        task = study.ask(name)
        if self.stop.wait(pause) or task is None:
            return
        protocol = study.core.stage_of(task).protocol
        study.tell(task, crowd.answer(name, protocol, task.item_ids), seconds=crowd.seconds(protocol))
        self.judgments += 1


_EXAMPLES = ("verbs", "translations")
_TITLES = {"verbs": "Verb frequency", "translations": "German–English translation"}
_FIRST_ANSWERS = {"verbs": 90, "translations": 120}
"""Judgments that the first studies have when the links are printed."""


def _is_complete(served: ServedStudy) -> bool:
    return all(stage.done >= stage.total for stage in served.study.status().stages)


def _live(
    folder: Path, scratch: Path, annotators: int, seed: int, speed: float, port: int | None, seconds: float | None
) -> None:
    import os
    import secrets
    import threading

    import uvicorn

    from steelyard.cli.serve import SERVER_OPTIONS
    from steelyard.web.app import TOKEN, configure_logging, create_app
    from steelyard.web.studies import Studies

    listener = _free_port(port)
    token = os.environ.get(TOKEN) or secrets.token_urlsafe(24)
    studies = Studies()
    crowd = _LiveCrowd(scratch, studies, annotators, seed, speed)
    served = [crowd.open_next(folder), crowd.open_next()]
    for study, example in zip(served, _EXAMPLES, strict=True):
        crowd.answer(study, _FIRST_ANSWERS[example])
    configure_logging()
    server = uvicorn.Server(uvicorn.Config(create_app(studies, token=token), **SERVER_OPTIONS))
    _print_links(served, listener.getsockname()[1], token, annotators)
    working = threading.Thread(target=crowd.run)
    ending = threading.Thread(target=_end, args=(server, seconds, crowd.stop))
    working.start()
    ending.start()
    try:
        server.run(sockets=[listener])
    except KeyboardInterrupt:
        pass
    finally:
        crowd.stop.set()
        working.join()
        ending.join()
        studies.close()
    typer.echo(f"Stopped after {crowd.judgments:,} judgments.", err=True)


def _free_port(port: int | None) -> Any:
    from steelyard.cli.serve import listen
    from steelyard.errors import ConfigError

    if port is not None:
        return listen("127.0.0.1", port)
    try:
        return listen("127.0.0.1", _USUAL_PORT)
    except ConfigError:
        return listen("127.0.0.1", 0)


def _print_links(studies: list[ServedStudy], port: int, token: str, annotators: int) -> None:
    from rich.console import Console
    from rich.text import Text

    base = f"http://127.0.0.1:{port}"
    console = Console(highlight=False)

    def line(text: str, style: str = "") -> None:
        console.print(Text(text, style=style), soft_wrap=True)

    line(f"{annotators} simulated annotators are answering two studies", "bold")
    line("")
    for served in studies:
        line(f"{served.study.config.title}: {served.study.config.question}")
        # A link with the token that leads straight to the dashboard.
        line(f"  dashboard  {base}{served.manage_url}?token={token}")
        line(f"  annotate   {base}{served.url}")
    line("")
    line("Things to try", "bold")
    line("  Open a dashboard and watch the intervals shrink as judgments arrive.")
    line("  Open an annotation page and answer a few tasks yourself.")
    line("  Exclude an annotator, create the report, download the scores.")
    line("")
    line("Then create your own study in the browser:  steelyard serve")
    line("When a study is complete, the next one starts. Stop with Ctrl-C.", "dim")


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
        columns = (TextColumn("simulating"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=console, transient=True) as progress:
            bar = progress.add_task("", total=goal)
            answer_study_with_crowd(
                study, make_crowd(annotators, rng), truth, rng, on_progress=lambda: progress.advance(bar)
            )
        fitted = study.fit()
        judgments = study.status().judgments
        title = f"{study.config.title}: {fitted.model}, {judgments} judgments of 5 items each"
    everything = fitted.scores
    chosen = everything if show == 0 else everything[_spread(everything.height, show)]
    notes = []
    if form is Format.table:
        out = Console()
        out.print(scores_table(chosen, title, out.width, everything))
        if chosen.height < everything.height:
            notes.append(f"{chosen.height} of {everything.height} verbs, evenly spaced by rank (--show 0 for all)")
    else:
        print_frame(everything, form)
    scores = fitted.scores.filter(fitted.scores["score"].is_not_null())
    agreement = stats.spearmanr([truth[item] for item in scores["item"]], scores["score"].to_numpy()).statistic
    notes.append(f"the judgments are simulated; Spearman correlation with the true scores: {agreement:.3f}")
    print_notes([*fitted.notes, *notes, "create your own study: steelyard new words"])


def _spread(count: int, wanted: int) -> list[int]:
    """Return `wanted` positions from the first to the last, evenly spaced."""
    steps = min(wanted, count)
    return sorted({round(step * (count - 1) / max(1, steps - 1)) for step in range(steps)})
