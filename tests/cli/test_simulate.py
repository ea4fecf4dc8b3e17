"""steelyard simulate, as a person types it."""

from __future__ import annotations

import json

import joblib  # type: ignore[import-untyped]
import pytest

from tests.cli.running import run


@pytest.fixture
def words(tmp_path):
    run("new", "words", "--protocol", "best_worst", cwd=tmp_path)
    return tmp_path


def test_a_dry_run_shows_tasks_and_says_what_it_takes(words):
    done = run("simulate", "words", "--annotators", "12", "--price", "0.2", "--show", "2", cwd=words)
    assert done.stdout.count("→ best: ") == 2
    # 30 words, shown 10 times each, four at a time.
    assert "75 tasks · 12 annotators" in done.stdout
    assert "15.00" in done.stdout
    assert "split-half ρ" in done.stdout


def test_the_study_s_data_stay_untouched(words):
    before = sorted(path.name for path in (words / "words").iterdir())
    run("simulate", "words", cwd=words)
    assert sorted(path.name for path in (words / "words").iterdir()) == before
    assert "study.db" not in before


def test_json_gives_the_expected_reliability_with_its_interval(words):
    (row,) = json.loads(run("simulate", "words", "-f", "json", cwd=words).stdout)
    assert row["lower"] <= row["reliability"] <= row["upper"]
    assert (row["tasks"], row["complete"]) == (75, True)


def test_spammers_cost_reliability(words):
    honest, spammed = (
        json.loads(run("simulate", "words", "--careless", spam, "-f", "json", cwd=words).stdout)[0]["reliability"]
        for spam in ("0", "0.5")
    )
    assert spammed < honest - 0.1


@pytest.mark.slow
@pytest.mark.parametrize(
    "protocol", ["direct", "likert", "choice", "pairwise", "best_worst", "scored_ranking", "ranking", "error_spans"]
)
def test_every_protocol_can_be_dry_run(protocol, tmp_path):
    run("new", "words", "--protocol", protocol, cwd=tmp_path)
    (row,) = json.loads(run("simulate", "words", "-f", "json", cwd=tmp_path).stdout)
    assert row["complete"]
    assert 0 < row["reliability"] <= 1
    assert row["measure"] == ("Krippendorff's α" if protocol == "choice" else "split-half ρ")


def test_too_few_people_and_items_are_warned_of(make_study):
    folder = make_study(design="judgments = 5", items=6)
    done = run("simulate", folder.name, "--annotators", "3", cwd=folder.parent)
    assert "3 annotators are too few" in done.stderr
    assert "6 items are few" in done.stderr
    done = run("simulate", folder.name, "--annotators", "200", cwd=folder.parent)
    assert "annotators get no tasks" in done.stderr


def test_a_study_with_mistakes_is_refused(make_study):
    folder = make_study(design="judgements = 5")
    assert "Did you mean 'judgments'" in run("simulate", folder.name, cwd=folder.parent, code=1).stderr


@pytest.mark.slow
def test_several_jobs_and_another_backend_of_joblib_find_the_same(words):
    alone, threads = (run("simulate", "words", "-f", "json", *jobs, cwd=words).stdout for jobs in ((), ("-j", "2")))
    assert threads == alone
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert run("simulate", "words", "-f", "json", "-j", "2", cwd=words).stdout == alone
