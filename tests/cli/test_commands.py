"""The command line, as a person types it."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from steelyard.cli.app import Commands
from tests.cli.running import run

COMMANDS = [entry.name for entry in Commands.entries if entry.name != "prolific"]


def test_the_installed_command_and_the_module_are_the_same(tmp_path):
    script = Path(sys.executable).parent / "steelyard"
    by_script = subprocess.run([script, "--version"], capture_output=True, text=True, cwd=tmp_path, check=True)
    by_module = subprocess.run(
        [sys.executable, "-m", "steelyard", "--version"], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert by_script.stdout == by_module.stdout
    assert by_script.stdout.startswith("steelyard 0.")


@pytest.mark.slow
def test_an_error_leaves_no_traceback_and_exit_1(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "steelyard", "fit", "gone.csv"], capture_output=True, text=True, cwd=tmp_path
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("✗ gone.csv: there is no such file.")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_shows_an_example(command, tmp_path):
    assert f"Example: steelyard {command}" in run(command, "--help", cwd=tmp_path).stdout


def test_the_environment_names_the_database_of_every_command(tmp_path, monkeypatch):
    """In the container, the server and commands beside it must use the same database."""
    run("new", "words", cwd=tmp_path)
    settings = tmp_path / "words" / "study.toml"
    settings.write_text(f'name = "words"\n{settings.read_text(encoding="utf-8")}', encoding="utf-8")
    monkeypatch.setenv("STEELYARD_DATABASE", f"sqlite:///{tmp_path}/shared.db")
    run("judge", "words", "--annotator", "me", "--max-tasks", "1", cwd=tmp_path, text="50\n")
    assert json.loads(run("status", "words", "--format", "json", cwd=tmp_path).stdout)[0]["judgments"] == 1
    assert not (tmp_path / "words" / "study.db").exists()
    run("backup", "words", "-o", "words.steelyard", cwd=tmp_path)
    monkeypatch.delenv("STEELYARD_DATABASE")
    run("restore", "words.steelyard", "restored", cwd=tmp_path)
    assert json.loads(run("status", "restored", "--format", "json", cwd=tmp_path).stdout)[0]["judgments"] == 1


def test_a_file_of_judgments_becomes_a_study_with_scores_and_a_report(tmp_path):
    rows = [("ann", "joy", 92), ("bob", "joy", 85), ("ann", "anger", 8), ("bob", "anger", 12)]
    (tmp_path / "old.csv").write_text("annotator,item,value\n" + "".join(f"{a},{i},{v}\n" for a, i, v in rows))
    done = run("import", "old", "old.csv", "--new", "--scale", "0", "100", cwd=tmp_path)
    assert "4 judgments imported" in done.stdout
    status = json.loads(run("status", "old", "--format", "json", cwd=tmp_path).stdout)
    assert status[0]["judgments"] == 4
    scores = json.loads(run("scores", "old", "--model", "mean", "--format", "json", cwd=tmp_path).stdout)
    assert [(row["item"], row["score"]) for row in scores] == [("joy", 88.5), ("anger", 10.0)]  # means by hand
    refused = run("import", "old", "old.csv", "--new", cwd=tmp_path, code=1)
    assert "old already exists" in refused.stderr


def test_a_file_that_cannot_become_a_study_leaves_nothing_behind(tmp_path):
    (tmp_path / "one.csv").write_text("annotator,item,value\nann,joy,92\nbob,joy,85\n")
    assert "one item only" in run("import", "one", "one.csv", "--new", cwd=tmp_path, code=1).stderr
    assert [path.name for path in tmp_path.iterdir()] == ["one.csv"]


def test_a_new_study_is_named_after_its_folder_unless_it_is_the_example(tmp_path):
    run("new", "answers", "--question", "How helpful is this answer?", cwd=tmp_path)
    assert 'title = "answers"' in (tmp_path / "answers" / "study.toml").read_text(encoding="utf-8")
    done = run("new", "words", cwd=tmp_path)
    assert 'title = "How positive?"' in (tmp_path / "words" / "study.toml").read_text(encoding="utf-8")
    assert "steelyard serve words" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "protocol", ["direct", "likert", "choice", "pairwise", "best_worst", "scored_ranking", "ranking", "error_spans"]
)
def test_a_new_study_runs_as_it_is(protocol, tmp_path):
    run("new", "words", "--protocol", protocol, cwd=tmp_path)
    assert "30 items are valid" in run("check", "words", cwd=tmp_path).stdout
    first = {"direct": "50", "likert": "3", "choice": "1", "pairwise": "1", "best_worst": "1\n2", "ranking": "1>2=3>4"}
    first["error_spans"] = "\n50"
    typed = first.get(protocol, "10\n20\n30\n40\n50")
    done = run("judge", "words", "--annotator", "me", "--max-tasks", "1", cwd=tmp_path, text=typed + "\n")
    assert "1 answer saved" in done.stdout
    status = json.loads(run("status", "words", "--format", "json", cwd=tmp_path).stdout)
    assert status[0]["judgments"] == 1
    scores = json.loads(run("scores", "words", "--format", "json", cwd=tmp_path).stdout)
    assert sum(row["judgments"] > 0 for row in scores) >= 1


def test_judging_in_the_terminal_explains_what_is_wrong_and_can_skip_and_stop(tmp_path):
    run("new", "words", cwd=tmp_path)
    done = run("judge", "words", "--annotator", "me", cwd=tmp_path, text="lots\n101\n50\ns\nq\n")
    assert "'lots' is not a number" in done.stdout
    assert "outside the scale" in done.stdout
    assert "1 answer saved" in done.stdout
    assert "1 skipped" in run("status", "words", cwd=tmp_path).stdout


@pytest.mark.slow
def test_from_a_file_of_items_to_scores(tmp_path):
    (tmp_path / "my words.csv").write_text("word\n" + "".join(f"word {n}\n" for n in range(50)))
    run("new", "study", "--items", "my words.csv", "--question", 'How "nice"?', "-n", "2", cwd=tmp_path)
    rows = "".join(f"{who},word {n},{n}\n" for n in range(50) for who in ("ann", "bob"))
    (tmp_path / "judgments.csv").write_text("annotator,item,value\n" + rows)
    assert "100 judgments imported" in run("import", "study", "judgments.csv", cwd=tmp_path).stdout
    again = run("import", "study", "judgments.csv", cwd=tmp_path).stdout
    assert "0 judgments imported" in again
    assert "100 were already imported" in again
    table = run("scores", "study", "--top", "3", cwd=tmp_path).stdout
    assert "word 49" in table
    assert "… and 47 more" in table
    run("export", "study", "--what", "scores", "-o", "scores.csv", cwd=tmp_path)
    table_rows = list(csv.DictReader((tmp_path / "scores.csv").read_text().splitlines()))
    assert (table_rows[0]["item"], len(table_rows)) == ("word 49", 50)
    # Two annotators who agree exactly leave the stretch of the scale to the prior of their slopes.
    assert float(table_rows[0]["score"]) == pytest.approx(49, abs=4)
    # The plain model is one word away.
    file = tmp_path / "study" / "study.toml"
    assert '"calibrated_scale"  # simpler: mean' in file.read_text()
    file.write_text(file.read_text().replace('"calibrated_scale"', '"mean"'))
    run("export", "study", "--what", "scores", "-o", "plain.csv", cwd=tmp_path)
    plain = list(csv.DictReader((tmp_path / "plain.csv").read_text().splitlines()))
    assert (plain[0]["item"], plain[0]["score"]) == ("word 49", "49.0")


@pytest.mark.slow
@pytest.mark.parametrize("what", ["judgments", "answers", "scores", "log"])
def test_everything_can_be_exported(what, tmp_path):
    run("new", "words", cwd=tmp_path)
    run("judge", "words", "--annotator", "me", "--max-tasks", "2", cwd=tmp_path, text="5\n6\n")
    printed = run("export", "words", "--what", what, cwd=tmp_path).stdout
    run("export", "words", "--what", what, "-o", "out.jsonl" if what == "log" else "out.csv", cwd=tmp_path)
    written = (tmp_path / ("out.jsonl" if what == "log" else "out.csv")).read_text()
    assert printed == written
    assert len(written.splitlines()) >= 3


def test_an_exported_study_is_the_same_file_again(tmp_path):
    run("new", "words", "--protocol", "best_worst", cwd=tmp_path)
    run("judge", "words", "--annotator", "me", "--max-tasks", "2", cwd=tmp_path, text="1\n2\n3\n4\n")
    run("export", "words", "-o", "judgments.csv", cwd=tmp_path)
    live = json.loads(run("scores", "words", "-f", "json", cwd=tmp_path).stdout)
    fitted = json.loads(run("fit", "judgments.csv", "-f", "json", cwd=tmp_path).stdout)
    judged = {row["item"]: row["score"] for row in live if row["judgments"]}
    assert {row["item"]: row["score"] for row in fitted} == judged


def test_fit_prints_what_a_machine_needs(tmp_path):
    (tmp_path / "r.csv").write_text("annotator,item,value\na,x,1\nb,x,3\na,y,5\nb,y,5\n")
    rows = json.loads(run("fit", "r.csv", "--model", "mean", "--format", "json", cwd=tmp_path).stdout)
    assert [(row["item"], row["score"], row["rank"], row["judgments"]) for row in rows] == [
        ("y", 5.0, 1, 2),
        ("x", 2.0, 2, 2),
    ]
    assert {"item", "score", "lower", "upper", "rank", "judgments"} <= set(rows[0])
    table = csv.DictReader(io.StringIO(run("fit", "r.csv", "--format", "csv", cwd=tmp_path).stdout))
    assert [row["item"] for row in table] == ["y", "x"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("annotator,item,value\na,x,1\nb,y,2\n", "mean"),
        ("annotator,left,right,winner\na,x,y,left\nb,x,y,tie\n", None),
        ("annotator,item1,item2,item3,best,worst\na,x,y,z,x,z\n", None),
        ("annotator,item,label\na,x,yes\nb,x,no\n", "majority"),
        ("annotator,ranking\na,x>y=z\n", None),
        ("item,value\nx,1\ny,2\n", "easl"),
    ],
)
def test_every_conventional_file_fits_and_agrees_without_options(text, model, tmp_path):
    (tmp_path / "j.csv").write_text(text)
    rows = json.loads(run("fit", "j.csv", "-f", "json", *(["--model", model] if model else []), cwd=tmp_path).stdout)
    assert {"x", "y"} & {row["item"] for row in rows}
    figures = json.loads(run("agreement", "j.csv", "-f", "json", cwd=tmp_path).stdout)
    assert {"statistic", "label", "value", "lower", "upper"} <= set(figures[0])
    assert run("agreement", "j.csv", cwd=tmp_path).stdout


def test_bad_rows_are_named_with_the_option_that_skips_them(tmp_path):
    (tmp_path / "votes.csv").write_text("model_a,model_b,winner\nx,y,model_a\ny,x,tie\nx,x,tie\ny,z,b\nz,x,b\n")
    refusal = run("fit", "votes.csv", cwd=tmp_path, code=1)
    assert "votes.csv line 4 (model_b): 'x' is compared with itself." in refusal.stderr
    assert "1 of 5 rows is invalid. Correct the file, or leave invalid rows out: --skip-bad-rows" in refusal.stderr
    for command in ("fit", "agreement"):
        result = run(command, "votes.csv", "--skip-bad-rows", cwd=tmp_path)
        assert "1 bad row skipped: line 4: 'x' is compared with itself." in result.stderr


def test_columns_can_be_mapped(tmp_path):
    (tmp_path / "j.csv").write_text("who,segment,score_raw\na,x,1\nb,x,3\n")
    rows = json.loads(
        run("fit", "j.csv", "-f", "json", "-c", "annotator=who", "-c", "item=segment", "-c", "value=score_raw",
            cwd=tmp_path).stdout
    )  # fmt: skip
    assert rows[0]["score"] == 2.0


def test_wrong_data_is_exit_1_with_every_problem(tmp_path):
    folder = tmp_path / "s"
    folder.mkdir()
    (folder / "study.toml").write_text(
        'title = "T"\nquestion = "Q"\nitems = "items.csv"\n[protocol]\nname = "direkt"\n'
    )
    (folder / "items.csv").write_text("id,text\na,x\na,y\n")
    errors = run("check", "s", cwd=tmp_path, code=1).stderr
    assert "study.toml line 5" in errors
    assert "items.csv line 3" in errors
    assert run("check", "nowhere", cwd=tmp_path, code=1).stderr.count("✗") == 1
    assert "no such file" in run("fit", "nowhere.csv", cwd=tmp_path, code=1).stderr
    run("scores", "s", cwd=tmp_path, code=1)


def test_a_study_without_judgments_says_so(tmp_path):
    run("new", "words", cwd=tmp_path)
    assert "no judgments yet" in run("scores", "words", cwd=tmp_path, code=1).stderr


def test_a_folder_that_is_in_use_is_left_alone(tmp_path):
    (tmp_path / "words").mkdir()
    (tmp_path / "words" / "thesis.txt").write_text("precious")
    assert "not empty" in run("new", "words", cwd=tmp_path, code=1).stderr
    assert [path.name for path in (tmp_path / "words").iterdir()] == ["thesis.txt"]


def test_a_refused_new_study_leaves_nothing_behind(tmp_path):
    (tmp_path / "items.csv").write_text("id,text\na,x\na,y\n")
    run("new", "words", "--items", "items.csv", cwd=tmp_path, code=1)
    run("new", "words", "--protocol", "pairwize", cwd=tmp_path, code=1)
    assert [path.name for path in tmp_path.iterdir()] == ["items.csv"]


def test_a_file_of_items_with_other_columns_can_be_used_at_once(tmp_path):
    (tmp_path / "items.csv").write_text("lemma,notes\na,x\nb,y\nc,z\n")
    refused = run("new", "words", "--items", "items.csv", cwd=tmp_path, code=1).stderr
    assert "--columns text=lemma" in refused
    options = ["-c", "text=lemma", "-p", "best_worst", "--size", "3"]
    run("new", "words", "--items", "items.csv", *options, cwd=tmp_path)
    checked = run("check", "words", cwd=tmp_path).stdout
    assert "3 items per task" in checked
    assert "further columns, not shown to annotators: notes" in checked


def test_check_sees_what_was_changed_since_people_began(tmp_path):
    run("new", "words", cwd=tmp_path)
    run("judge", "words", "--annotator", "me", "--max-tasks", "1", cwd=tmp_path, text="5\n")
    path = tmp_path / "words" / "study.toml"
    path.write_text(path.read_text().replace("[0, 100]", "[0, 10]"))
    assert "the protocol has changed" in run("check", "words", cwd=tmp_path, code=1).stderr


def test_check_says_which_setting_lets_checks_act(tmp_path):
    (tmp_path / "words.csv").write_text("word\n" + "".join(f"word {n}\n" for n in range(6)))
    run("new", "words", "--items", "words.csv", "--protocol", "direct", "--question", "How?", cwd=tmp_path)
    (tmp_path / "words" / "gold.csv").write_text("items,answer\nword 1,50\n")
    with (tmp_path / "words" / "study.toml").open("a") as file:
        file.write('\n[quality]\nchecks = { file = "gold.csv" }\n')
    assert "set min_checks = 1 in [quality.checks]." in run("check", "words", cwd=tmp_path).stderr


def test_check_names_what_is_wrong_in_every_table_at_once(tmp_path):
    folder = tmp_path / "s"
    folder.mkdir()
    (folder / "study.toml").write_text(
        'titel = "T"\nquestion = "Q"\nitems = "gone.csv"\n[protocol]\nname = "direct"\nscale = [9, 1]\n'
        '[design]\njudgments = 0\n[model]\nname = "mean"\nlevel = 2\n'
    )
    errors = run("check", "s", cwd=tmp_path, code=1).stderr
    for place in ("line 1 (titel)", "line 6 (protocol.scale)", "line 8 (design.judgments)", "line 11 (model.level)"):
        assert place in errors
    assert str(Path("s") / "gone.csv") in errors


def test_who_stops_gives_the_task_back(tmp_path):
    run("new", "words", cwd=tmp_path)
    for end in ("q\n", ""):
        done = run("judge", "words", "--annotator", "me", cwd=tmp_path, text=f"5\n{end}")
        assert "1 answer saved" in done.stdout
    assert json.loads(run("status", "words", "-f", "json", cwd=tmp_path).stdout)[0]["stage_leased"] == 0


def test_a_slip_costs_only_the_value_it_was_in(tmp_path):
    run("new", "words", "--protocol", "scored_ranking", cwd=tmp_path)
    done = run("judge", "words", "-a", "me", "--max-tasks", "1", cwd=tmp_path, text="10\nx\n20\n30\n40\n50\n")
    assert "1 answer saved" in done.stdout


def test_what_is_known_about_annotators_fits_a_screen(tmp_path):
    rows = "".join(f"{who},i{n},{'yes' if n % 2 else 'no'}\n" for who in ("ann", "bob", "cleo") for n in range(8))
    (tmp_path / "l.csv").write_text("annotator,item,label\n" + rows)
    table = run("fit", "l.csv", "-m", "dawid_skene", "--annotators", "--top", "2", cwd=tmp_path).stdout
    assert len(table.splitlines()) == 4
    assert "(0." in table


def test_an_interval_is_not_cut_at_a_guessed_scale(tmp_path):
    (tmp_path / "r.csv").write_text("annotator,item,value\na,x,90\nb,x,95\na,y,5\nb,y,9\n")
    guessed = json.loads(run("fit", "r.csv", "-f", "json", cwd=tmp_path).stdout)
    result = json.loads(run("fit", "r.csv", "--scale", "0", "1000", "-f", "json", cwd=tmp_path).stdout)
    assert guessed[0]["upper"] == pytest.approx(result[0]["upper"])
    assert guessed[0]["upper"] > 95


@pytest.mark.parametrize(
    "arguments", [["frobnicate"], ["fit"], ["fit", "x.csv", "--format", "xml"], ["fit", "x.csv", "-c", "nonsense"]]
)
def test_wrong_usage_is_exit_2(arguments, tmp_path):
    run(*arguments, cwd=tmp_path, code=2)


@pytest.mark.slow
def test_the_demo_places_the_verbs(tmp_path):
    done = run("demo", "--format", "json", "--keep", "verbs", "--annotators", "12", cwd=tmp_path)
    rows = json.loads(done.stdout)
    assert len(rows) == 150
    assert all(row["lower"] <= row["score"] <= row["upper"] for row in rows)
    oracle = {row["item"]: float(row["score"]) for row in csv.DictReader(_oracle().read_text().splitlines())}
    within = sum(row["lower"] - 8 <= oracle[row["item"]] <= row["upper"] + 8 for row in rows)
    assert within > 130
    assert "300 judgments" in run("status", "verbs", cwd=tmp_path).stdout


def _oracle() -> Path:
    from steelyard.examples import FOLDER

    return FOLDER / "verbs" / "oracle.csv"


@pytest.mark.slow
def test_files_of_several_kinds_are_scored_on_one_scale(tmp_path):
    sliders = "".join(f"{who},{item},{value}\n" for who in "uv" for item, value in (("a", 10), ("b", 60), ("c", 90)))
    (tmp_path / "sliders.csv").write_text(f"annotator,item,value\n{sliders}")
    (tmp_path / "pairs.csv").write_text("annotator,left,right,winner\nu,a,d,right\nx,d,c,right\nx,b,c,tie\n")
    files = ("sliders.csv", "pairs.csv", "--scale", "0", "100")
    rows = json.loads(run("fit", *files, "-f", "json", cwd=tmp_path).stdout)
    assert {row["item"]: row["judgments"] for row in rows} == {"a": 3, "b": 3, "c": 4, "d": 2}
    assert all(0 <= row["score"] <= 100 for row in rows)
    refused = run("fit", *files, "--model", "mean", cwd=tmp_path, code=1).stderr
    assert "mean needs ratings; these are mixed. Use calibrated_scale" in refused
