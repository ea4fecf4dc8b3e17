"""Whole documents: who gets which texts, in which order, and what happens to documents that are left."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.designs import NoTask, PerItem
from steelyard.protocols import Direct, ErrorSpans
from steelyard.records import Item
from steelyard.study import Study, differing_picks

MINUTE = 60_000_000


def translations(documents=2, segments=3, systems=("s1", "s2")):
    """Return items in the order of a file: segment by segment, and for each segment all systems."""
    return [
        Item(f"{document}-{segment}-{system}", "text", group=system, context=f"{document}-{segment}", metadata=metadata)
        for document, metadata in ((f"d{n}", {"document": f"d{n}"}) for n in range(documents))
        for segment in range(segments)
        for system in systems
    ]


class Stage:
    """A stage with documents; ids instead of codes."""

    def __init__(self, items, *, judgments=1, protocol=None):
        self.design = PerItem(judgments=judgments, document="document")
        self.protocol = protocol or Direct()
        self.items = items
        self.progress = self.design.new_progress(self.protocol, items)
        self.steps = 0

    def ask(self, annotator, *, answer=True, now=0):
        """Return the ids of the next task, or None; it is answered at once unless it is to stay leased."""
        self.progress.set_time(now)
        self.steps += 1
        rng = [np.random.default_rng(self.steps) for _ in range(2)]
        pick = self.design.pick(self.progress, self.protocol.task_size, annotator, rng[0])
        if isinstance(pick, NoTask):
            return None
        self.progress.on_leased(annotator, pick.items, pick.slot, pick.round, rng[1])
        if answer:
            self.progress.on_answered(pick.items, pick.slot)
        return [self.items[code].id for code in pick.items]

    def release(self, annotator, names, *, again):
        codes = tuple(next(code for code, item in enumerate(self.items) if item.id == name) for name in names)
        self.progress.on_released(annotator, codes, None)
        if again:
            self.progress.allow_again(annotator, codes)

    def ask_all(self, annotator):
        names = []
        while (page := self.ask(annotator)) is not None:
            names.append(page)
        return names


def test_an_annotator_gets_one_systems_document_in_order_before_the_next():
    stage = Stage(translations())
    names = [page[0] for page in stage.ask_all("ann")]
    assert sorted(names) == sorted(item.id for item in stage.items)
    for start in range(0, 12, 3):
        document, _, system = names[start].split("-")
        assert names[start : start + 3] == [f"{document}-{segment}-{system}" for segment in range(3)]
    assert stage.design.goal(stage.progress, 1).done == 12


def test_annotators_at_the_same_time_work_on_different_documents():
    stage = Stage(translations())
    names = {name: [stage.ask(name)[0] for _ in range(1)] for name in ("ann", "bea", "cem", "dan")}
    assert len({(first[0].split("-")[0], first[0].split("-")[2]) for first in names.values()}) == 4
    # All four documents are held, so that there is nothing for a fifth annotator.
    assert stage.ask("eva") is None
    for name, own in names.items():
        own += [page[0] for page in stage.ask_all(name)]
        assert [text.split("-")[1] for text in own] == ["0", "1", "2"]


@pytest.mark.parametrize("again", [False, True], ids=["skipped", "not answered in time"])
def test_a_document_that_is_left_is_handed_on_where_it_was_left(again):
    stage = Stage(translations(documents=1, systems=("s1",)))
    assert stage.ask("ann") == ["d0-0-s1"]
    left = stage.ask("ann", answer=False)
    assert left == ["d0-1-s1"]
    stage.release("ann", left, again=again)
    assert stage.ask_all("bea") == [["d0-1-s1"], ["d0-2-s1"]]
    assert stage.ask("ann") is None
    assert stage.progress.answers.tolist() == [1, 1, 1]


def test_an_annotator_who_skips_a_text_goes_on_and_somebody_else_gets_it():
    stage = Stage(translations(documents=1, systems=("s1",)))
    stage.release("ann", stage.ask("ann", answer=False), again=False)
    assert stage.ask_all("ann") == [["d0-1-s1"], ["d0-2-s1"]]
    assert stage.ask_all("bea") == [["d0-0-s1"]]


def test_an_annotator_comes_back_to_a_document_that_nobody_took():
    stage = Stage(translations(documents=3, systems=("s1",)))
    first = stage.ask("ann")[0]
    stage.release("ann", stage.ask("ann", answer=False), again=True)
    assert [page[0] for page in stage.ask_all("ann")][:2] == [first.replace("-0-", "-1-"), first.replace("-0-", "-2-")]


def test_an_inactive_annotator_is_replaced_only_when_nothing_else_is_left():
    stage = Stage(translations(documents=2, systems=("s1",)))
    first = stage.ask("ann", now=0)[0]
    other = [stage.ask("bea", now=40 * MINUTE)[0] for _ in range(3)]
    assert {text.split("-")[0] for text in other}.isdisjoint({first.split("-")[0]})
    assert stage.ask("cem", now=29 * MINUTE) is None
    assert stage.ask("cem", now=40 * MINUTE) == [first.replace("-0-", "-1-")]
    assert stage.ask("ann", now=41 * MINUTE) is None


def test_every_text_gets_its_judgments_from_different_annotators():
    stage = Stage(translations(), judgments=2)
    pages = {name: stage.ask_all(name) for name in ("ann", "bea", "cem")}
    assert [len(own) for own in pages.values()] == [12, 12, 0]
    assert stage.progress.answers.tolist() == [2] * 12


def test_several_systems_side_by_side_stay_together_for_the_whole_document():
    items = translations(systems=("s1", "s2", "s3", "s4"))
    stage = Stage(items, protocol=ErrorSpans(items_per_page=2))
    pages = stage.ask_all("ann")
    assert len(pages) == 12
    for start in range(0, 12, 3):
        systems = [{name.split("-")[2] for name in page} for page in pages[start : start + 3]]
        assert systems in ([{"s1", "s2"}] * 3, [{"s3", "s4"}] * 3)
        assert [sorted(page)[0].split("-")[1] for page in pages[start : start + 3]] == ["0", "1", "2"]


def test_pages_of_several_texts_show_consecutive_texts_of_one_system():
    stage = Stage(translations(segments=5, systems=("s1",)), protocol=Direct(items_per_page=2))
    pages = stage.ask_all("ann")
    assert [[name.split("-")[1] for name in page] for page in pages] == [["0", "1"], ["2", "3"], ["4"]] * 2


def test_texts_without_a_document_are_asked_one_by_one():
    items = [*translations(documents=1, systems=("s1",)), Item("alone", "text"), Item("too", "text")]
    assert len(Stage(items).ask_all("ann")) == 5


def test_a_column_that_no_item_has_is_refused():
    problems = PerItem(document="doc").item_problems(Direct(), translations())
    assert "no item has a column 'doc'" in problems[0].what
    assert "document" in problems[0].remedy


# In a study

STUDY = """
title = "Documents"
question = "How good is this translation?"
items = "items.csv"
[protocol]
name = "{protocol}"
[design]
name = "per_item"
judgments = 2
document = "document"
[quality]
overlap_rate = {overlap}
"""


def open_study(folder, protocol="direct", overlap=0.0):
    rows = ["id,text,system,source,document"]
    rows += [f"{item.id},a text,{item.group},{item.context},{item.metadata['document']}" for item in translations(3)]
    (folder / "items.csv").write_text("\n".join(rows))
    (folder / "study.toml").write_text(STUDY.format(protocol=protocol, overlap=overlap))
    return Study.open(folder)


ANSWERS = {"direct": 50, "likert": 3, "error_spans": {"score": 50, "spans": []}}


@pytest.mark.parametrize("protocol", ANSWERS)
def test_a_document_survives_a_pause_and_every_pick_can_be_replayed(tmp_path, protocol):
    with open_study(tmp_path, protocol) as study:
        task = study.ask("ann")
        first = task.item_ids[0]
        study.tell(task, {first: ANSWERS[protocol]})
        assert study.core.log.save_checkpoint(least=1)
    with Study.open(tmp_path) as study:
        assert study.ask("ann").item_ids == (first.replace("-0-", "-1-"),)
        for name in ("bea", "ann", "cem"):
            while (task := study.ask(name)) is not None:
                study.tell(task, dict.fromkeys(task.item_ids, ANSWERS[protocol]))
        stage = study.status().stages[0]
        assert (stage.done, stage.total) == (36, 36)
        assert differing_picks(study.events()) == []


def test_overlap_gives_whole_documents_to_everybody(tmp_path):
    with open_study(tmp_path, overlap=0.6) as study:
        for name in ("ann", "bea", "cem", "dan"):
            while (task := study.ask(name)) is not None:
                study.tell(task, dict.fromkeys(task.item_ids, 50))
        overlap = [one for one in study.stream_judgments() if one.purpose == "overlap"]
        documents = {(one.annotator, one.items[0].split("-")[0], one.items[0].split("-")[2]) for one in overlap}
        assert documents
        assert len(overlap) == 3 * len(documents)
        assert differing_picks(study.events()) == []
