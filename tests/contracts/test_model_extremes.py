"""Extremes that every model must survive: no NaN, no overflow, no silent nonsense."""

from __future__ import annotations

import inspect
import math
import warnings
from typing import Any

import pytest

from steelyard import read_judgments, registry
from steelyard.errors import DataError, SteelyardWarning
from steelyard.observations import Mixed, Observations
from tests.sizes import FULL

DATA: dict[str, dict[str, list[dict[str, Any]]]] = {
    "ratings": {
        "one judgment": [{"annotator": "u", "item": "a", "value": 50}],
        "one annotator": [{"annotator": "u", "item": i, "value": v} for i, v in (("a", 10), ("b", 90), ("c", 50))],
        "ends of the scale": [
            {"annotator": w, "item": i, "value": v} for w in "uvx" for i, v in (("a", 0), ("b", 100), ("c", 100))
        ],
        "all alike": [{"annotator": w, "item": i, "value": 50} for w in "uvx" for i in "abc"],
        "nobody known": [{"item": i, "value": v} for i, v in (("a", 10), ("a", 20), ("b", 90), ("b", 80))],
    },
    "comparisons": {
        "one judgment": [{"annotator": "u", "left": "a", "right": "b", "winner": "left"}],
        "all ties": [{"annotator": w, "left": "a", "right": b, "winner": "tie"} for w in "uv" for b in "bc"],
        "undefeated": [{"annotator": w, "left": "a", "right": b, "winner": "left"} for w in "uvx" for b in "bcd"],
        "two islands": [
            {"annotator": w, "left": a, "right": b, "winner": s}
            for w, s in (("u", "left"), ("v", "right"))
            for a, b in (("a", "b"), ("c", "d"))
        ],
        "nobody known": [{"left": "a", "right": "b", "winner": s} for s in ("left", "right", "tie")],
    },
    "choices": {
        "one judgment": [{"annotator": "u", "item1": "a", "item2": "b", "item3": "c", "best": "a", "worst": "c"}],
        "always the same": [
            {"annotator": w, "item1": "a", "item2": "b", "item3": "c", "best": "a", "worst": "c"} for w in "uvx"
        ],
        "incomplete": [
            {"annotator": "u", "item1": "a", "item2": "b", "item3": "c", "best": "a", "worst": None},
            {"annotator": "v", "item1": "a", "item2": "b", "item3": "c", "best": None, "worst": "b"},
            {"annotator": "x", "item1": "a", "item2": "b", "item3": "c", "best": "b", "worst": "b"},
            {"annotator": "y", "item1": "a", "item2": "b", "item3": "c", "best": "a", "worst": "c"},
        ],
    },
    "rankings": {
        "one judgment": [{"annotator": "u", "ranking": "a>b>c"}],
        "all tied": [{"annotator": w, "ranking": "a=b=c"} for w in "uv"],
        "two islands": [{"annotator": "u", "ranking": "a>b"}, {"annotator": "v", "ranking": "c>d"}],
    },
    "labels": {
        "one judgment each": [{"annotator": "u", "item": i, "label": x} for i, x in (("a", "yes"), ("b", "no"))],
        "one annotator": [
            {"annotator": "u", "item": i, "label": x} for i, x in zip("abcd", ["yes", "no"] * 2, strict=True)
        ],
        "all tied": [{"annotator": w, "item": i, "label": x} for w, x in (("u", "yes"), ("v", "no")) for i in "abc"],
        "all alike but one": [
            {"annotator": w, "item": i, "label": "no" if (w, i) == ("x", "c") else "yes"} for w in "uvx" for i in "abc"
        ],
    },
}
DATA["mixed"] = {
    f"{ratings} and {other}": DATA["ratings"][ratings] + DATA[kind][other]
    for ratings in ("one judgment", "all alike", "nobody known")
    for kind, other in (("comparisons", "all ties"), ("comparisons", "two islands"), ("rankings", "all tied"))
}
CASES = [
    (name, kind, extreme)
    for name in registry.names("models")
    for kind in registry.find("models", name).accepts
    for extreme in DATA[kind]
]


def read(kind: str, rows: list[dict[str, Any]]) -> Observations:
    if kind != "mixed":
        return read_judgments(rows, kind=kind, scale=(0, 100) if kind == "ratings" else None).observations
    ways = {tuple(row): None for row in rows}
    parts = ([row for row in rows if tuple(row) == way] for way in ways)
    return Mixed.of(read("ratings" if "value" in part[0] else read_judgments(part).kind, part) for part in parts)


def fit(name: str, kind: str, rows: list[dict[str, Any]]) -> Any:
    # Few draws show whether a fit works; the full form has the default number.
    model = registry.create("models", name, {"draws": 40} if name == "calibrated_scale" and not FULL else {})
    observations = read(kind, rows)
    extra = {}
    if "gold" in inspect.signature(model.fit).parameters:
        extra["gold"] = {"a": "yes", "b": "no"} if kind == "labels" else {"a": 20.0}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", SteelyardWarning)
        return model.fit(observations, **extra)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kind", "extreme"), CASES, ids=str)
@pytest.mark.parametrize("times", [1, 2], ids=["", "twice over"])
def test_an_extreme_gives_sane_numbers_or_a_clear_refusal(name: str, kind: str, extreme: str, times: int):
    try:
        fitted = fit(name, kind, DATA[kind][extreme] * times)
    except DataError as refusal:
        # Only models of annotators refuse, and only judgments that do not say whose they are.
        assert "have no annotator" in str(refusal)  # noqa: PT017
        return
    for row in fitted.scores.iter_rows(named=True):
        numbers = [value for value in row.values() if isinstance(value, float)]
        assert all(map(math.isfinite, numbers)), row
        point = row.get("score", row.get("probability"))
        if point is None:
            assert fitted.notes
            continue
        if row["lower"] is not None:
            assert row["lower"] <= point <= row["upper"], row
        if row.get("unit_score") is not None:
            assert 0 <= row["unit_score"] <= 1, row
        assert abs(point) < 1e5, row


@pytest.mark.parametrize(("extreme", "named"), [("undefeated", "'a'"), ("two islands", "'c'")])
@pytest.mark.parametrize("name", ["bradley_terry", "thurstone", "plackett_luce"])
def test_an_undefeated_item_and_an_island_are_named(name: str, extreme: str, named: str):
    observations = read_judgments(DATA["comparisons"][extreme]).observations
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = registry.create("models", name).fit(observations)
    warned = " ".join(str(w.message) for w in caught if issubclass(w.category, SteelyardWarning))
    assert named in warned
    assert named in " ".join(fitted.notes)
