"""steelyard judges: language models and functions as annotators."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steelyard.cli.options import ColumnsOption, Format, FormatOption, StudyFolder, open_study, pairs

if TYPE_CHECKING:
    from steelyard.judges import Progress, Question, QuestionPlan, QuestionsByGain, RunResult
    from steelyard.judges.running import Estimate, Judge
    from steelyard.study import Study

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Let language models judge a study, and compare them with people.\n\n"
    "Example: steelyard judges run words --model llama3.1 --base-url http://127.0.0.1:11434/v1 --dry-run",
)

CACHE_FILE = "judges-cache.jsonl"
_KEY_VARIABLE = "OPENAI_API_KEY"

Source = Annotated[
    Path, typer.Argument(help="Folder of a study, or a file of items.", metavar="SOURCE", show_default=False)
]


@app.command("run")
def run(
    source: Source,
    model: Annotated[
        list[str] | None, typer.Option("--model", help="Name of a model at the endpoint. Repeatable.")
    ] = None,
    function: Annotated[
        str | None, typer.Option("--function", help="Python function instead of a model: module:name.")
    ] = None,
    base_url: Annotated[
        str, typer.Option("--base-url", help="Address of the OpenAI-compatible API.")
    ] = "https://api.openai.com/v1",
    key_variable: Annotated[
        str, typer.Option("--key-from", help="Environment variable with the API key.")
    ] = _KEY_VARIABLE,
    name: Annotated[
        str | None, typer.Option("--name", help="Annotator name of the judge; default: the model's name.")
    ] = None,
    prompt: Annotated[
        Path | None, typer.Option("--prompt", help="Prompt template with {items}, {form} and optionally {question}.")
    ] = None,
    temperature: Annotated[float, typer.Option(min=0, max=2, help="Sampling temperature.")] = 0.0,
    repeats: Annotated[int, typer.Option(min=1, help="Number of calls per question.")] = 1,
    per_item: Annotated[int, typer.Option(min=0, help="Comparisons per item, for comparative protocols.")] = 4,
    both_orders: Annotated[
        bool, typer.Option("--both-orders/--one-order", help="Ask comparisons in both orders.")
    ] = True,
    limit: Annotated[int | None, typer.Option(min=1, help="Judge only this many items, drawn at random.")] = None,
    by_gain: Annotated[
        bool, typer.Option("--by-gain", help="Ask only where a model's gain per cost exceeds a person's.")
    ] = False,
    concurrency: Annotated[int, typer.Option(min=1, max=200, help="Maximum number of parallel requests.")] = 4,
    requests_per_minute: Annotated[float, typer.Option(min=0, help="Rate limit; 0 for no limit.")] = 0.0,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds to wait for an answer.")] = 60.0,
    max_tokens: Annotated[int, typer.Option(min=1, help="Maximum length of an answer, in tokens.")] = 400,
    input_price: Annotated[float, typer.Option(min=0, help="Price per million input tokens.")] = 0.0,
    output_price: Annotated[float, typer.Option(min=0, help="Price per million output tokens.")] = 0.0,
    max_cost: Annotated[float | None, typer.Option(min=0, help="Stop the run at this cost.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Estimate calls, tokens and cost; send nothing.")] = False,
    question: Annotated[str | None, typer.Option(help="Question, if SOURCE is a file of items.")] = None,
    protocol: Annotated[str, typer.Option(help="Protocol, if SOURCE is a file of items.")] = "direct",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File for the judgments, if SOURCE is a file of items.")
    ] = None,
) -> None:
    """Let one or more models judge a study, or a file of items.

    Models' judgments are stored separately from people's; they are used in the scores only if study.toml enables it.
    Questions that were answered before are not asked again. With --by-gain, the design (adaptive, with model_cost)
    chooses the items; the run ends when a person's gain per cost is higher.

    Example: steelyard judges run words --model gpt-4o-mini --input-price 0.15 --output-price 0.6 --dry-run
    """
    from steelyard.errors import ConfigError
    from steelyard.judges import QuestionPlan

    if (model is None) == (function is None):
        raise ConfigError("a run needs either models or a function.", "Give --model or --function.")
    if max_cost is not None and not input_price and not output_price:
        raise ConfigError("--max-cost needs prices.", "Give --input-price and --output-price.")
    options = {
        "base_url": base_url,
        "key": os.environ.get(key_variable),
        "temperature": temperature,
        "max_tokens": max_tokens,
        "timeout": timeout,
        "concurrency": concurrency,
        "requests_per_minute": requests_per_minute,
        "prices": (input_price, output_price),
        "prompt": prompt,
    }
    plan = QuestionPlan(repeats, per_item, both_orders, limit)
    with _opened(source, question, protocol, output) as (study, cache):
        failed = False
        for judge in _judges(study, model or [], function, options, cache):
            questions = _questions(study, plan, by_gain, dry_run)
            failed |= _run_one(study, judge, name, questions, concurrency, max_cost, dry_run)
        if output is not None and not dry_run:
            _write_judgments(study, output)
    if failed:
        raise typer.Exit(1)


@contextmanager
def _opened(source: Path, question: str | None, protocol: str, output: Path | None) -> Iterator[tuple[Study, Path]]:
    """Open the study, or a study of its own for a file of items, with the file of cached replies."""
    from steelyard.errors import ConfigError
    from steelyard.study import Study

    if source.is_dir():
        with open_study(source) as study:
            yield study, source / CACHE_FILE
        return
    if question is None or output is None:
        raise ConfigError(
            f"{source} is not the folder of a study.",
            "For a file of items, give --question and --output, and --protocol if it is not direct.",
        )
    import tempfile

    import tomlkit

    with tempfile.TemporaryDirectory() as folder:
        config = {"title": source.stem, "question": question, "items": str(source.resolve())}
        text = tomlkit.dumps({**config, "protocol": {"name": protocol}})
        (Path(folder) / "study.toml").write_text(text, encoding="utf-8")
        with Study.open(folder) as study:
            yield study, output.with_name(CACHE_FILE)


def _judges(
    study: Study, models: list[str], function: str | None, options: dict[str, Any], cache: Path
) -> Iterator[Judge]:
    from steelyard.judges import Endpoint, FunctionJudge, ModelJudge, Prices, Prompt, ReplyCache, Settings
    from steelyard.judges.prompts import TEMPLATE

    if function is not None:
        yield FunctionJudge(_function(function))
        return
    file = options["prompt"]
    template = TEMPLATE if file is None else file.read_text(encoding="utf-8")
    instructions = study.annotators.texts().instructions or ""
    prompt = Prompt(study.config.question, instructions, template, page=study.config.page)
    names = ("temperature", "max_tokens", "timeout", "concurrency", "requests_per_minute")
    settings = Settings(**{name: options[name] for name in names})
    replies = ReplyCache(cache)
    for model in models:
        endpoint = Endpoint(options["base_url"], model, options["key"], settings)
        yield ModelJudge(endpoint, prompt, prices=Prices(*options["prices"]), cache=replies)


def _function(target: str) -> Any:
    import sys
    from importlib import import_module

    from steelyard.errors import ConfigError

    module, _, attribute = target.partition(":")
    # As with `python -m`, modules of the current folder can be used.
    sys.path.insert(0, os.getcwd())
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"{target} cannot be imported: {error}.", "Give module:function.") from None


def _questions(study: Study, plan: QuestionPlan, by_gain: bool, dry_run: bool) -> Sequence[Question] | QuestionsByGain:
    from steelyard.judges import QuestionsByGain, plan_questions

    if not by_gain:
        return plan_questions(study, plan)
    questions = QuestionsByGain(study, plan.limit)
    # Without answers in between, these are the items where the model is worth more now.
    return list(questions) if dry_run else questions


def _run_one(
    study: Study,
    judge: Judge,
    name: str | None,
    questions: Sequence[Question] | QuestionsByGain,
    concurrency: int,
    max_cost: float | None,
    dry_run: bool,
) -> bool:
    """Run, or estimate, one judge; return whether questions are left without an answer."""
    from steelyard.judges import ModelJudge, QuestionsByGain, estimate, run_judge

    chosen = name or judge.model
    if dry_run and not isinstance(questions, QuestionsByGain):
        if isinstance(judge, ModelJudge):
            _print_estimate(chosen, estimate(study, judge, chosen, questions), study)
        else:
            typer.echo(f"{chosen}: {len(questions):,} questions")
        return False
    total = len(study.items) if isinstance(questions, QuestionsByGain) else len(questions)
    with _progress_bar(chosen, total) as on_progress:
        result = run_judge(
            study,
            judge,
            questions,
            name=chosen,
            concurrency=concurrency,
            max_cost=max_cost,
            on_progress=on_progress,
        )
    _print_result(chosen, result)
    return bool(result.failures or result.stopped)


@contextmanager
def _progress_bar(name: str, total: int) -> Iterator[Any]:
    import sys

    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, TextColumn("{task.fields[cost]}"), console=Console(stderr=True)) as bar:
        task = bar.add_task(name, total=total, cost="", visible=sys.stderr.isatty())

        def update(progress: Progress) -> None:
            cost = f"{progress.meter.cost:.4g} spent" if progress.meter.cost else ""  # type: ignore[attr-defined]
            bar.update(task, completed=progress.done, total=progress.total, cost=cost)  # type: ignore[attr-defined]

        yield update


def _print_estimate(name: str, expected: Estimate, study: Study) -> None:
    typer.echo(
        f"{name}: {expected.questions:,} questions, {expected.already:,} of them already answered; about "
        f"{expected.calls:,} calls, {expected.input_tokens:,} tokens sent and {expected.output_tokens:,} received"
        + (f", at a cost of about {expected.cost:.4g}" if expected.cost else " (no prices given)")
        + ". Nothing was sent."
    )


def _print_result(name: str, result: RunResult) -> None:
    from collections import Counter

    from steelyard.cli.output import print_done, print_notes

    meter = result.meter
    parts = [f"{name}: {result.answered:,} answers recorded"]
    if result.already:
        parts.append(f"{result.already:,} already recorded")
    if meter.calls or meter.cached:
        parts.append(f"{meter.calls:,} calls, {meter.cached:,} from the cache")
    if meter.input_tokens:
        parts.append(f"{meter.input_tokens:,} tokens sent, {meter.output_tokens:,} received")
    if meter.cost:
        parts.append(f"cost {meter.cost:.4g}")
    if result.answered or result.already or result.ending:
        print_done("; ".join(parts) + ".")
    else:
        typer.echo(f"✗ {name}: no question was answered.", err=True)
    notes = [result.ending] if result.ending else []
    notes += [f"{count:,} retries after: {kind}" for kind, count in result.retries.items()]
    kinds = Counter(failure.kind for failure in result.failures)
    for kind, count in kinds.most_common():
        first = next(failure for failure in result.failures if failure.kind == kind)
        where = ", ".join(first.question.items)
        notes.append(f"{count:,} questions have no answer ({kind}); the first, about {where}: {first.reason}")
    if result.stopped:
        notes.append(f"the run ended early: {result.stopped.rstrip('.')}. Run the same command again to continue")
    elif result.failures:
        notes.append("run the same command again to retry them")
    print_notes(notes)


def _write_judgments(study: Study, output: Path) -> None:
    from steelyard.formats import judgment_table, write_table

    by_criterion = study.observations(study.config.stages[0].protocol.kinds[0], annotator_kind="model")
    table = judgment_table(by_criterion[""] if list(by_criterion) == [""] else by_criterion)
    write_table(table, output)
    typer.echo(f"{table.height:,} rows written to {output}", err=True)


@app.command("import")
def import_scores(
    folder: StudyFolder,
    file: Annotated[
        Path, typer.Argument(help="File of models' judgments.", metavar="FILE", exists=True, dir_okay=False)
    ],
    name: Annotated[str | None, typer.Option("--name", help="Name of the model, if it is not in the file.")] = None,
    columns: ColumnsOption = None,
    stage: Annotated[
        str | None, typer.Option("--stage", help="Stage of the judgments, if several are possible.")
    ] = None,
) -> None:
    """Import judgments of models from a file.

    Example: steelyard judges import words gpt.csv --name gpt-4o
    """
    from steelyard.cli.output import print_done, print_notes
    from steelyard.study.importing import import_file

    with open_study(folder) as study:
        result = import_file(
            study, file, stage=stage, columns=pairs(columns, "--columns"), model=name or "", models=True
        )
    print_notes(result.notes)
    print_done(
        f"{result.added:,} judgments by models imported from {file.name}; {result.already:,} were already imported."
    )


@app.command("declare")
def declare(
    folder: StudyFolder,
    name: Annotated[str, typer.Argument(help="Name of the annotator.", metavar="NAME", show_default=False)],
) -> None:
    """Declare that an annotator of a study is a model, not a person.

    Example: steelyard judges declare words gpt-4o
    """
    from steelyard.cli.output import print_done

    with open_study(folder) as study:
        study.judges.declare(name)
    print_done(f"{name} is now declared a model. Its judgments no longer count as a person's.")


@app.command("list")
def list_models(folder: StudyFolder, form: FormatOption = Format.table) -> None:
    """List the models of a study, with the versions of their prompts.

    Example: steelyard judges list words
    """
    import polars as pl
    from rich.console import Console

    from steelyard.cli.output import plain_table, print_frame

    with open_study(folder) as study:
        judgments = list(study.judgments().iter_rows(named=True))
        rows = [
            {
                "annotator": name,
                "model": version.model,
                "source": version.source,
                "version": version.version,
                "judgments": sum(j["annotator"] == name and j["version"] == version.version for j in judgments),
                "cost": sum(
                    j["cost"] or 0.0 for j in judgments if j["annotator"] == name and j["version"] == version.version
                ),
                "prompt": version.prompt,
            }
            for name, versions in study.judges.registrations().items()
            for version in versions
        ]
    schema = {"annotator": pl.String, "model": pl.String, "source": pl.String, "version": pl.String}
    frame = pl.DataFrame(rows, schema={**schema, "judgments": pl.Int64, "cost": pl.Float64, "prompt": pl.String})
    if form is not Format.table:
        print_frame(frame, form)
    elif frame.is_empty():
        typer.echo("No model has judged this study. Start with: steelyard judges run")
    else:
        Console().print(plain_table(frame.drop("prompt"), ""))


@app.command("systems")
def systems(
    folder: StudyFolder,
    judge: Annotated[str, typer.Option("--judge", help="A model of the study, or a numeric column of the items.")],
    criterion: Annotated[str, typer.Option(help="Criterion, if there are several.")] = "",
    label: Annotated[
        str | None, typer.Option(help="Label whose proportion is estimated, if items are labelled.")
    ] = None,
    folds: Annotated[
        int, typer.Option(min=0, help="Folds for cross-fitting the judge's weight; 0 for the plug-in estimate.")
    ] = 0,
    expected: Annotated[
        bool, typer.Option("--expected", help="Print the expected saving by the judge instead of the scores.")
    ] = False,
    form: FormatOption = Format.table,
) -> None:
    """Score systems by people's judgments and a judge's scores.

    People judge some items, and the judge scores all items (prediction-powered means). The intervals are valid however
    poor the judge is, provided that people judged a random sample of the items.

    Example: steelyard judges systems mt --judge gpt-4o
    """
    from rich.console import Console

    from steelyard.analysis.powered_systems import expected_savings, powered_systems
    from steelyard.cli.output import plain_table, print_frame, print_notes

    with open_study(folder) as study:
        if expected:
            table = expected_savings(study, judge, criterion=criterion, label=label)
            notes: tuple[str, ...] = ()
        else:
            result = powered_systems(study, judge, criterion=criterion, label=label, folds=folds)
            table, notes = result.table, result.notes
    if form is not Format.table:
        print_frame(table, form)
        return
    if not expected:
        table = table.drop("people_lower", "people_upper")
    Console().print(plain_table(table, f"with {judge}"))
    print_notes(notes)


@app.command("report")
def report(
    folder: StudyFolder,
    epsilon: Annotated[
        float,
        typer.Option(min=0, max=1, help="ε of the alternative annotator test: .1 crowd, .15 skilled, .2 experts."),
    ] = 0.1,
    by: Annotated[str | None, typer.Option("--by", help="Column of the items for subgroups; default: system.")] = None,
    form: FormatOption = Format.table,
) -> None:
    """Compare each model with people: agreement, bias, consistency, differences.

    Example: steelyard judges report words
    """
    from rich.console import Console

    from steelyard.analysis.analysis import Analysis
    from steelyard.analysis.judge_report import judge_reports, judge_table
    from steelyard.cli.output import plain_table, print_frame

    with open_study(folder) as study:
        reports = judge_reports(Analysis.of(study), epsilon=epsilon, by=by)
    if form is not Format.table:
        print_frame(judge_table(reports), form)
        return
    if not reports:
        typer.echo("No item has been judged by both a model and people. Start with: steelyard judges run")
        return
    console = Console(highlight=False)
    for one in reports:
        name = " ".join(part for part in (one.judge, one.criterion) if part)
        console.print(name, style="bold", markup=False)
        for line in _report_lines(one):
            console.print(f"  {line}", markup=False, soft_wrap=True)
        for title, frame in (
            ("Calibration: people's mean by the judge's score", one.calibration),
            ("Largest disagreements", one.disagreements),
            ("Subgroups", one.subgroups),
        ):
            if frame.height:
                console.print(plain_table(frame, title))


def _report_lines(one: Any) -> Iterator[str]:
    def number(statistic: Any, form: str = ".2f") -> str:
        if statistic is None or statistic.value is None:
            return "–"
        ends = "" if statistic.lower is None else f" ({statistic.lower:{form}} to {statistic.upper:{form}})"
        return f"{statistic.value:{form}}{ends}"

    yield f"agreement with a person: {number(one.agreement)}; of two people: {number(one.people_agreement)}"
    yield f"  ({one.measure})"
    if one.alternative is not None:
        verdict = "may replace a person" if one.alternative.passed else "may not replace a person"
        yield (
            f"alternative annotator test: wins against {100 * one.alternative.winning_rate:.0f} % of the annotators "
            f"(ε = {one.alternative.epsilon:g}), at least as good as an annotator with probability "
            f"{one.alternative.advantage:.2f}: {verdict}"
        )
    if one.first_share is not None:
        yield (
            f"position: proportion of wins of the first item {number(one.first_share)}; "
            f"answers that change with the order: {number(one.flips)}"
        )
    if one.self_consistency is not None:
        yield f"self-consistency: {one.self_consistency:.2f} in {one.repeats:,} repeated calls"
    if one.length_bias is not None:
        yield f"length bias: {number(one.length_bias)} ({one.length_bias.note})"
    yield from one.notes
