"""steelyard judge: answer a study's tasks in the terminal."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli.options import StudyFolder, open_study
from steelyard.errors import AnswerError

if TYPE_CHECKING:
    from rich.console import Console

    from steelyard.records import Task
    from steelyard.study import Study


class _SkipRequestedError(Exception):
    pass


class _QuitRequestedError(Exception):
    pass


def judge(
    folder: StudyFolder,
    annotator: Annotated[str, typer.Option("--annotator", "-a", prompt="Your name", help="Name of the annotator.")],
    most: Annotated[
        int | None, typer.Option("--max-tasks", min=1, help="Stop after this many tasks.", show_default=False)
    ] = None,
) -> None:
    """Answer a study's tasks in the terminal.

    Each answer is saved at once.

    Example: steelyard judge words --annotator ann
    """
    from rich.console import Console
    from rich.text import Text

    from steelyard.records import Task

    console = Console(highlight=False)
    done = 0
    with open_study(folder) as study:
        console.print(Text(study.config.title, style="bold"), Text("(s: skip, q: quit)"))
        while most is None or done < most:
            offered = study.offer(annotator)
            if not isinstance(offered, Task):
                console.print(offered.reason)
                break
            try:
                _one_task(study, offered, console)
                done += 1
            except _SkipRequestedError:
                study.skip(offered, "skipped in the terminal")
            except _QuitRequestedError:
                study.release(offered)
                break
    console.print(f"{done} {'answer' if done == 1 else 'answers'} saved. Thank you.")


def _one_task(study: Study, task: Task, console: Console) -> None:
    from steelyard.cli.prompts import ask_for
    from steelyard.study.display import item_parts, part_beside

    stage = study.core.stage_of(task)
    protocol = stage.protocol
    began = monotonic()
    console.print()
    console.print(study.config.question_of(stage), style="bold", markup=False)
    page = study.config.page
    contexts = (part_beside(item, "context", page) for item in task.items)
    for context in dict.fromkeys(part.plain() for part in contexts if part is not None):
        console.print(f"  {context}", style="italic", markup=False)
    for number, item in enumerate(task.items, start=1):
        texts = [f"{part.label}: {part.plain()}" if part.label else part.plain() for part in item_parts(item, page)]
        console.print((f"  {number}  " if len(task.items) > 1 else "  ") + "\n     ".join(texts), markup=False)
    while True:
        try:
            study.tell(task, ask_for(protocol, task.items, _prompt), seconds=round(monotonic() - began, 1))
        except AnswerError as error:
            for problem in error.problems:
                console.print(f"  {problem.what} {problem.remedy}", style="yellow", markup=False)
        else:
            return


def _prompt(text: str) -> str:
    try:
        typed = str(typer.prompt(f"  {text}", default="", show_default=False)).strip()
    except typer.Abort:
        # The input has ended, or somebody pressed Ctrl-C.
        raise _QuitRequestedError from None
    if typed.lower() == "q":
        raise _QuitRequestedError
    if typed.lower() == "s":
        raise _SkipRequestedError
    return typed
