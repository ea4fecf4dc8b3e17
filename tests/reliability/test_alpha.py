"""Krippendorff's α against its definition, its textbook example and the krippendorff package."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.errors import ConfigError, DataError
from steelyard.observations import Comparisons, Index
from steelyard.reliability import agreement, krippendorff_alpha

METRICS = ("nominal", "ordinal", "interval", "ratio")
Answers = list[tuple[int, int, float]]  # unit, annotator, value

# Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability", section D: 4 observers, 12 units; 0 is missing.
TEXTBOOK = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3],
    [0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0],
]


def metric_of(metric: str, pooled: list[float]) -> Callable[[float, float], float]:
    """The difference functions as Krippendorff prints them."""

    def ordinal(x: float, y: float) -> float:
        low, high = min(x, y), max(x, y)
        between = sum(low <= value <= high for value in pooled)
        return (between - (pooled.count(x) + pooled.count(y)) / 2) ** 2

    return {
        "nominal": lambda x, y: float(x != y),
        "ordinal": ordinal,
        "interval": lambda x, y: (x - y) ** 2,
        "ratio": lambda x, y: ((x - y) / (x + y)) ** 2 if x + y else 0.0,
    }[metric]


def naive_alpha(answers: Answers, metric: str) -> float | None:
    """α by looping over all pairs: pairs within a unit by different annotators, and all pooled pairs."""
    units: dict[int, list[tuple[int, float]]] = {}
    for unit, annotator, value in answers:
        units.setdefault(unit, []).append((annotator, value))
    pairs = {unit: [(x, y) for (a, x), (b, y) in combinations(rows, 2) if a != b] for unit, rows in units.items()}
    units_with_pairs = [unit for unit in units if pairs[unit]]
    pooled = [value for unit in units_with_pairs for _, value in units[unit]]
    if not pooled or len(set(pooled)) == 1:
        return None
    delta = metric_of(metric, pooled)
    observed = sum(
        len(units[unit]) * float(np.mean([delta(x, y) for x, y in pairs[unit]])) for unit in units_with_pairs
    ) / len(pooled)
    expected = float(np.mean([delta(x, y) for x, y in combinations(pooled, 2)]))
    return 1 - observed / expected


def our_alpha(answers: Answers, metric: str, replicates: int = 0) -> float | None:
    unit, annotator, value = (np.array(column) for column in zip(*answers, strict=True))
    return krippendorff_alpha(unit, value, metric, annotator=annotator, replicates=replicates).value


def random_table(rng: np.random.Generator, continuous: bool) -> np.ndarray:
    annotators, units = int(rng.integers(2, 7)), int(rng.integers(3, 40))
    table = rng.gamma(2.0, size=(annotators, units)) if continuous else rng.integers(1, 7, (annotators, units)) * 1.0
    table[rng.random(table.shape) < 0.3] = np.nan
    return table


def as_answers(table: np.ndarray) -> Answers:
    annotator, unit = np.nonzero(~np.isnan(table))
    return [(int(u), int(a), float(table[a, u])) for a, u in zip(annotator, unit, strict=True)]


answer_lists = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 6).map(float)), min_size=1, max_size=40
)


@pytest.mark.parametrize(
    ("metric", "printed"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849), ("ratio", 0.797)]
)
def test_textbook_example_gives_the_printed_alpha(metric: str, printed: float) -> None:
    table = np.array(TEXTBOOK, float)
    table[table == 0] = np.nan
    assert our_alpha(as_answers(table), metric) == pytest.approx(printed, abs=5e-4)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("continuous", [False, True])
def test_alpha_equals_the_krippendorff_package(metric: str, continuous: bool) -> None:
    peer = pytest.importorskip("krippendorff")
    rng = np.random.default_rng(7)
    for _ in range(25):
        table = random_table(rng, continuous)
        expected = peer.alpha(reliability_data=table, level_of_measurement=metric)
        assert our_alpha(as_answers(table), metric) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("metric", METRICS)
@settings(deadline=None, max_examples=60)
@given(answers=answer_lists)
def test_alpha_equals_its_definition_with_missing_answers_and_repeats(metric: str, answers: Answers) -> None:
    expected = naive_alpha(answers, metric)
    ours = our_alpha(answers, metric)
    if expected is None:
        assert ours is None
    else:
        assert ours == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("metric", METRICS)
@settings(deadline=None, max_examples=30)
@given(answers=answer_lists, data=st.data())
def test_order_and_names_of_annotators_and_units_do_not_matter(
    metric: str, answers: Answers, data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(answers))
    units, people = data.draw(st.permutations(range(6))), data.draw(st.permutations(range(4)))
    renamed = [(units[u], people[a], v) for u, a, v in shuffled]
    assert our_alpha(renamed, metric) == pytest.approx(our_alpha(answers, metric), abs=1e-12)


@pytest.mark.parametrize("metric", METRICS)
@settings(deadline=None, max_examples=30)
@given(answers=answer_lists)
def test_alpha_is_at_most_one_and_lies_in_its_interval(metric: str, answers: Answers) -> None:
    unit, annotator, value = (np.array(column) for column in zip(*answers, strict=True))
    figure = krippendorff_alpha(unit, value, metric, annotator=annotator, replicates=50)
    if figure.value is None:
        assert figure.lower is None
        assert figure.note
        return
    assert figure.value <= 1
    if figure.lower is None or figure.upper is None:
        assert "no interval" in figure.note
    else:
        assert figure.lower <= figure.value <= figure.upper <= 1


@pytest.mark.parametrize("metric", METRICS)
def test_identical_answers_give_one(metric: str) -> None:
    answers = [(unit, annotator, 0.1 * unit) for unit in range(20) for annotator in range(3)]
    assert our_alpha(answers, metric) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("metric", METRICS)
def test_nothing_to_compare_or_to_disagree_on_is_none_with_the_reason(metric: str) -> None:
    alone = krippendorff_alpha([0, 1, 2], [1, 2, 3], metric)
    flat = krippendorff_alpha([0, 0, 1, 1], [2, 2, 2, 2], metric)
    nobody = krippendorff_alpha([], [], metric)
    assert (alone.value, flat.value, nobody.value) == (None, None, None)
    assert "two annotators" in alone.note
    assert "all answers are the same" in flat.note


def test_an_annotator_who_repeats_an_answer_does_not_agree_with_others_by_it() -> None:
    once = krippendorff_alpha([0, 0, 1, 1], [1, 2, 3, 4], annotator=[0, 1, 0, 1], replicates=0)
    only_repeats = krippendorff_alpha([0, 0, 1, 1], [1, 1, 2, 2], annotator=[0, 0, 1, 1], replicates=0)
    assert once.value is not None
    assert only_repeats.value is None


def test_unknown_annotators_count_as_different_people() -> None:
    units, values = [0, 0, 1, 1, 2, 2], [1, 1, 2, 3, 4, 4]
    unknown = krippendorff_alpha(units, values, annotator=[-1] * 6)
    assert unknown == krippendorff_alpha(units, values)


def test_a_far_offset_does_not_cost_digits() -> None:
    rng = np.random.default_rng(3)
    unit = np.repeat(np.arange(50), 4)
    value = rng.integers(0, 10, 200).astype(float)
    near = krippendorff_alpha(unit, value, replicates=0).value
    assert krippendorff_alpha(unit, value + 1e9, replicates=0).value == pytest.approx(near, abs=1e-12)


def test_ratio_refuses_negative_and_too_many_distinct_values_with_the_remedy() -> None:
    negative = krippendorff_alpha([0, 0], [-1, 2], "ratio")
    many = krippendorff_alpha(np.repeat(np.arange(6000), 2), np.arange(12000), "ratio")
    assert negative.value is None
    assert "≥ 0" in negative.note
    assert many.value is None
    assert "round" in many.note


def test_wrong_input_is_refused() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'nominal'"):
        krippendorff_alpha([0, 0], [1, 2], "nomnal")
    with pytest.raises(DataError, match="missing"):
        krippendorff_alpha([0, 0], [1, np.nan])
    with pytest.raises(DataError, match="differ in number"):
        krippendorff_alpha([0, 0, 1], [1, 2])
    with pytest.raises(ConfigError, match="level"):
        krippendorff_alpha([0, 0], [1, 2], level=95)
    with pytest.raises(ConfigError, match="replicates"):
        krippendorff_alpha([0, 0], [1, 2], replicates=-1)


def test_grades_of_pairs_agree_with_a_peer_on_answers_counted_in_both_orders():
    """The peer counts 2n answers: D_e of n answers is (2n - 1) / (2(n - 1)) times that of the doubled ones."""
    peer = pytest.importorskip("krippendorff")
    rng = np.random.default_rng(5)
    pair, annotator = np.repeat(np.arange(12), 4), np.tile(np.arange(4), 12)
    location = rng.normal(0, 1.5, 12)[pair]
    grade = np.clip(np.rint(location + rng.normal(0, 1, 48)), -3, 2)
    comparisons = Comparisons(
        items=Index(f"i{number:02d}" for number in range(24)),
        annotators=Index("abcd"),
        annotator=annotator.astype(np.int32),
        tasks=Index([]),
        task=np.full(48, -1, np.int32),
        # Half of the annotators see the pairs in the other order.
        left=np.where(annotator % 2, 2 * pair, 2 * pair + 1).astype(np.int32),
        right=np.where(annotator % 2, 2 * pair + 1, 2 * pair).astype(np.int32),
        outcome=np.where(annotator % 2, np.sign(grade), -np.sign(grade)).astype(np.int8),
        strength=np.abs(grade).astype(np.int8),
    )
    statistics = {one.key: one for one in agreement(comparisons, replicates=0).statistics}
    statistic = statistics["alpha_ordinal"]
    table = grade.reshape(12, 4).T
    doubled = peer.alpha(np.hstack([table, -table]), level_of_measurement="ordinal")
    assert 1 - statistic.value == pytest.approx((1 - doubled) * 2 * 47 / 95, rel=1e-9)
