"""Overlap gives whole sources to everybody in a tournament (Pighin et al. 2012, §4.1)."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from steelyard import Study

CONFIG = """
title = "t"
question = "Which is better?"
items = "items.csv"
[protocol]
name = "pairwise"
[design]
name = "tournament"
[quality]
overlap_rate = 0.4
"""
SOURCES, SYSTEMS, ANNOTATORS = 8, 6, ("ann", "bob", "cem")


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """Let three annotators rank everything there is for them; the lower code wins."""
    folder: Path = tmp_path_factory.mktemp("shared")
    rows = [f"{s}-{k},s{s},sys{k},text {s} {k}" for s in range(SOURCES) for k in range(SYSTEMS)]
    (folder / "items.csv").write_text("\n".join(["id,source,system,output", *rows]), encoding="utf-8")
    (folder / "study.toml").write_text(CONFIG, encoding="utf-8")
    with Study.open(folder) as study:
        active = list(ANNOTATORS)
        turn = 0
        while active:
            annotator = active[turn % len(active)]
            turn += 1
            task = study.ask(annotator)
            if task is None:
                active.remove(annotator)
            else:
                study.tell(task, {"winner": min(task.item_ids)})
    return folder


def pairs_by_source(folder: Path) -> dict[str, dict[str, list[frozenset[str]]]]:
    """Return the pairs that each annotator compared of each source."""
    pairs: dict[str, dict[str, list[frozenset[str]]]] = defaultdict(lambda: defaultdict(list))
    with Study.open(folder) as study:
        for judgment in study.stream_judgments():
            pairs[judgment.items[0].split("-")[0]][judgment.annotator].append(frozenset(judgment.items))
    return pairs


def test_a_source_is_ranked_by_one_annotator_or_by_all(finished):
    annotators = [len(by_annotator) for by_annotator in pairs_by_source(finished).values()]
    assert set(annotators) == {1, len(ANNOTATORS)}
    assert len(annotators) == SOURCES


def test_everybody_compares_the_same_six_pairs_of_a_shared_source(finished):
    for by_annotator in pairs_by_source(finished).values():
        assert len({frozenset(pairs) for pairs in by_annotator.values()}) == 1
        assert all(len(pairs) == len(set(pairs)) == 6 for pairs in by_annotator.values())


def test_all_answers_but_the_first_annotators_are_overlap(finished):
    with Study.open(finished) as study:
        purposes = defaultdict(set)
        for judgment in study.stream_judgments():
            purposes[judgment.items[0].split("-")[0], judgment.annotator].add(judgment.purpose)
        assert all(len(kinds) == 1 for kinds in purposes.values())
        judgments = [source for (source, _), kinds in purposes.items() if kinds == {"judgment"}]
        assert sorted(judgments) == [str(number) for number in range(SOURCES)]
        assert study.status().stages[0].done == study.status().stages[0].total == 6 * SOURCES


def test_nobody_begins_a_source_before_the_last_is_finished(finished):
    order = defaultdict(list)
    with Study.open(finished) as study:
        for judgment in study.stream_judgments():
            order[judgment.annotator].append(judgment.items[0].split("-")[0])
    for sources in order.values():
        changes = [source for source, before in zip(sources, [None, *sources], strict=False) if source != before]
        assert len(changes) == len(set(changes))


def test_picks_replay(finished):
    from steelyard.study import differing_picks

    with Study.open(finished) as study:
        assert list(differing_picks(study.events())) == []
