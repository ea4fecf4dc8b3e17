"""Exports of other tools become conventional judgments. The samples follow the tools' documented formats."""

from __future__ import annotations

import json

import polars as pl
import pytest

from steelyard import read_judgments
from steelyard.errors import DataError
from steelyard.formats import read_table
from steelyard.formats.uploads import read_upload
from tests.cli.running import run


def label_studio(results, *, annotator: object = 7, number=1, data=None, cancelled=False):
    """Return a task with one annotation."""
    annotation = {
        "id": 10 * number,
        "completed_by": annotator,
        "was_cancelled": cancelled,
        "lead_time": 4.5,
        "result": results,
    }
    return {"id": number, "data": data or {"text": f"text {number}"}, "annotations": [annotation], "predictions": []}


def stars(value):
    return {"from_name": "quality", "to_name": "text", "type": "rating", "value": {"rating": value}}


def pairwise(selected):
    value = {"selected": selected} if selected else {}
    return {"from_name": "pw", "to_name": "text1,text2", "type": "pairwise", "value": value}


def written(tmp_path, content, name="export.json"):
    path = tmp_path / name
    text = json.dumps(content) if name.endswith(".json") else "\n".join(map(json.dumps, content)) + "\n"
    path.write_text(text, encoding="utf-8")
    return path


def test_label_studio_ratings_have_annotators_items_and_times(tmp_path):
    tasks = [
        label_studio([stars(4)], annotator={"id": 3, "email": "ann@example.org"}),
        label_studio([stars(2)], number=2),
        label_studio([stars(5)], number=3, cancelled=True),
    ]
    read = read_judgments(written(tmp_path, tasks), scale=(1, 5))
    ratings = read.observations
    assert ratings.items.ids == ("1", "2")
    assert ratings.value.tolist() == [4.0, 2.0]
    assert [ratings.annotators.ids[code] for code in ratings.annotator] == ["ann@example.org", "7"]
    assert read.seconds("", 0) == 4.5
    assert "Read as an export of Label Studio." in read.notes
    assert "1 × skipped annotation: left out." in read.notes


def test_label_studio_comparisons_name_the_compared_objects(tmp_path):
    data = {"text1": "a long text", "text1_system": "alpha", "text2": "another", "text2_system": "beta"}
    tasks = [
        label_studio([pairwise("left")], data=data),
        label_studio([pairwise("right")], number=2, data=data),
        label_studio([pairwise(None)], number=3, data=data),
    ]
    comparisons = read_judgments(written(tmp_path, tasks)).observations
    assert comparisons.kind == "comparisons"
    assert comparisons.items.ids == ("alpha", "beta")
    assert comparisons.outcome.tolist() == [1, -1, 0]


def test_label_studio_choices_are_labels_and_other_controls_are_counted(tmp_path):
    choice = {"from_name": "sentiment", "to_name": "text", "type": "choices", "value": {"choices": ["positive"]}}
    box = {"from_name": "box", "to_name": "img", "type": "rectanglelabels", "value": {"x": 1}}
    read = read_judgments(written(tmp_path, [label_studio([choice, box])]))
    assert read.observations.classes.ids == ("positive",)
    assert "1 × result of type rectanglelabels: left out." in read.notes


def potato(user, instance, **answers):
    return {"user_id": user, "instance_id": instance, "displayed_text": "…", "label_annotations": answers}


def test_potato_likert_steps_and_sliders_are_ratings(tmp_path):
    lines = [
        potato("ann", "i1", quality={"scale_4": "4"}),
        potato("bob", "i1", quality={"5": "5"}),
        potato("bob", "i2", quality={"slider": "2"}, comment={"text_box": "fine"}),
    ]
    read = read_judgments(written(tmp_path, lines, "annotated_instances.jsonl"))
    ratings = read.observations
    assert ratings.value.tolist() == [4.0, 5.0, 2.0]
    assert [ratings.items.ids[code] for code in ratings.item] == ["i1", "i1", "i2"]
    assert "1 × answer to comment: left out." in read.notes


def test_potato_radio_buttons_are_labels_and_comparisons_are_not_guessed(tmp_path):
    lines = [potato("ann", "i1", tone={"polite": "1"}), potato("ann", "i2", tone={"rude": "true"})]
    labels = read_judgments(written(tmp_path, lines, "x.jsonl")).observations
    assert labels.classes.ids == ("polite", "rude")
    lines = [potato("ann", "i1", preference={"selection": "A"})]
    with pytest.raises(DataError, match=r"Potato has no ratings.*1 × answer to preference"):
        read_judgments(written(tmp_path, lines, "y.jsonl"))


def promptfoo(*results):
    return {"evalId": "e", "results": {"version": 3, "results": list(results), "stats": {}}}


def result(provider, test, score, *, best=None, prompt="p"):
    component = {"pass": best, "score": float(bool(best)), "assertion": {"type": "select-best", "value": "clearer"}}
    return {
        "provider": {"id": f"openai:{provider}", "label": provider},
        "prompt": {"raw": prompt, "label": prompt},
        "vars": {"q": f"question {test}"},
        "testIdx": test,
        "score": score,
        "success": True,
        "gradingResult": {"pass": True, "score": score, "componentResults": [] if best is None else [component]},
    }


def test_promptfoo_scores_are_ratings_of_providers(tmp_path):
    content = promptfoo(
        *(result(name, test, score) for test in (0, 1) for name, score in (("big", 1.0), ("small", 0.25)))
    )
    ratings = read_judgments(written(tmp_path, content), scale=(0, 1)).observations
    assert ratings.items.ids == ("big", "small")
    assert ratings.value.tolist() == [1.0, 0.25, 1.0, 0.25]
    assert ratings.tasks.ids == ("0", "1")


def test_promptfoo_selections_are_comparisons_with_the_selected_output(tmp_path):
    content = promptfoo(
        result("a", 0, 1, best=True),
        result("b", 0, 0, best=False),
        result("c", 0, 0, best=False),
        result("a", 1, 1, best=False),
        result("b", 1, 0, best=False),
    )
    read = read_judgments(written(tmp_path, content))
    table = [
        (read.observations.items.ids[left], read.observations.items.ids[right], outcome)
        for left, right, outcome in zip(
            read.observations.left, read.observations.right, read.observations.outcome, strict=True
        )
    ]
    assert table == [("b", "a", -1), ("c", "a", -1)]
    assert "1 × test without one selected output: left out." in read.notes


def feedback(group, experiment, score):
    return {
        "run_id": f"{group}-{experiment}",
        "session_id": experiment,
        "key": "preference",
        "score": score,
        "comparative_experiment_id": "c1",
        "feedback_group_id": group,
        "feedback_source": {"type": "app", "user_id": "ann"},
    }


def test_langsmith_feedback_of_a_group_is_a_comparison(tmp_path):
    content = [
        feedback("g1", "exp-a", 1),
        feedback("g1", "exp-b", 0),
        feedback("g2", "exp-a", 0),
        feedback("g2", "exp-b", 1),
        feedback("g3", "exp-a", 0.5),
        feedback("g3", "exp-b", 0.5),
    ]
    comparisons = read_judgments(written(tmp_path, content)).observations
    assert comparisons.items.ids == ("exp-a", "exp-b")
    assert comparisons.outcome.tolist() == [1, -1, 0]
    assert comparisons.annotators.ids == ("ann",)


def test_a_list_of_objects_is_a_table(tmp_path):
    rows = [{"annotator": "ann", "item": "a", "value": 1}, {"annotator": "bob", "item": "a", "value": 3}]
    path = written(tmp_path, rows)
    assert read_table(path).equals(pl.DataFrame(rows))
    with pytest.raises(DataError, match="not a list of objects"):
        read_table(written(tmp_path, {"a": 1}, "object.json"))
    (tmp_path / "broken.json").write_text("[{", encoding="utf-8")
    with pytest.raises(DataError, match="not JSON"):
        read_table(tmp_path / "broken.json")


def test_several_controls_are_several_criteria(tmp_path):
    fluency = {**stars(3), "from_name": "fluency"}
    read = read_judgments(written(tmp_path, [label_studio([stars(4), fluency])]), scale=(1, 5))
    assert {name: part.value.tolist() for name, part in read.by_criterion.items()} == {
        "quality": [4.0],
        "fluency": [3.0],
    }


def test_fit_and_import_read_an_export(tmp_path):
    tasks = [label_studio([stars(value)], number=n, annotator=who) for who in (1, 2) for n, value in ((1, 4), (2, 2))]
    path = written(tmp_path, tasks)
    scores = json.loads(
        run("fit", path.name, "--model", "mean", "--scale", "1", "5", "-f", "json", cwd=tmp_path).stdout
    )
    assert [(row["item"], row["score"]) for row in scores] == [("1", 4.0), ("2", 2.0)]
    (tmp_path / "items.csv").write_text("id,text\n1,one\n2,two\n", encoding="utf-8")
    run("new", "study", "--protocol", "likert", "--items", "items.csv", "--columns", "id=id", cwd=tmp_path)
    assert "4 judgments imported" in run("import", "study", path.name, cwd=tmp_path).stdout


def test_an_upload_gives_the_items_of_an_export():
    task = label_studio([stars(4)], data={"id": 9, "text": "a text", "topic": "news", "spans": [1]})
    content = {
        "a.json": [task],
        "b.json": promptfoo({**result("big", 0, 1.0), "response": {"output": "an answer"}}),
        "c.json": [potato("ann", "i1", tone={"rude": "1"}), potato("bob", "i1", tone={"polite": "1"})],
    }
    rows = {name: read_upload(json.dumps(part).encode(), name).table.frame.to_dicts() for name, part in content.items()}
    assert rows == {
        "a.json": [{"id": "1", "text": "a text", "topic": "news"}],
        "b.json": [{"source": "question 0", "system": "big", "output": "an answer"}],
        "c.json": [{"id": "i1", "text": "…"}],
    }
