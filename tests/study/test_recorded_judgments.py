"""Judgments that were collected elsewhere become a study with the protocol that would have asked for them."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from steelyard import Study, read_judgments
from steelyard.errors import DataError
from steelyard.formats import write_table
from steelyard.formats.uploaded_judgments import judgments_of_upload
from steelyard.formats.uploads import read_upload
from steelyard.study.importing import import_file
from steelyard.study.recipes import recipe_toml, recorded_judgments

VALUES: list[tuple[str, str, int]] = [("ann", "x", 5), ("bob", "x", 1), ("ann", "y", 2)]
STEPS: list[dict[str, Any]] = [{"annotator": name, "item": item, "value": value} for name, item, value in VALUES]
CASES: dict[str, tuple[list[dict[str, Any]], dict[str, Any]]] = {
    "likert": (STEPS, {"name": "likert", "scale": [1, 5]}),
    "direct": ([{**row, "value": row["value"] + 0.5} for row in STEPS], {"name": "direct", "scale": [1.5, 5.5]}),
    "criteria": (
        [{**row, "criterion": c} for row in STEPS for c in ("joy", "fear")],
        {"name": "likert", "criteria": {"joy": {"scale": [1, 5]}, "fear": {"scale": [1, 5]}}},
    ),
    "choice": (
        [{"annotator": "ann", "item": "x", "label": "rude"}, {"annotator": "bob", "item": "y", "label": "polite"}],
        {"name": "choice", "labels": ["polite", "rude"]},
    ),
    "pairwise": (
        [{"annotator": "ann", "left": "x", "right": "y", "winner": winner} for winner in ("left", "tie")],
        {"name": "pairwise", "ties": True},
    ),
    "best_worst": (
        [{"annotator": "ann", "items": ["x", "y", "z", "w"], "best": "x", "worst": "w"}],
        {"name": "best_worst", "size": 4},
    ),
    "ranking": (
        [{"annotator": "ann", "ranking": [["x"], ["y", "z"]]}, {"annotator": "bob", "ranking": [["y"], ["x"]]}],
        {"name": "ranking", "size": 3, "ties": True},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_study_accepts_every_judgment_it_was_made_from(case, tmp_path):
    rows, protocol = CASES[case]
    recipe = recorded_judgments(read_judgments(rows), {"x": "Text of x"}, title="Old", source="old.csv")
    assert recipe.values["protocol"] == protocol
    assert ("x", "Text of x") in recipe.items.rows()
    recipe.items.write_csv(tmp_path / "items.csv")
    (tmp_path / "study.toml").write_text(recipe_toml(recipe, ()), encoding="utf-8")
    write_table(pl.DataFrame(rows), tmp_path / "judgments.jsonl")
    with Study.open(tmp_path) as study:
        import_file(study, tmp_path / "judgments.jsonl")
        # Two criteria of one item are one answer.
        assert study.status().judgments == (3 if case == "criteria" else len(rows))


def test_comparisons_by_several_criteria_are_refused():
    rows = [{"left": "x", "right": "y", "winner": "x", "criterion": c, "annotator": "a"} for c in ("fluency", "style")]
    with pytest.raises(DataError, match="several criteria: fluency, style"):
        recorded_judgments(read_judgments(rows), {}, title="t", source="s")


def label_studio(number, annotator, stars):
    result = {"from_name": "quality", "to_name": "text", "type": "rating", "value": {"rating": stars}}
    annotation = {"id": number, "completed_by": annotator, "result": [result]}
    return {"id": number, "data": {"text": f"Answer {number}"}, "annotations": [annotation]}


def potato(user, instance, step):
    text = f"Text of {instance}"
    return {"user_id": user, "instance_id": instance, "displayed_text": text, "label_annotations": {"q": {step: step}}}


UPLOADS = {
    "tasks.json": (json.dumps([label_studio(1, 7, 4), label_studio(2, 8, 2)]), "Label Studio", 2, {"1": "Answer 1"}),
    "annotated_instances.jsonl": (
        "\n".join(json.dumps(potato(user, "i1", "scale_4")) for user in ("ann", "bob", "cleo")),
        "Potato",
        3,
        {"i1": "Text of i1"},
    ),
    "ratings.csv": ("worker_id;item;score\nann;x;5\nbob;x;4\nann;y;1\n", "", 3, {}),
}


@pytest.mark.parametrize("name", UPLOADS)
def test_judgments_are_found_in_an_upload(name):
    text, tool, count, texts = UPLOADS[name]
    data = text.encode()
    upload = judgments_of_upload(data, name, read_upload(data, name))
    assert upload is not None
    assert (upload.tool, upload.count, upload.judgments.kind) == (tool, count, "ratings")
    assert texts.items() <= dict(upload.texts).items()


@pytest.mark.parametrize("text", ["id,text,score\na,One,3\nb,Two,4\n", "annotator,text\nann,One\n", "text\nOne\nTwo\n"])
def test_a_table_of_items_is_not_taken_for_judgments(text):
    assert judgments_of_upload(text.encode(), "items.csv", read_upload(text.encode(), "items.csv")) is None


def test_an_export_of_potato_in_json_lines_gives_its_items():
    data = UPLOADS["annotated_instances.jsonl"][0].encode()
    assert read_upload(data, "x.jsonl").table.frame.rows() == [("i1", "Text of i1")]
