"""What every protocol promises."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard import registry
from steelyard.errors import AnswerError
from steelyard.observations import Choice, Comparison, Label, MarkedText, RankedItems, Rating
from steelyard.protocols import Pairwise, Protocol
from steelyard.protocols.unjudged import AnswerRules, accept_answer, observe, unjudged_items
from steelyard.simulate import answer_for

CRITERIA: dict[str, Any] = {"adequacy": {}, "fluency": {"weight": 2}}
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "direct": [
        {},
        {"items_per_page": 3},
        {"criteria": {"anger": {}, "valence": {"scale": [-100, 100]}}},
    ],
    "likert": [{}, {"scale": [0, 8]}, {"criteria": {"adequacy": {}, "fluency": {"scale": [1, 7]}}}],
    "choice": [
        {"labels": ["yes", "no", "maybe"]},
        {"criteria": {"a": {"labels": ["x", "y"]}, "b": {"labels": ["1", "2"]}}},
    ],
    "pairwise": [
        {},
        {"ties": False},
        {"steps": 5, "both_bad": True},
        {"criteria": CRITERIA},
        {"steps": 7, "ties": False, "labels": ["a bit", "clearly", "much"]},
    ],
    "best_worst": [{}, {"size": 3}, {"size": 7}, {"criteria": CRITERIA}],
    "scored_ranking": [{}, {"size": 2, "scale": [-1, 1]}, {"size": 3, "criteria": CRITERIA}],
    "ranking": [{}, {"size": 3, "ties": False}, {"size": 3, "criteria": CRITERIA}],
    "error_spans": [
        {},
        {"score": "mqm", "categories": ["Accuracy", "Fluency/Punctuation"]},
        {"severities": {"slight": 1, "bad": 3, "fatal": 9}, "scale": [0, 6], "items_per_page": 2, "omission": False},
    ],
}
KIND_OF = {
    Rating: "ratings",
    Comparison: "comparisons",
    Choice: "choices",
    RankedItems: "rankings",
    Label: "labels",
    MarkedText: "spans",
}

CASES = [(name, settings) for name in registry.names("protocols") for settings in SETTINGS[name]]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}-{json.dumps(case[1])}")
def protocol(request: pytest.FixtureRequest) -> Protocol:
    name, settings = request.param
    instance: Protocol = registry.create("protocols", name, settings)
    return instance


def items_of(protocol: Protocol) -> list[str]:
    return [f"item {number}" for number in range(protocol.task_size)]


def good_answer(protocol: Protocol, values: list[float] | None = None) -> Any:
    items = items_of(protocol)
    values = values or [(number * 0.37) % 1 for number in range(len(items))]
    return answer_for(protocol, dict(zip(items, values, strict=True)))


def test_a_good_answer_is_accepted_and_validating_it_again_changes_nothing(protocol: Protocol):
    items = items_of(protocol)
    plain = protocol.validate(items, good_answer(protocol))
    assert protocol.validate(items, plain) == plain


def test_answers_survive_json(protocol: Protocol):
    items = items_of(protocol)
    plain = protocol.validate(items, good_answer(protocol))
    assert protocol.validate(items, json.loads(json.dumps(plain))) == plain


def test_an_answer_yields_just_the_kinds_it_promises(protocol: Protocol):
    items = items_of(protocol)
    kinds = {KIND_OF[type(o)] for o in protocol.observations(items, protocol.validate(items, good_answer(protocol)))}
    assert kinds == set(protocol.kinds)


def test_observations_name_only_items_of_the_task(protocol: Protocol):
    items = items_of(protocol)
    for record in protocol.observations(items, protocol.validate(items, good_answer(protocol))):
        if isinstance(record, Rating | Label | MarkedText):
            assert record.item in items
        elif isinstance(record, Comparison):
            assert {record.left, record.right} <= set(items)
        elif isinstance(record, Choice):
            assert list(record.items) == items


@pytest.mark.parametrize(
    "nonsense", [None, 3, "item 0", [], {}, [["item 0"]], {"winner": "elsewhere"}, {"item 0": None}]
)
def test_nonsense_is_refused_with_a_remedy(protocol: Protocol, nonsense: object):
    with pytest.raises(AnswerError) as error_info:
        protocol.validate([*items_of(protocol), "one more"], nonsense)
    assert all(problem.remedy for problem in error_info.value.problems)


def test_an_item_that_is_not_in_the_task_is_refused(protocol: Protocol):
    answer = good_answer(protocol)
    others = [f"other {number}" for number in range(protocol.task_size)]
    if isinstance(answer, dict) and None in answer.values():
        answer = {"winner": "item 0"}
    elif isinstance(protocol, Pairwise) and protocol.criteria:
        answer = {name: {"winner": "item 0"} for name in protocol.criteria}
    with pytest.raises(AnswerError, match="not among the items"):
        protocol.validate(others, answer)


def test_a_task_that_cannot_be_judged_is_an_answer_without_observations(protocol: Protocol):
    items = items_of(protocol)
    rules = AnswerRules(cannot_judge=True, reasons=("not in my language",))
    answer = accept_answer(protocol, items, {"cannot_judge": "not in my language"}, rules)
    assert accept_answer(protocol, items, json.loads(json.dumps(answer)), rules) == answer
    assert observe(protocol, items, answer) == []
    assert unjudged_items(protocol, items, answer) == dict.fromkeys(items, "not in my language")
    for wrong, own in (({"cannot_judge": "other"}, rules), ({"cannot_judge": ""}, AnswerRules())):
        with pytest.raises(AnswerError, match=r"reason|does not offer"):
            accept_answer(protocol, items, wrong, own)
    plain = accept_answer(protocol, items, good_answer(protocol), rules)
    assert plain == protocol.validate(items, good_answer(protocol))
    assert observe(protocol, items, plain) == protocol.observations(items, plain)


@given(data=st.data())
@pytest.mark.parametrize(("name", "settings"), CASES, ids=str)
def test_every_pair_is_observed_at_most_once(name: str, settings: dict[str, Any], data: st.DataObject):
    protocol: Protocol = registry.create("protocols", name, settings)
    size = protocol.task_size
    values = data.draw(st.lists(st.floats(0, 1), min_size=size, max_size=size))
    items = items_of(protocol)
    records = protocol.observations(items, protocol.validate(items, good_answer(protocol, values)))
    pairs = [(r.criterion, frozenset((r.left, r.right))) for r in records if isinstance(r, Comparison)]
    assert len(pairs) == len(set(pairs))
