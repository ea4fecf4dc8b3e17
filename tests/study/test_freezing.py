"""A frozen study: its preregistration is in the log, and deviations from it are listed."""

from __future__ import annotations

import hashlib
import json

import pytest

from steelyard import Study
from steelyard.errors import TaskError
from steelyard.report.builder import build_report
from steelyard.report.document import Prose
from tests.cli.running import run


@pytest.fixture
def folder(make_study):
    return make_study('name = "direct"', 'name = "per_item"\njudgments = 2', items=3)


def answer_one(study: Study, annotator: str) -> None:
    task = study.ask(annotator)
    assert task is not None
    study.tell(task, dict.fromkeys(task.item_ids, 50))


def test_the_digest_covers_configuration_hypotheses_and_plan(folder):
    with Study.open(folder) as study:
        frozen = study.freeze(["Nouns score higher than verbs."])
        config = next(iter(study.events(("config",)))).data.config
        assert study.status().frozen == frozen.digest
        assert study.status().deviations == ()
    text = {"config": config, "hypotheses": ["Nouns score higher than verbs."], "planned": 6}
    plain = json.dumps(text, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    assert frozen.planned == 6
    assert len(frozen.digest) == 64
    assert hashlib.sha256(plain.encode()).hexdigest() == frozen.digest


def test_a_study_with_answers_is_frozen_only_by_force_and_says_so(folder):
    with Study.open(folder) as study:
        answer_one(study, "ann")
        with pytest.raises(TaskError, match="1 answers already"):
            study.freeze()
        study.freeze(force=True)
        assert study.status().deviations == ("The study was frozen after 1 answers, not before the first.",)
        with pytest.raises(TaskError, match="already frozen"):
            study.freeze(force=True)


def test_changes_exclusions_and_an_early_end_are_deviations(folder):
    with Study.open(folder) as study:
        study.freeze(["One."])
        answer_one(study, "ann")
        study.annotators.exclude("ann", "too fast")
    path = folder / "study.toml"
    path.write_text(path.read_text() + '\n[model]\nname = "median"\n')
    with Study.open(folder) as study:
        study.set_state("closed", "enough")
        deviations = study.status().deviations
        prose = [
            block.text for part in build_report(study).sections for block in part.blocks if isinstance(block, Prose)
        ]
    assert deviations[0] == "An annotator was excluded outside the preregistered rules."
    assert "model" in deviations[1]
    assert "closed after" in deviations[2]
    assert any(deviations[2] in text for text in prose)
    done = run("status", str(folder), cwd=folder.parent)
    assert "3 deviations" in done.stdout


def test_the_command_prints_the_hash(folder):
    done = run("freeze", str(folder), "--hypothesis", "One.", cwd=folder.parent)
    with Study.open(folder) as study:
        assert study.status().frozen in done.stdout.replace("\n", "") + done.stderr.replace("\n", "")
