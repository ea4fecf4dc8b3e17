"""Configurations and files with extreme numbers or nesting are refused with a normal error."""

from __future__ import annotations

import math
from contextlib import suppress

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from steelyard import Study, registry
from steelyard.cli.app import app
from steelyard.errors import ConfigError, SteelyardError
from steelyard.formats import read_items, read_judgments
from steelyard.quality.pay import MAX_AMOUNT, Bonus, standing_numbers
from tests.web.conftest import TOKEN

MANAGER = {"Authorization": f"Bearer {TOKEN}"}
HEAD = 'title = "t"\nquestion = "q"\nitems = "items.csv"\n'
PROTOCOL = '[protocol]\nname = "direct"\n'

TEXTS = {
    "nested arrays": HEAD + "x = " + "[" * 5_000 + "]" * 5_000,
    "nested tables": HEAD + "x = " + "{a = " * 5_000 + "1" + "}" * 5_000,
    "dotted keys": HEAD + ".".join("a" * 3_000) + " = 1",
    "long table name": HEAD + "[" + ".".join("a" * 3_000) + "]",
    "decimal digits": HEAD + "seed = " + "9" * 100_000,
    "hexadecimal digits": HEAD + "seed = 0x" + "f" * 100_000,
    "not a number": HEAD + PROTOCOL + "[pay]\nper_task = nan",
    "infinite": HEAD + PROTOCOL + "[pay]\nper_task = inf",
    "infinite cost": HEAD + PROTOCOL + "[pay]\nper_task = 1e308",
    "wide scale": HEAD + PROTOCOL + "scale = [-1e308, 1e308]",
    "long scale": HEAD + PROTOCOL + f"scale = [0, {'9' * 400}]",
    "many judgments": HEAD + PROTOCOL + "[design]\njudgments = 1000000000000",
    "endless model": HEAD + PROTOCOL + '[model]\nname = "mean"\nresamples = 1000000000000',
    "huge page": HEAD + PROTOCOL + "items_per_page = 9223372036854775807",
    "long text": "#" * 2_000_000,
    "long value": HEAD + PROTOCOL + "[page]\nprefetch = '" + "x" * 100_000 + "'",
}


@pytest.fixture
def folder(make_study):
    return make_study()


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_hostile_study_toml_is_an_error_that_names_the_file(folder, text):
    (folder / "study.toml").write_text(text)
    result = CliRunner().invoke(app, ["check", str(folder)])
    assert isinstance(result.exception, ConfigError), result.exception
    assert "study.toml" in str(result.exception)
    assert len(str(result.exception)) < 2_000


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_hostile_study_toml_is_refused_in_the_browser(folder, serve_study, text):
    server = serve_study(folder)
    draft = {"text": text, "items": {"name": "items.csv", "text": "id,text\na,b\nc,d\n"}}
    answers = [
        httpx.post(f"{server.url}/api/v1/manage/studies", json=draft, headers=MANAGER, timeout=60),
        httpx.put(f"{server.api}/manage/config", json={"text": text}, headers=MANAGER, timeout=60),
    ]
    assert [answer.status_code for answer in answers] == [422, 422], [answer.text[:300] for answer in answers]
    checked = httpx.post(f"{server.url}/api/v1/manage/check", json=draft, headers=MANAGER, timeout=60)
    assert checked.status_code == 200
    assert checked.json()["problems"]


@pytest.mark.parametrize("value", ["[" * 5_000, "9" * 10_000, "0x" + "f" * 10_000, "inf", "[[[[", "{a = " * 5_000])
def test_a_hostile_value_of_the_form_is_refused_at_its_field(folder, serve_study, value):
    server = serve_study(folder)
    protocol = {"name": "direct", "criteria": {"$toml": value}}
    draft = {"values": {"title": "t", "question": "q", "protocol": protocol}}
    checked = httpx.post(f"{server.url}/api/v1/manage/check", json=draft, headers=MANAGER, timeout=60)
    assert checked.status_code == 200
    assert "protocol.criteria" in {problem["field"] for problem in checked.json()["problems"]}


def test_a_preview_before_there_are_items_stays_small(folder, serve_study):
    server = serve_study(folder)
    draft = {"values": {"protocol": {"name": "direct", "items_per_page": 10**11}}}
    checked = httpx.post(f"{server.url}/api/v1/manage/check", json=draft, headers=MANAGER, timeout=60)
    assert checked.status_code == 200
    assert len(checked.json()["preview"]["items"]) <= 50


FORMULAS = [
    "9" * 400,
    "1e400",
    "1e308",
    "10000000000",
    "1e9 * 1e9 * tasks",
    " * ".join(["1e9"] * 40),
    "tasks / 1e-300",
    "1e9 / 1e-300",
    "1e9 * 1e9 * 1e9 / (1e9 * 1e9 * 1e9) - " + " * ".join(["1e9"] * 40),
    "tasks ** 100",
    "2 ** 10000000000",
]


@pytest.mark.parametrize("formula", FORMULAS)
def test_check_refuses_a_bonus_that_overflows_and_says_why(make_study, formula):
    folder = make_study(extra=f'[pay]\nbonus = "{formula}"')
    result = CliRunner().invoke(app, ["check", str(folder)])
    assert isinstance(result.exception, ConfigError), result.exception
    assert "the bonus" in str(result.exception)
    assert "pay.bonus" in str(result.exception)


@pytest.mark.parametrize(
    ("formula", "amount"),
    [
        ("0.01 * tasks", 0.10),
        ("0.5 if accuracy >= 0.9 and tasks >= 5 else 0", 0.50),
        ("tasks / hours", 5.0),
        ("min(5, 1000 * tasks)", 5.0),
        # Only far beyond what anybody works does this one leave the range; nothing is paid by it then.
        ("tasks / (2 - hours) if hours == 2 else 1 / (tasks - 10)", 0.0),
    ],
)
def test_usable_formulas_stay_usable(formula, amount):
    assert Bonus.parse(formula).amount(standing_numbers(10, 2, 9, 10, 0.8)) == amount


@given(
    st.text("0123456789.e+-*/() ", max_size=40).map(lambda text: f"tasks * ({text or 1})"),
    st.floats(0, 1e300),
    st.floats(0, 1e300),
)
def test_a_bonus_that_is_accepted_always_comes_to_a_finite_amount(formula, tasks, hours):
    try:
        bonus = Bonus.parse(formula)
    except ConfigError:
        return
    amount = bonus.amount(standing_numbers(tasks, hours, 0, 0, 0.5))
    assert math.isfinite(amount)
    assert 0 <= amount <= MAX_AMOUNT


HUGE = ["9223372036854775807", "1000000000000", "1e308", "-1e308", "9" * 400, "nan", "inf"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["protocols", "designs", "models"])
@pytest.mark.parametrize("number", HUGE)
def test_every_setting_survives_an_extreme_number(make_study, kind, number):
    """Accepted or refused, but never a crash or an endless computation."""
    from dataclasses import fields

    folder = make_study()
    for name in registry.names(kind):
        for field in fields(registry.find(kind, name)):
            table = f'name = "{name}"\n{field.name} = {number}\n'
            text = HEAD + (f"[protocol]\n{table}" if kind == "protocols" else f"{PROTOCOL}[{kind[:-1]}]\n{table}")
            (folder / "study.toml").write_text(text)
            with (
                suppress(ConfigError),
                Study.open(folder, database=f"sqlite:///{folder}/{kind}-{name}-{field.name}.db") as study,
            ):
                study.ask("ann")


@pytest.mark.parametrize("cell", ["9" * 5_000, "1e999", "nan", "-inf", "0x" + "f" * 5_000])
def test_extreme_numbers_in_files_are_refused_with_their_line_or_read_as_text(tmp_path, cell):
    ratings = tmp_path / "ratings.csv"
    ratings.write_text(f"annotator,item,value\nann,a,1\nann,b,{cell}\n")
    with pytest.raises(SteelyardError, match="line 3"):
        read_judgments(ratings)
    lines = tmp_path / "ratings.jsonl"
    lines.write_text('{"annotator":"ann","item":"a","value":1}\n{"annotator":"ann","item":"b","value":' + cell + "}\n")
    with pytest.raises(SteelyardError, match=r"ratings\.jsonl"):
        read_judgments(lines)
    items = tmp_path / "items.csv"
    items.write_text(f"id,text\n{cell},x\nb,y\n")
    assert read_items(items)[0].id == cell
    deep = tmp_path / "items.jsonl"
    deep.write_text('{"id":"a","text":' + "[" * 10_000 + "]" * 10_000 + "}\n")
    with pytest.raises(SteelyardError, match=r"items\.jsonl"):
        read_items(deep)
