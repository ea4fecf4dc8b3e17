"""Active time as it counts: what a browser sends, bounded by what the server measured."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard import Study
from steelyard.analysis.history import history_of
from steelyard.errors import TaskError
from steelyard.report.builder import build_report
from steelyard.report.html import html_page
from steelyard.study import events as ev
from steelyard.study.leases import MAX_ACTIVE_SECONDS, active_seconds, seconds_limit
from steelyard.web.calculator import close as close_board
from steelyard.web.calculator import compute
from steelyard.web.calculator_process import Source

SECOND = 1_000_000
MINUTE = 60 * SECOND


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1_800_000_000 * SECOND

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def study(make_study, clock):
    extra = "[annotators]\nlease_minutes = 10\n[pay]\nper_hour = 12.0\n"
    with Study.open(make_study(extra=extra), clock=clock) as study:
        yield study


def answer(study, clock, microseconds, seconds, **options):
    task = study.ask("ann")
    clock.now += microseconds
    return study.tell(task, {task.item_ids[0]: 5}, seconds=seconds, limit_seconds=True, **options)


@pytest.mark.parametrize(
    ("elapsed", "sent", "counted"),
    [
        (20 * SECOND, 12.0, 12.0),
        (20 * SECOND, 20.0, 20.0),
        (20 * SECOND, 1e308, 20.0),
        (20 * SECOND, 86_400.0, 20.0),
        (0, 5.0, 0.0),
        # A late answer counts up to the lease, not for the days that the page lay open.
        (3 * 24 * 60 * MINUTE, 3 * 86_400.0, 600.0),
    ],
)
def test_time_counts_up_to_the_time_since_the_lease_and_stays_raw_in_the_log(study, clock, elapsed, sent, counted):
    judgment = answer(study, clock, elapsed, sent)
    assert judgment.seconds == counted
    assert study.judgments()["seconds"].to_list() == [counted]
    assert history_of(study).judgments["seconds"].to_list() == [counted]
    assert [event.data.seconds for event in study.events(("judgment",))] == [sent]
    assert study.annotators.pay()["hours"].sum() == pytest.approx(counted / 3600)
    revised = study.revise(judgment.judgment_id, {judgment.items[0]: 6})
    assert revised.seconds == counted


def test_renewing_a_lease_makes_more_time_possible(study, clock):
    task = study.ask("ann")
    clock.now += 9 * MINUTE
    study.renew(task)
    clock.now += 9 * MINUTE
    assert study.tell(task, {task.item_ids[0]: 5}, seconds=17 * 60, limit_seconds=True).seconds == 17 * 60


def test_a_clock_that_was_set_back_costs_nobody_their_time(study, clock):
    assert answer(study, clock, -60 * MINUTE, 30.0).seconds == 30.0


@pytest.mark.parametrize("seconds", [math.nan, math.inf, -math.inf, -1, -1e308, 10**400, True, "12"])
def test_what_is_no_time_is_refused(study, clock, seconds):
    with pytest.raises(TaskError, match="time in seconds"):
        answer(study, clock, SECOND, seconds)


@given(st.integers(0, 2**60), st.integers(0, 2**60), st.integers(0, 2**60), st.floats(0, allow_infinity=False))
def test_counted_time_is_never_more_than_was_sent_nor_than_can_have_passed(leased_at, lease, elapsed, sent):
    limit = seconds_limit(leased_at, leased_at + lease, leased_at + elapsed)
    counted = active_seconds(ev.Judged(stage=0, items=("a",), answer={}, seconds=sent, seconds_limit=limit))
    assert counted is not None
    assert 0 <= counted <= min(sent, lease / SECOND, elapsed / SECOND, MAX_ACTIVE_SECONDS)


@pytest.mark.slow
def test_even_a_log_full_of_impossible_times_gives_finite_costs(make_study):
    folder = make_study(design="judgments = 2", extra="[pay]\nper_hour = 12.0\nbonus = '0.1 * hours'\n")
    with Study.open(folder) as study:
        for name in ("ann", "bob"):
            while (task := study.ask(name)) is not None:
                study.tell(task, {task.item_ids[0]: len(name) + int(task.item_ids[0][1:])}, seconds=1e308)
        source = Source(str(folder), None)
        board = compute(source, "progress")
        close_board(source)
        costs = board.tables["costs"].select("hours", "cost", "lower", "upper")
        assert all(math.isfinite(value) for row in costs.iter_rows() for value in row)
        # Twelve answers of a day each, at 12.00 and a bonus of 0.10 an hour.
        assert costs["cost"][0] == pytest.approx(12 * 24 * 12.1)
        assert "inf" not in html_page(build_report(study)).partition('id="costs"')[2].partition("</section>")[0]
