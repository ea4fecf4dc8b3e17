"""What people earn, worked out by hand."""

from __future__ import annotations

import contextlib

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.errors import ConfigError
from steelyard.quality.pay import NAMES, Bonus, Rates, pay_table, standing_numbers
from steelyard.study.config import parse_config

NUMBERS = standing_numbers(tasks=40, hours=0.5, checks_right=9, checks_asked=10, threshold=0.7)


@pytest.mark.parametrize(
    ("formula", "amount"),
    [
        ("0.5", 0.5),
        ("0.01 * tasks", 0.4),
        ("0.5 if accuracy >= 0.9 else 0", 0.5),
        ("0.5 if accuracy > 0.9 else 0.1", 0.1),
        ("0.02 * checks_right + 0.1 * passed", 0.28),
        ("min(0.3, 0.01 * tasks)", 0.3),
        ("max(tasks, 50) * 0.01", 0.5),
        ("-1 + tasks / 80", 0.0),
        ("(checks_asked - checks_right) * hours", 0.5),
        ("1 / 3", 0.33),
        ("0.005", 0.01),
        ("tasks / (hours - hours)", 0.0),
        ("0.5 if accuracy >= 0.9 and tasks >= 40 else 0", 0.5),
        ("0.5 if accuracy >= 0.9 and tasks > 40 else 0", 0.0),
        ("0.5 if tasks > 40 or passed else 0", 0.5),
        ("0.5 if tasks > 40 or not passed else 0.1", 0.1),
        ("0.2 * (tasks and hours)", 0.2),
        ("+0.2 - -0.1", 0.3),
        ("0.3 if tasks > 0 or tasks / (hours - hours) else 0", 0.3),
        ("0.5 if not tasks > 40 else 0", 0.5),
    ],
)
def test_a_bonus_is_plain_arithmetic_in_whole_hundredths(formula, amount):
    assert Bonus.parse(formula).amount(NUMBERS) == pytest.approx(amount)


@pytest.mark.parametrize(
    ("formula", "said"),
    [
        ("__import__('os').system('id')", "only min and max"),
        ("tasks.real", "'tasks.real' is not allowed in the bonus"),
        ("[1 for x in range(9)]", "'[1 for x in range(9)]' is not allowed"),
        ("'a' * 9", "not a number"),
        ("True", "not a number"),
        ("9 ** 9 ** 9", "'**' is not allowed"),
        ("lambda: 1", "'lambda: 1' is not allowed"),
        ("tasks % 3", "'%' is not allowed"),
        ("tasks in 3", "'in' is not allowed"),
        ("(tasks := 3)", "is not allowed"),
        ("taks * 2", "Did you mean 'tasks'?"),
        ("min + 1", "not a name known"),
        ("0 < tasks < 5", "chained (write A < B and B < C)"),
        ("1 +", "not a formula"),
        ("", "not a formula"),
        ("(" * 200 + "1" + ")" * 200 + "+1" * 200, "too long"),
        ("+".join("1" for _ in range(100)), "nested too deeply"),
        ("1e308 * 10 * tasks", None),
    ],
)
def test_whatever_else_is_refused_and_says_what_may_stand_there(formula, said):
    with pytest.raises(ConfigError) as refusal:
        Bonus.parse(formula).amount(NUMBERS)
    if said:
        assert said in str(refusal.value)
    assert "Use numbers" in str(refusal.value)


@pytest.mark.slow
@given(st.text(max_size=80))
def test_no_text_does_anything_but_yield_an_amount_or_a_refusal(text):
    with contextlib.suppress(ConfigError):
        assert Bonus.parse(text).amount(NUMBERS) >= 0


def test_who_was_asked_no_check_has_passed_none():
    nothing = standing_numbers(tasks=1, hours=0.1, checks_right=0, checks_asked=0, threshold=0.7)
    assert Bonus.parse("5 if accuracy >= 0.9 else passed").amount(nothing) == 0


def test_a_bonus_on_checks_needs_checks():
    assert Bonus.parse("0.1 * tasks + min(hours, 1)").names == {"tasks", "hours"}
    with pytest.raises(ConfigError, match="depends on accuracy, but the study has no checks"):
        parse_config(
            {
                "title": "T",
                "question": "Q?",
                "items": "items.csv",
                "protocol": {"name": "direct"},
                "pay": {"bonus": "0.5 if accuracy >= 0.9 else 0"},
            }
        )


def test_every_name_has_a_number():
    assert set(NUMBERS) == set(NAMES)


def test_people_are_paid_for_tasks_hours_and_coming_and_the_excluded_get_no_bonus():
    judgments = pl.DataFrame(
        {
            "annotator": ["ann", "ann", "bob", "cleo", "ann"],
            "stage": ["s"] * 5,
            "seconds": [1800.0, None, 5400.0, 3600.0, 99.0],
            "imported": [False, False, False, False, True],
        }
    )
    table = pay_table(
        judgments,
        {"ann": (3, 4), "bob": (1, 4)},
        {"cleo": "guessed"},
        Rates(per_task=1, per_visit=2, per_hour=4, fee=0.5),
        Bonus.parse("checks_right + 10 * passed"),
        threshold=0.7,
    )
    # Of three times the mean is one hour, which stands in for ann's second answer.
    assert table.select("annotator", "tasks", "hours", "pay", "bonus", "total").rows() == [
        ("ann", 2, 1.5, 2 + 2 + 6, 13.0, 23.0),
        ("bob", 1, 1.5, 1 + 2 + 6, 1.0, 10.0),
        ("cleo", 1, 1.0, 1 + 2 + 4, 0.0, 7.0),
    ]


def test_the_fee_is_on_everything():
    assert Rates(1, 2, 4, 0.5).cost(tasks=10, hours=3, visits=2, bonuses=5) == (10 + 4 + 12 + 5) * 1.5
