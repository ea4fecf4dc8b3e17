"""A tournament, then an absolute stage on its dominance graph, through a real study (Pighin et al. 2012, §3)."""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest

from steelyard import Study, Task
from steelyard.designs import NoTask, Propagation
from steelyard.errors import TaskError
from steelyard.simulate import answer_for
from steelyard.study import differing_picks, rebuild
from steelyard.study.adequacy import adequacy_labels, asking_effort

pytestmark = pytest.mark.filterwarnings("ignore::steelyard.errors.SteelyardWarning")

MINUTE = 60_000_000
SYSTEMS = 5
CONFIG = """
title = "Translations"
question = "Which one says what the source says?"
items = "items.csv"

[[stage]]
name = "tournament"
protocol = { name = "pairwise" }
design = { name = "tournament", follow_up = true }

[[stage]]
name = "adequacy"
protocol = { name = "choice", labels = ["no", "yes"] }
design = { name = "propagation" }

[model]
name = "dominance"
"""


def quality(item: str) -> float:
    """How good a translation is; the reference is best."""
    return 0.95 if item.endswith("-ref") else (sum(map(ord, item)) * 37 % 100) / 120


def rows(sentences: range) -> str:
    """Five translations of each sentence, of which two may be identical, and the reference."""
    lines = []
    for sentence in sentences:
        lines.append(f"s{sentence}-ref,Frase {sentence},Sentence {sentence},Frase {sentence}\n")
        for system in range(SYSTEMS):
            text = f"texto {sentence} {'X' if system < 1 + sentence % 2 else system}"
            text = text.upper() if system else text
            lines.append(f"s{sentence}-{system},{text},Sentence {sentence},Frase {sentence}\n")
    return "".join(lines)


class Campaign:
    """A study with a clock, and people who come and go."""

    def __init__(self, folder: Path, sentences: int, seed: int) -> None:
        folder.mkdir()
        self.folder = folder
        self.sentences = sentences
        (folder / "study.toml").write_text(CONFIG)
        (folder / "items.csv").write_text("id,text,context,reference\n" + rows(range(sentences)))
        self.now = 1_700_000_000_000_000
        self.rng = np.random.default_rng(seed)
        self.study = self.open()
        self.out: list[Task] = []

    def open(self) -> Study:
        return Study.open(self.folder, clock=lambda: self.now)

    def answer(self, task: Task) -> None:
        noise = self.rng.normal(0, 0.1, len(task.items)).tolist()
        values = {item: quality(item) + error for item, error in zip(task.item_ids, noise, strict=True)}
        self.study.tell(task, answer_for(self.study.core.stage_of(task).protocol, values))

    def add_sentences(self) -> None:
        with (self.folder / "items.csv").open("a") as file:
            file.write(rows(range(self.sentences, self.sentences + 2)))
        self.sentences += 2
        self.study.close()
        self.study = self.open()

    def step(self) -> None:
        """Let anything happen."""
        person = f"ann-{self.rng.integers(6)}"
        chance = self.rng.random()
        if chance < 0.5:
            self.out += self.study.ask(person, count=int(self.rng.integers(1, 3)))
        elif chance < 0.85 and self.out:
            task = self.out.pop(int(self.rng.integers(len(self.out))))
            with contextlib.suppress(TaskError):
                self.answer(task)
        elif chance < 0.9 and self.out:
            with contextlib.suppress(TaskError):
                self.study.skip(self.out.pop(), "no idea")
        elif chance < 0.95:
            self.now += int(self.rng.integers(1, 25)) * MINUTE
        elif chance < 0.97:
            change = (
                self.study.annotators.readmit
                if person in self.study.annotators.excluded
                else self.study.annotators.exclude
            )
            with contextlib.suppress(TaskError):
                change(person, "a closer look")
        else:
            self.study.close()
            self.study = self.open()

    def finish(self) -> None:
        """Let those who are here, and others after them, do what is left."""
        self.now += 60 * MINUTE
        people = [f"ann-{n}" for n in range(6)] + [f"new-{n}" for n in range(30)]
        for person in people * 2:
            while (task := self.study.ask(person)) is not None:
                self.answer(task)
        nothing = self.study.offer("newcomer")
        assert isinstance(nothing, NoTask)
        assert nothing.complete

    def labels(self, study: Study):
        stage = study.config.stages[1]
        assert isinstance(stage.design, Propagation)
        with study._log.read() as state:
            progress = state.progress[1]
            return stage.design.labels(progress), stage.design.effort(progress)

    def check(self) -> None:
        events = list(self.study.events())
        assert differing_picks(events) == []
        with rebuild(events, self.folder, f"sqlite:///{self.folder / 'again.db'}") as again:
            assert again.status() == self.study.status()
            assert self.labels(again) == self.labels(self.study)
            assert again.scores().write_csv() == self.study.scores().write_csv()


@pytest.mark.slow
def test_a_quiet_campaign_asks_what_the_paper_says_and_no_more(tmp_path):
    campaign = Campaign(tmp_path / "s", 12, seed=1)
    people = [f"ann-{n}" for n in range(5)]
    waiting = 0
    while waiting < 60:
        person = people[int(campaign.rng.integers(5))]
        task = campaign.study.ask(person)
        waiting = waiting + 1 if task is None else 0
        if task is not None:
            campaign.answer(task)
    frame = campaign.study.judgments()
    by_sentence = defaultdict(list)
    for annotator, items in frame.filter(frame["stage"] == "tournament").select("annotator", "items").iter_rows():
        by_sentence[items[0].split("-")[0]].append((annotator, frozenset(items)))
    assert len(by_sentence) == 12
    for sentence, asked in by_sentence.items():
        assert len({annotator for annotator, _ in asked}) == 1
        assert len({pair for _, pair in asked}) == len(asked)
        # Sentences of odd number have two identical translations: five vertices, else six; both take six, and
        # then those that nobody beat.
        assert 6 <= len(asked) <= 6 + 3, sentence
    labels, effort = campaign.labels(campaign.study)
    assert len(labels) == effort.items == 72
    assert effort.open == 0
    assert effort.reference >= 12
    assert effort.asked == frame.filter(frame["stage"] == "adequacy").height
    assert effort.asked + effort.automatic + effort.collapsed == 72
    assert effort.reduction > 0.3
    assert {label.item for label in labels if label.item.endswith("-ref")} <= {
        label.item for label in labels if label.adequate and label.how == "reference"
    }
    assert campaign.study.offer("newcomer").complete
    campaign.check()
    campaign.study.close()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_whatever_happens_it_ends_and_replays(tmp_path, seed):
    campaign = Campaign(tmp_path / "s", 4, seed)
    for step in range(200):
        campaign.step()
        if step in (60, 150):
            campaign.add_sentences()
    campaign.check()
    campaign.finish()
    labels, effort = campaign.labels(campaign.study)
    assert len(labels) == effort.items == 6 * 8
    assert effort.open == 0
    frame = campaign.study.judgments()
    pairs = Counter(
        (annotator, frozenset(items))
        for annotator, items, late in frame.select("annotator", "items", "late").iter_rows()
        if not late
    )
    assert set(pairs.values()) == {1}
    campaign.study.close()


def test_the_second_stage_waits_for_the_first(tmp_path):
    campaign = Campaign(tmp_path / "s", 1, seed=0)
    tasks = []
    while (task := campaign.study.ask("ann")) is not None:
        tasks.append(task.stage)
        if task.stage == "tournament":
            assert campaign.study.offer("bob").reason_code == "waiting"
        campaign.answer(task)
    assert tasks == sorted(tasks, key=["tournament", "adequacy"].index)
    assert "adequacy" in tasks
    campaign.study.close()


def test_identical_translations_share_one_score_and_each_counts_for_its_system(tmp_path):
    campaign = Campaign(tmp_path / "s", 2, seed=3)
    while (task := campaign.study.ask("ann")) is not None:
        campaign.answer(task)
    study = campaign.study
    item_ids = {item for items in study.judgments()["items"] for item in items}
    # In sentence 1 the second translation is the first in capitals: one of the two is never shown.
    assert ("s1-0" in item_ids) != ("s1-1" in item_ids)
    scores = {row["item"]: row for row in study.scores().iter_rows(named=True)}
    assert scores["s1-0"]["score"] is not None
    assert scores["s1-0"]["score"] == scores["s1-1"]["score"]
    assert len(scores) == len(study.items)
    labels = adequacy_labels(study)
    assert set(labels["item"]) == {item.id for item in study.items}
    assert asking_effort(study)["adequacy"].items == 12
    study.close()


def test_a_source_whose_annotator_never_comes_back_goes_to_somebody_else_after_a_while(tmp_path):
    campaign = Campaign(tmp_path / "s", 1, seed=0)
    for _ in range(2):
        campaign.answer(campaign.study.ask("gone"))
    assert campaign.study.offer("bob").reason_code == "waiting"
    campaign.now += 31 * MINUTE
    task = campaign.study.ask("bob")
    assert task is not None
    campaign.answer(task)
    assert differing_picks(campaign.study.events()) == []
    campaign.study.close()
