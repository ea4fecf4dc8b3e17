"""Infit, outfit, severity and drift: by hand, by another algorithm, and in simulation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import optimize, special

from steelyard.observations import UNKNOWN, Choices, Comparisons, Index, Labels, Ratings
from steelyard.reliability import scale_separation, severity
from steelyard.reliability.residuals import expected_outcomes, residuals
from steelyard.reliability.severity import fit_facets, places_in_work


def compared(rows: list[tuple[str, str, str, int]]) -> Comparisons:
    items, people = Index(sorted({i for r in rows for i in r[1:3]})), Index(sorted({r[0] for r in rows}))
    return Comparisons(
        items=items,
        annotators=people,
        annotator=people.codes([r[0] for r in rows]),
        left=items.codes([r[1] for r in rows]),
        right=items.codes([r[2] for r in rows]),
        outcome=np.array([r[3] for r in rows], np.int8),
    )


def rated(seed: int, people: int = 6, items: int = 30, drift: float = 0.0, noise: float = 0.5):
    """Return ratings of every item by everybody in random order, their times, and the true severities."""
    rng = np.random.default_rng(seed)
    location, strict = rng.normal(0, 1, items), rng.normal(0, 0.5, people)
    strict -= strict.mean()
    annotator = np.repeat(np.arange(people, dtype=np.int32), items)
    item = np.concatenate([rng.permutation(items) for _ in range(people)]).astype(np.int32)
    time = places_in_work(annotator, np.arange(len(item), dtype=np.float64))
    logit = location[item] - strict[annotator] - drift * (annotator == 0) * time + rng.normal(0, noise, len(item))
    part = Ratings(
        items=Index(f"i{n}" for n in range(items)),
        annotators=Index(f"w{n}" for n in range(people)),
        annotator=annotator,
        item=item,
        value=np.round(100 * special.expit(logit)),
        scale=(0, 100),
    )
    return part, time, strict


def test_infit_and_outfit_of_two_items_follow_by_hand():
    # a wins 3 of 4: s = 0.3 + (4 − 0.6)·3/4 = 2.85, so p = 2.85/4 = 0.7125 exactly (two items, one pair).
    rows = [("ann", "a", "b", 1), ("ann", "b", "a", -1), ("ann", "a", "b", 1), ("ann", "b", "a", 1)]
    table = residuals(compared(rows)).by_annotator()
    p = 0.7125
    square = (3 * (1 - p) ** 2 + p**2) / 4
    assert table["infit"][0] == pytest.approx(square / (p * (1 - p)))
    assert table["outfit"][0] == pytest.approx(square / (p * (1 - p)))
    assert table["answers"][0] == 4


def test_infit_weights_by_information_and_outfit_does_not():
    rng = np.random.default_rng(0)
    theta = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    pairs = [(i, j) for i in range(5) for j in range(5) if i < j] * 12
    rows = [
        (f"w{n % 3}", f"i{i}", f"i{j}", 1 if rng.random() < special.expit(theta[i] - theta[j]) else -1)
        for n, (i, j) in enumerate(pairs)
    ]
    part = compared(rows)
    scale = dict(scale_separation(part, replicates=0).scale.select("item", "theta").iter_rows())
    table = residuals(part).by_annotator()
    for name, infit, outfit in table.select("annotator", "infit", "outfit").iter_rows():
        own = [r for r in rows if r[0] == name]
        p = np.array([special.expit(scale[r[1]] - scale[r[2]]) for r in own])
        y = np.array([(r[3] + 1) / 2 for r in own])
        assert infit == pytest.approx(((y - p) ** 2).sum() / (p * (1 - p)).sum())
        assert outfit == pytest.approx(((y - p) ** 2 / (p * (1 - p))).mean())


def test_items_that_were_never_compared_have_scales_of_their_own():
    first, second, won = np.array([0, 0, 1, 3, 3]), np.array([1, 2, 2, 4, 4]), np.array([1.0, 1.0, 1.0, 1.0, 0.0])
    both = expected_outcomes(first, second, won)
    assert both[:3] == pytest.approx(expected_outcomes(first[:3], second[:3], won[:3]))
    assert both[3:] == pytest.approx([0.5, 0.5])


def test_an_annotator_who_guesses_is_flagged_and_nobody_else():
    rng = np.random.default_rng(1)
    theta = rng.normal(0, 2, 20)
    rows = []
    for n in range(900):
        i, j = rng.permutation(20)[:2]
        chance = 0.5 if n % 9 == 0 else special.expit(theta[i] - theta[j])
        rows.append((f"w{n % 9}", f"i{i:02}", f"i{j:02}", 1 if rng.random() < chance else -1))
    table = residuals(compared(rows)).by_annotator()
    assert table.filter("misfit")["annotator"].to_list() == ["w0"]


def test_ties_are_nearer_to_the_expectation_than_decisions():
    rows = [("ann", "a", "b", 0)] * 6 + [("bob", "a", "b", o) for o in (1, -1, 1, -1, 1, -1)]
    table = residuals(compared(rows)).by_annotator()
    # Half of the answers tie: the variance of ½ · ¼; always tying gives 0, always deciding twice the variance.
    assert table["infit"].to_list() == pytest.approx([0.0, 2.0])


def test_best_worst_choices_have_fit_statistics_and_labels_have_none():
    items, people = Index(list("abcd")), Index(["ann"])
    tuples = np.tile(np.arange(4, dtype=np.int32), (5, 1))
    choices = Choices(
        items=items,
        annotators=people,
        annotator=np.zeros(5, np.int32),
        shown=tuples,
        best=tuples[:, 0],
        worst=tuples[:, 3],
    )
    table = residuals(choices).by_item()
    assert table["answers"].to_list() == [15, 10, 10, 15]
    labels = Labels(items=items, item=np.zeros(2, np.int32), label=np.zeros(2, np.int32), classes=Index(["yes", "no"]))
    assert residuals(labels) is None


def test_severity_solves_the_quasi_likelihood_equations():
    part, time, _ = rated(2)
    fit = fit_facets(part, time)
    y, sd, dispersion = part.unit_value, severity.WEAK_PRIOR_SD, fit.dispersion
    # Given the items, severity and drift of each annotator maximise their own penalised quasi-likelihood.
    for code in range(2):
        own = part.annotator == code

        def loss(parameters, own=own):
            logit = fit.item[part.item[own]] - parameters[0] - parameters[1] * time[own]
            mean = special.expit(logit)
            likelihood = (y[own] * np.log(mean) + (1 - y[own]) * np.log1p(-mean)).sum() / dispersion
            return -likelihood + (parameters**2).sum() / (2 * sd**2)

        best = optimize.minimize(loss, np.zeros(2), method="BFGS").x
        row = fit.annotators.row(code, named=True)
        assert (row["severity"], row["drift"]) == pytest.approx(tuple(best), abs=2e-2)
    assert fit.annotators["severity"].sum() == pytest.approx(0, abs=1e-6)


def test_severity_is_recovered_and_many_annotators_give_the_same(monkeypatch):
    part, _, strict = rated(3, people=12, items=60)
    table = fit_facets(part).annotators
    inside = (table["severity_lower"].to_numpy() <= strict) & (strict <= table["severity_upper"].to_numpy())
    assert inside.mean() >= 0.75
    assert np.corrcoef(table["severity"], strict)[0, 1] > 0.97
    monkeypatch.setattr(severity, "MAX_ANNOTATORS", 5)
    again = fit_facets(part).annotators
    assert again["severity"].to_numpy() == pytest.approx(table["severity"].to_numpy(), abs=1e-5)


def test_mean_squares_of_ratings_average_one_and_show_the_noisy_annotator():
    part, _, _ = rated(4, people=10, items=40)
    value = part.value.copy()
    value[part.annotator == 7] = np.random.default_rng(0).integers(0, 101, 40)
    noisy = Ratings(
        items=part.items,
        annotators=part.annotators,
        annotator=part.annotator,
        item=part.item,
        value=value,
        scale=(0, 100),
    )
    calm = residuals(part).by_annotator()
    assert calm["outfit"].mean() == pytest.approx(1, abs=0.1)
    table = residuals(noisy).by_annotator()
    assert table.filter("misfit")["annotator"].to_list() == ["w7"]


@pytest.mark.slow
def test_drift_of_three_tenths_of_a_logit_is_detected_at_five_percent_false_alarms():
    # 250 ratings each with a standard deviation of 0.4 logits (10 points in the middle of a 0–100 scale).
    detected, false = [], []
    for seed in range(25):
        part, time, _ = rated(seed, people=6, items=250, drift=0.3, noise=0.4)
        p = fit_facets(part, time).annotators["drift_p"].to_numpy()
        detected.append(p[0] < 0.05)
        false += list(p[1:] < 0.05)
    assert np.mean(detected) >= 0.72  # 80 % less two binomial standard errors of 25
    assert np.mean(false) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / len(false))


def test_ratings_without_a_name_count_but_have_no_row():
    part, time, _ = rated(5)
    hidden = np.where(part.annotator == 5, UNKNOWN, part.annotator).astype(np.int32)
    anonymous = Ratings(
        items=part.items, annotators=part.annotators, annotator=hidden, item=part.item, value=part.value, scale=(0, 100)
    )
    assert fit_facets(anonymous, time).annotators["annotator"].to_list() == [f"w{n}" for n in range(6)]


def test_infit_of_recorded_sessions_is_that_of_the_published_scale(shared_data: Path):
    decisions = pl.read_csv(shared_data / "comparative_judgement" / "decisions.csv.gz", infer_schema_length=0)
    for session in ("Bisson2016_algebra", "Jones2015b"):
        own = decisions.filter(pl.col("session") == session)
        part = compared([(j, w, x, 1) for j, w, x in own.select("judge", "winner", "loser").iter_rows()])
        scale = dict(scale_separation(part, replicates=0).scale.select("item", "theta").iter_rows())
        p = special.expit(own["winner"].replace_strict(scale) - own["loser"].replace_strict(scale))
        by_hand = (
            own.with_columns(pl.Series("square", (1 - p) ** 2), pl.Series("variance", p * (1 - p)))
            .group_by("judge")
            .agg((pl.col("square").sum() / pl.col("variance").sum()).alias("infit"))
            .sort("judge")
        )
        result = residuals(part)
        assert result is not None
        table = result.by_annotator().sort("annotator")
        assert table["infit"].to_list() == pytest.approx(by_hand["infit"].to_list())


def test_hundreds_of_separate_pairs_are_fitted_at_once():
    # 300 pairs of items, each judged four times: p = s/4 of every pair, as by hand for one pair.
    first, wins = np.repeat(np.arange(0, 600, 2), 4), np.tile([1.0, 1.0, 1.0, 0.0], 300)
    assert expected_outcomes(first, first + 1, wins) == pytest.approx(np.full(1200, 0.7125))
