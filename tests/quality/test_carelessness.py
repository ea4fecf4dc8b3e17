"""Fast guesses, copied answers, answers like a model's: found where they are, and honest people are not accused."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from steelyard.analysis.carelessness import careless_signals
from steelyard.analysis.history import history_of
from steelyard.quality.copying import copied_answers, model_like
from steelyard.quality.response_times import fast_guesses, time_mixture
from steelyard.records import Effort

PEOPLE, ITEMS = 12, 60


def residual_answers(seed: int, *, copied: float = 0.0, opinion: float = 0.0, like: float = 0.0) -> pl.DataFrame:
    """Return residuals of people on items: w1 copies from w0, w2 follows a model, and two halves share opinions."""
    rng = np.random.default_rng(seed)
    table = rng.normal(0, 1, (PEOPLE, ITEMS))
    table += opinion * np.where(np.arange(PEOPLE) % 2, 1, -1)[:, None] * rng.normal(0, 1, ITEMS)
    model = rng.normal(0, 1, ITEMS)
    table[1] = np.where(rng.random(ITEMS) < copied, table[0], table[1])
    table[2] = np.where(rng.random(ITEMS) < like, model, table[2])
    rows = [(f"w{j}", f"i{i}", float(table[j, i])) for j in range(PEOPLE) for i in range(ITEMS)]
    rows += [("model", f"i{i}", float(model[i])) for i in range(ITEMS)]
    frame = pl.DataFrame(rows, schema=["annotator", "item", "loo"], orient="row")
    return frame.with_columns(
        pl.lit("").alias("stage"), pl.lit("").alias("criterion"), pl.lit(None, pl.String).alias("other")
    )


def people(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.filter(pl.col("annotator") != "model")


def test_a_copied_pair_is_named():
    pairs = copied_answers(people(residual_answers(0, copied=0.95)))
    assert pairs.select("annotator", "other").rows() == [("w0", "w1")]
    assert copied_answers(people(residual_answers(0, copied=1.0)))["correlation"][0] == pytest.approx(1.0)


@pytest.mark.parametrize("opinion", [0.0, 0.5, 2.0])
def test_honest_people_are_not_accused_of_copying_even_if_they_share_opinions(opinion):
    accused = [copied_answers(people(residual_answers(seed, opinion=opinion))).height for seed in range(20)]
    assert sum(accused) == 0


def test_a_person_who_answers_like_a_model_is_named_and_only_they():
    frame = residual_answers(1, like=0.8)
    deviations = {"gpt": frame.filter(pl.col("annotator") == "model")}
    table = model_like(people(frame), deviations)
    assert table.select("annotator", "model").rows() == [("w2", "gpt")]
    honest = [residual_answers(seed) for seed in range(20)]
    accused = [model_like(people(f), {"gpt": f.filter(pl.col("annotator") == "model")}).height for f in honest]
    assert sum(accused) <= 2  # 20 studies at 5 % each: 3 or more have a probability of 8 %


def timed(seed: int, guesses: float = 0.0, quick: float = 0.0) -> tuple[list[str], np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    code = np.repeat(np.arange(PEOPLE), ITEMS)
    speed = rng.normal(2.3, 0.35, PEOPLE)
    speed[1] -= quick
    is_guess = (code == 0) & (rng.random(len(code)) < guesses)
    log = np.where(is_guess, rng.normal(-0.3, 0.3, len(code)), rng.normal(speed[code], 0.5))
    square = rng.normal(0, 1, len(code)) ** 2 * np.where(is_guess, 4.0, 1.0)
    return [f"w{j:02}" for j in code], np.exp(log), square, is_guess


def test_the_mixture_tells_guesses_from_engaged_answers():
    names, seconds, square, is_guess = timed(0, guesses=0.4)
    code = np.array([int(name[1:]) for name in names])
    probability = time_mixture(code, seconds).probability
    assert ((probability > 0.5) == is_guess).mean() > 0.99
    row = fast_guesses(names, seconds, square).row(0, named=True)
    assert row["guessing"]
    assert row["fast_guesses_lower"] < is_guess[code == 0].mean() < row["fast_guesses_upper"]


def test_quick_people_are_not_accused_of_guessing():
    for quick in (0.0, 1.0, 1.6):
        accused = [fast_guesses(*timed(seed, quick=quick)[:3])["guessing"].sum() for seed in range(10)]
        assert sum(accused) == 0
    # Fast answers that are as good as others are no signal either.
    names, seconds, _, _ = timed(3, guesses=0.5)
    assert not fast_guesses(names, seconds, np.ones(len(names)))["guessing"].any()


def test_scripted_events_and_pastes_are_counted_in_the_log_and_in_the_signals(make_study):
    from steelyard import Study

    with Study.open(make_study(items=3, design='name = "per_item"\njudgments = 1')) as study:
        for number in range(3):
            task = study.ask("ann")
            study.tell(task, {task.item_ids[0]: 50.0}, seconds=3.0, effort=Effort(untrusted=number, pastes=number // 2))
        history = history_of(study)
        answers = (
            residual_answers(0)
            .head(0)
            .with_columns(pl.lit("").alias("judgment_id"), pl.lit(0.0).alias("residual"), pl.lit(0.0).alias("expected"))
        )
        row = careless_signals(history, answers).row(0, named=True)
    assert (row["annotator"], row["scripted"], row["pasted"]) == ("ann", 2, 1)
