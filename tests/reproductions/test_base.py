"""What every experiment promises, and how claims are written."""

from __future__ import annotations

from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import ClassVar, Self

import altair as alt
import polars as pl
import pytest

from reproductions import Claim, Experiment, Outcome, find, names
from reproductions.catalogue import ALL, experiments, select
from reproductions.charts import bars, curves
from reproductions.formatting import agrees, difference, format_number, interval, numbered_reasons, published
from reproductions.running import claims_table, reproduce, reproduce_all
from reproductions.tournament.effort import TournamentEffort
from steelyard.errors import ConfigError, DataError
from steelyard.report.charts import svg

SOURCE = Path(__file__).resolve().parents[2] / "reproductions"


@dataclass(frozen=True, slots=True)
class Halving(Experiment):
    """Halve a number, in as many steps as are wanted."""

    name: ClassVar[str] = "made_up.halving"
    paper: ClassVar[str] = "Nobody, 1900"
    title: ClassVar[str] = "Table 1: a half"
    data: ClassVar[tuple[str, ...]] = ("made_up/numbers.csv",)

    steps: int = 4

    def small(self) -> Self:
        return type(self)(steps=1)

    def run(self, data: Path, progress) -> Outcome:
        for done in range(1, self.steps + 1):
            progress(done, self.steps)
        table = pl.DataFrame({"step": [1, 2], "half": [0.5, 0.25], "who": ["a", "a"]})
        claims = (Claim("a half", 0.5, 0.4, 0.6, 0.5), Claim("a quarter", 0.25, published=0.3, why="rounding"))
        return Outcome(claims, table, lambda: curves(table, "step", "half", "who", title="It halves"), ("made up",))


@pytest.fixture
def numbers(tmp_path: Path) -> Path:
    (tmp_path / "made_up").mkdir()
    (tmp_path / "made_up" / "numbers.csv").write_text("value\n1\n")
    return tmp_path


@pytest.mark.parametrize("name", names())
def test_an_experiment_is_named_after_its_module_and_frozen(name):
    cls = find(name)
    assert cls.__module__ == f"reproductions.{name}"
    assert is_dataclass(cls)
    assert cls.__dataclass_params__.frozen
    assert cls.paper
    assert cls.title
    assert cls.run.__doc__
    assert type(cls().small()) is cls


def test_every_module_with_an_experiment_is_in_the_catalogue():
    defining = {
        ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        for path in SOURCE.glob("*/*.py")
        if "(Experiment):" in path.read_text(encoding="utf-8")
    }
    assert defining == set(names())


def test_a_name_stands_for_one_for_a_papers_or_for_all():
    assert [cls.name for cls in select("word_similarity")] == ["cheap_fast.word_similarity"]
    assert {cls.name.split(".")[0] for cls in select("tournament")} == {"tournament"}
    assert len(select("tournament")) > 1
    assert select(ALL) == tuple(experiments().values())


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(ConfigError, match=r"Did you mean 'tournament\.reconstruction'"):
        find("tournament.reconstructon")


def test_missing_data_are_named_with_the_place_to_put_them(tmp_path):
    with pytest.raises(DataError) as refused:
        reproduce(Halving(), tmp_path)
    message = str(refused.value)
    assert "made_up/numbers.csv" in message
    assert str(tmp_path / "made_up" / "numbers.csv") in message
    assert "--data" in message


def test_nothing_is_run_when_any_experiment_lacks_its_data(tmp_path):
    started: list[str] = []

    def progress_of(experiment):
        started.append(experiment.name)
        return lambda done, total: None

    with pytest.raises(DataError):
        list(reproduce_all([Halving(), Halving()], tmp_path, progress_of=progress_of))
    assert started == []


def test_progress_ends_at_its_total(numbers):
    steps: list[tuple[int, int]] = []
    reproduce(Halving(steps=3), numbers, lambda done, total: steps.append((done, total)), draw=False)
    assert steps == [(1, 3), (2, 3), (3, 3)]


def test_a_reproduction_writes_its_figure_twice_and_its_table(numbers, tmp_path):
    outcome = reproduce(Halving(), numbers)
    files = {path.name: path for path in outcome.write(tmp_path / "out")}
    assert set(files) == {f"made_up.halving.{kind}" for kind in ("svg", "png", "csv")}
    assert "It halves" in files["made_up.halving.svg"].read_text(encoding="utf-8")
    assert files["made_up.halving.png"].read_bytes().startswith(b"\x89PNG")
    assert pl.read_csv(files["made_up.halving.csv"])["half"].to_list() == [0.5, 0.25]


def test_claims_come_as_a_table_with_their_differences(numbers):
    table = claims_table([reproduce(Halving(), numbers, draw=False)])
    assert table["difference"].to_list() == pytest.approx([0.0, -0.05])
    assert table["why"].to_list() == ["", "rounding"]


@pytest.mark.slow
def test_two_jobs_say_the_same_as_one_in_the_same_order(tmp_path):
    experiments = [TournamentEffort(sources=count) for count in (40, 20)]
    one, two = (claims_table(list(reproduce_all(experiments, tmp_path, jobs=jobs, draw=False))) for jobs in (1, 2))
    assert one.equals(two)
    assert one["lower"].n_unique() == 3


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (6, "6"), (0.93, "0.930"), (-0.5, "−0.500"), (85.36, "85.36"), (1180.44, "1,180.4"), (1e-5, "0")],
)
def test_numbers_are_written_with_digits_that_mean_something(value, text):
    assert format_number(value) == text


def test_signs_are_written_where_wanted():
    assert format_number(0.25, signed=True) == "+0.250"
    assert format_number(-2, signed=True) == "−2"


@pytest.mark.parametrize(
    ("ours", "theirs", "same"),
    [
        (0.8969, 0.897, True),
        (0.9361, 0.94, True),
        (0.93, 0.94, False),
        (6, 6, True),
        (4.3, 4.0, False),
        (14.99, 15, True),
        (0.0, 0, True),
        (0.009, 0, False),
        (0.76351, 0.763507, True),
        (0.765, 0.763507, False),
    ],
)
def test_ours_agrees_if_it_rounds_to_what_is_printed(ours, theirs, same):
    assert agrees(Claim("x", ours, published=theirs)) is same
    assert (difference(Claim("x", ours, published=theirs)) == "=") is same


def test_what_was_never_published_agrees_with_nothing():
    claim = Claim("x", 1.0)
    assert not agrees(claim)
    assert (published(claim), difference(claim), interval(claim)) == ("–", "–", "–")


def test_published_numbers_keep_their_digits():
    assert published(Claim("x", 1, published=0.94)) == "0.94"
    assert published(Claim("x", 1, published=4.0)) == "4"
    assert published(Claim("x", 1, published=-0.67)) == "−0.67"


def test_equal_reasons_share_a_number():
    claims = [Claim("a", 1, why="x"), Claim("b", 1), Claim("c", 1, why="y"), Claim("d", 1, why="x")]
    assert numbered_reasons(claims) == {"x": 1, "y": 2}


@pytest.mark.parametrize("panels", [None, 2, 5])
def test_curves_show_every_line_and_panel(panels):
    rows = [
        (x, line, f"panel {panel}", 0.1 * x + panel, 0.05 * x, 1.0 * x, 0.5 if x == 3 else None)
        for panel in range(panels or 1)
        for line in ("first", "second")
        for x in (1, 2, 3)
    ]
    table = pl.DataFrame(
        rows, schema=("n", "line", "panel", "value", "lower", "upper", "published"), orient="row", strict=False
    )
    chart = curves(table, "n", "value", "line", title="Rising", facet="panel" if panels else None)
    image = svg(chart)
    assert {"first", "second", "Rising"} <= set(image.replace(">", "<").split("<"))
    assert sum(f"panel {number}" in image for number in range(5)) == (panels or 0)


def test_bars_name_every_row():
    table = pl.DataFrame({"what": ["one", "two"], "value": [1.0, 2.0], "lower": [0.5, 1.5], "upper": [1.5, 2.5]})
    chart = bars(table, "what", "value", title="Two")
    assert isinstance(chart, alt.LayerChart)
    image = svg(chart)
    assert ">one<" in image
    assert ">two<" in image
