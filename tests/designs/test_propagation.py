"""Propagation: what the comparisons of a first stage spare in the second."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.designs import NoTask, Pick, Propagation
from steelyard.designs.dominance_graph import dominance_order
from steelyard.designs.propagation.state import Effort
from steelyard.designs.state import AnswerNotice
from steelyard.observations import Comparison
from steelyard.protocols import Choice, Direct, Likert, Pairwise, Protocol
from steelyard.protocols.rated import Criterion
from steelyard.records import Item

YES_NO = Choice(labels=("yes", "no"))
SYSTEMS = ["Google", "Systran", "Moses", "Bing", "LW", "Reference"]
# Six comparisons that give what the text says of Fig. 1: LW dominates Google, Systran (tied), Moses and Bing; the
# reference was compared with Bing alone.
FIGURE_1 = [
    ("Reference", "Bing", 1),
    ("LW", "Google", 1),
    ("Systran", "Moses", 1),
    ("Google", "Systran", 0),
    ("Moses", "Bing", 1),
    ("LW", "Moses", 1),
]


def translations(reference: str | None = None) -> list[Item]:
    return [Item(name, f"by {name}", context="one sentence", reference=reference) for name in SYSTEMS]


class Stage:
    """An absolute stage after one of comparisons, as a study drives it."""

    def __init__(self, design: Propagation, items: Sequence[Item], protocol: Protocol = YES_NO) -> None:
        self.design, self.items, self.protocol = design, list(items), protocol
        self.progress = design.new_progress(protocol, self.items)
        self.code = {item.id: code for code, item in enumerate(self.items)}
        self.events = count()

    def compare(self, rows: Iterable[tuple[str, str, int]], annotator: str = "ann", *, forget: bool = False) -> None:
        for left, right, outcome in rows:
            codes = (self.code[left], self.code[right])
            notice = AnswerNotice(
                f"{annotator}-{left}-{right}", annotator, codes, [Comparison(left, right, outcome)], own_stage=False
            )
            (self.progress.notify_retraction if forget else self.progress.notify_answer)(notice)

    def offer(self, annotator: str = "ann") -> Pick | NoTask:
        return self.design.pick(self.progress, 1, annotator, np.random.default_rng(next(self.events)))

    def ask(self, annotator: str = "ann") -> str | None:
        pick = self.offer(annotator)
        if isinstance(pick, NoTask):
            return None
        self.progress.on_leased(annotator, pick.items, pick.slot, pick.round, np.random.default_rng(0))
        return self.items[pick.items[0]].id

    def heard(self, item: str, answer: object, annotator: str) -> AnswerNotice:
        observations = self.protocol.observations([item], {item: answer})
        return AnswerNotice(f"{annotator}-{item}", annotator, (self.code[item],), observations)

    def tell(self, item: str, answer: object, annotator: str = "ann") -> None:
        self.progress.on_answered((self.code[item],), None)
        self.progress.notify_answer(self.heard(item, answer, annotator))

    def work(self, adequate: Iterable[str] = (), annotator: str = "ann") -> list[str]:
        """Let somebody answer until there is nothing left; return whom they were asked about."""
        questions = []
        while (item := self.ask(annotator)) is not None:
            self.tell(item, "yes" if item in adequate else "no", annotator)
            questions.append(item)
        return questions

    def labels(self) -> dict[str, tuple[bool, str, str]]:
        return {result.item: result[1:] for result in self.design.labels(self.progress)}


def test_the_papers_example_an_inadequate_top_leaves_only_the_reference_to_ask():
    """§3.2: if LW is inadequate, so are Google, Systran, Moses and Bing; the reference is not dominated by it."""
    stage = Stage(Propagation(), translations())
    stage.compare(FIGURE_1)
    assert stage.work() == ["LW", "Reference"]
    assert stage.labels() == {
        "LW": (False, "asked", "LW"),
        "Reference": (False, "asked", "Reference"),
        **dict.fromkeys(("Google", "Systran", "Moses", "Bing"), (False, "propagated", "LW")),
    }
    assert stage.design.effort(stage.progress) == Effort(6, collapsed=1, reference=0, propagated=3, asked=2, open=0)


def test_the_papers_example_the_reference_spares_one_vertex_of_five():
    """§3.2: for Fig. 1 the reduction by the reference is 1/5, as Google and Systran are one vertex."""
    stage = Stage(Propagation(), translations(reference="BY  reference"))
    stage.compare(FIGURE_1)
    assert stage.work(SYSTEMS) == ["LW", "Google", "Moses", "Bing"]
    effort = stage.design.effort(stage.progress)
    assert effort == Effort(6, collapsed=1, reference=1, propagated=0, asked=4, open=0)
    assert effort.automatic_share == pytest.approx(1 / 5)
    assert stage.labels()["Systran"] == (True, "tied", "Google")


def test_an_adequate_item_says_nothing_of_those_it_dominates():
    stage = Stage(Propagation(), translations())
    stage.compare(FIGURE_1)
    assert stage.work(["LW"]) == ["LW", "Google", "Reference"]
    assert stage.labels()["Moses"] == (False, "propagated", "Google")


def test_what_dominates_or_ties_with_the_reference_is_adequate_unasked():
    stage = Stage(Propagation(), translations(reference="by Reference"))
    stage.compare([("LW", "Google", 1), ("Google", "Reference", 1), ("Reference", "Moses", 0), ("Moses", "Bing", 1)])
    assert sorted(stage.work()) == ["Bing", "Systran"]
    assert {name: how for name, (_, how, _) in stage.labels().items()} == {
        **dict.fromkeys(["LW", "Google", "Reference", "Moses"], "reference"),
        **dict.fromkeys(["Bing", "Systran"], "asked"),
    }


def test_the_rule_of_the_reference_can_be_switched_off():
    stage = Stage(Propagation(references=False), translations(reference="by Reference"))
    assert sorted(stage.work(SYSTEMS)) == sorted(SYSTEMS)


def test_identical_items_are_asked_once():
    items = [Item("a", "Hola", context="hi"), Item("b", "hola ", context="hi"), Item("c", "hola", context="hello")]
    stage = Stage(Propagation(), items)
    assert len(stage.work()) == 2
    assert stage.labels()["b"] == (False, "identical", "a")
    assert stage.design.effort(stage.progress).collapsed == 1


CYCLE = [("LW", "Google", 1), ("Google", "Systran", 1), ("Systran", "LW", 1), ("Systran", "Bing", 0)]


def test_items_on_a_cycle_contradict_each_other_so_each_is_asked():
    """LW > Google > Systran > LW, and Bing ties with Systran; the cycle dominates Moses through Google."""
    stage = Stage(Propagation(), translations())
    stage.compare([*CYCLE, ("Google", "Moses", 1)])
    assert sorted(stage.work(["LW", "Moses", "Reference"])) == ["Google", "LW", "Reference", "Systran"]
    assert stage.labels() == {
        "LW": (True, "asked", "LW"),
        "Google": (False, "asked", "Google"),
        "Systran": (False, "asked", "Systran"),
        "Bing": (False, "tied", "Systran"),
        "Moses": (False, "propagated", "Google"),
        "Reference": (True, "asked", "Reference"),
    }
    effort = stage.design.effort(stage.progress)
    assert effort == Effort(6, collapsed=1, reference=0, propagated=1, asked=4, open=0)


def test_a_reference_on_a_cycle_says_nothing_of_the_items_that_contradict_it():
    stage = Stage(Propagation(), translations(reference="by LW"))
    stage.compare([*CYCLE, ("Moses", "Google", 1)])
    assert sorted(stage.work()) == ["Google", "Reference", "Systran"]
    assert stage.labels()["LW"] == (True, "reference", "LW")
    assert stage.labels()["Moses"] == (True, "reference", "LW")


def test_only_answers_about_the_item_itself_are_not_inferred():
    stage = Stage(Propagation(), translations(reference="by Reference"))
    stage.compare(FIGURE_1)
    stage.work(["LW"])
    inferred = {label.item for label in stage.design.labels(stage.progress) if label.is_inferred}
    assert inferred == {"Reference", "Systran", "Moses", "Bing"}


def test_the_effort_table_has_the_papers_percentages():
    """Table 2, from its counts."""
    effort = Effort(11_292, collapsed=4_622, reference=2_372, propagated=668, asked=3_630, open=0)
    assert effort.vertices == 6_670
    assert effort.automatic == 3_040
    assert round(100 * effort.collapsed_share, 2) == 40.93
    assert round(100 * effort.automatic_share, 2) == 45.58
    assert round(100 * effort.reduction, 2) == 67.85


OUTCOMES = st.dictionaries(
    st.tuples(st.integers(0, 7), st.integers(0, 7)).filter(lambda pair: pair[0] < pair[1]), st.sampled_from([-1, 0, 1])
)


def tied_with(item, outcomes):
    """Return the items that ties connect with an item."""
    tied = {item}
    while True:
        more = {i for pair, outcome in outcomes.items() if outcome == 0 and tied & set(pair) for i in pair}
        if more <= tied:
            return tied
        tied |= more


@settings(deadline=None)
@given(OUTCOMES, st.sets(st.integers(0, 7)), st.integers(0, 999))
def test_nobody_is_asked_more_than_by_the_papers_greedy_order_however_many_work_at_once(outcomes, bad, seed):
    """The paper goes down a list by δ, one at a time; here several people are asked at once."""
    names = [f"i{number}" for number in range(8)]
    stage = Stage(Propagation(), [Item(name, name) for name in names])
    stage.compare([(names[a], names[b], outcome) for (a, b), outcome in outcomes.items()])
    order = dominance_order(range(8), outcomes)
    expected, labelled = set(), set()
    for vertex in sorted(range(len(order.members)), key=lambda v: -order.dominates[v]):
        if vertex not in labelled:
            # Of items on a cycle, each that no tie makes equal to another is asked.
            firsts = {min(tied_with(item, outcomes)) for item in order.members[vertex]}
            expected |= firsts
            waiting = [vertex] if firsts & bad else []
            while waiting:
                waiting = [below for above in waiting for below in order.below[above]]
                labelled.update(waiting)
    rng = np.random.default_rng(seed)
    out, asked = [], set()
    while True:
        item = stage.ask(f"ann-{rng.integers(3)}") if rng.random() < 0.7 else None
        if item is not None:
            out.append(item)
            asked.add(min(tied_with(names.index(item), outcomes)))
        elif out:
            answer_data = out.pop(int(rng.integers(len(out))))
            stage.tell(answer_data, "no" if names.index(answer_data) in bad else "yes", "whoever")
        elif isinstance(stage.offer("newcomer"), NoTask):
            break
    assert asked == expected
    assert len(stage.labels()) == 8


def test_it_waits_for_an_answer_that_may_spare_the_next_question():
    stage = Stage(Propagation(), [Item("a", "a"), Item("b", "b")])
    stage.compare([("a", "b", 1)])
    assert stage.ask("ann") == "a"
    assert stage.offer("bob").reason_code == "waiting"
    stage.tell("a", "yes")
    assert stage.ask("bob") == "b"


def test_people_stay_with_a_source_while_it_has_something_to_ask():
    items = [Item(f"{source}{n}", f"{source}{n}", context=source) for source in "pqrs" for n in range(4)]
    stage = Stage(Propagation(), items)
    stage.compare([(f"{s}{n}", f"{s}{n + 1}", 1) for s in "pqrs" for n in range(3)])
    sources = [item[0] for item in stage.work([item.id for item in items])]
    assert [sources[n : n + 4] for n in range(0, 16, 4)] == [[s] * 4 for s in dict.fromkeys(sources)]


def test_several_annotators_decide_by_majority():
    items = [Item("a", "a"), Item("b", "b")]
    stage = Stage(Propagation(annotators_per_task=3), items)
    stage.compare([("a", "b", 1)])
    for annotator, answer in (("ann", "no"), ("bob", "yes"), ("cleo", "no")):
        assert stage.offer("dan").items == (0,)
        assert stage.ask(annotator) == "a"
        stage.tell("a", answer, annotator)
    assert stage.labels() == {"a": (False, "asked", "a"), "b": (False, "propagated", "a")}
    even = Stage(Propagation(annotators_per_task=2), items)
    even.compare([("a", "b", 1)])
    for annotator, answer in (("ann", "no"), ("bob", "yes")):
        even.ask(annotator)
        even.tell("a", answer, annotator)
    assert even.labels() == {"a": (True, "asked", "a")}


def test_with_several_comparisons_of_a_pair_the_majority_counts():
    stage = Stage(Propagation(), [Item("a", "a"), Item("b", "b")])
    for annotator, outcome in (("ann", 1), ("bob", -1), ("cleo", 1)):
        stage.compare([("a", "b", outcome)], annotator)
    assert stage.ask() == "a"
    stage.compare([("a", "b", 1)], "ann", forget=True)
    # One for each now: a tie.
    assert stage.design.effort(stage.progress).collapsed == 1


def test_an_answer_taken_back_takes_its_consequences_back():
    stage = Stage(Propagation(), translations())
    stage.compare(FIGURE_1)
    stage.ask()
    stage.tell("LW", "no")
    assert len(stage.labels()) == 5
    stage.progress.on_excluded("ann", (stage.code["LW"],), None)
    stage.progress.notify_retraction(stage.heard("LW", "no", "ann"))
    assert stage.labels() == {}
    assert sorted(stage.work(annotator="bob")) == ["LW", "Reference"]


def test_what_is_skipped_is_asked_of_somebody_else():
    stage = Stage(Propagation(), [Item("a", "a")])
    assert stage.ask("ann") == "a"
    stage.progress.on_released("ann", (0,), None)
    assert stage.offer("ann").reason == "You have judged every item that can be asked now."
    assert stage.ask("bob") == "a"


def test_items_added_later_are_asked_and_identical_ones_labelled():
    stage = Stage(Propagation(), [Item("a", "one")])
    assert stage.work() == ["a"]
    assert stage.offer("bob").complete
    new = [Item("b", "ONE"), Item("c", "two")]
    stage.progress.add_items(new)
    stage.items += new
    stage.code |= {"b": 1, "c": 2}
    assert stage.labels()["b"] == (False, "identical", "a")
    assert stage.work() == ["c"]


def test_the_total_falls_by_what_is_inferred_and_never_below_what_is_done():
    stage = Stage(Propagation(), translations())
    stage.compare(FIGURE_1)
    totals = [stage.design.goal(stage.progress, 1)]
    while (item := stage.ask()) is not None:
        stage.tell(item, "no")
        totals.append(stage.design.goal(stage.progress, 1))
    assert [(goal.done, goal.total) for goal in totals] == [(0, 5), (1, 2), (2, 2)]
    assert stage.offer().reason == "All 6 items are labelled, 2 of them by asking."


def test_ratings_below_a_threshold_mean_inadequate():
    stage = Stage(Propagation(below=3), [Item("a", "a"), Item("b", "b"), Item("c", "c")], Likert())
    stage.compare([("a", "b", 1), ("b", "c", 1)])
    assert stage.ask() == "a"
    stage.tell("a", 3)
    assert stage.ask() == "b"
    stage.tell("b", 2)
    assert stage.labels() == {
        "a": (True, "asked", "a"),
        "b": (False, "asked", "b"),
        "c": (False, "propagated", "b"),
    }


def test_graphs_are_drawn_with_equal_chance_among_those_with_something_to_ask():
    stage = Stage(Propagation(), [Item(name, name) for name in "abcde"])
    stage.compare([("a", "b", 1)])
    stage.ask("zoe")
    stage.progress.on_released("zoe", (0,), None)
    picks = [stage.offer("ann") for _ in range(2000)]
    shares = np.bincount([pick.items[0] for pick in picks], minlength=5) / 2000
    assert {pick.propensity for pick in picks} == {1 / np.count_nonzero(shares)}
    assert shares[1] == 0
    assert np.ptp(shares[shares > 0]) < 0.1


@pytest.mark.parametrize(
    ("design", "protocol", "said"),
    [
        (Propagation(), Pairwise(), "choice"),
        (Propagation(), Choice(labels=("yes", "no"), items_per_page=3), "items_per_page"),
        (Propagation(), Choice(labels=("good", "bad")), "'no' is not one of the labels good, bad"),
        (Propagation(inadequate=("yes", "no")), YES_NO, "but not all"),
        (Propagation(inadequate=()), YES_NO, "but not all"),
        (Propagation(), Direct(), "below = 50"),
        (Propagation(below=0), Direct(), "does not divide the scale 0 to 100"),
        (Propagation(below=6), Likert(), "does not divide the scale 1 to 5"),
        (Propagation(below=3), Direct(criteria={"adequacy": Criterion(), "fluency": Criterion()}), "2 criteria"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_with_a_remedy(design, protocol, said):
    (problem,) = design.problems(protocol, 10)
    assert said in str(problem)
    assert problem.remedy


def test_what_fits_is_not_refused():
    assert Propagation().problems(YES_NO, 10) == []
    assert Propagation(inadequate=("bad", "awful")).problems(Choice(labels=("good", "bad", "awful")), 10) == []
    assert Propagation(below=50).problems(Direct(), 10) == []
