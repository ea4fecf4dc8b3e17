"""Marked errors from the log to exports, agreement and report; and back from files."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from steelyard.analysis.analysis import Analysis
from steelyard.errors import AnswerError, DataError
from steelyard.formats import read_items, read_judgments, write_table
from steelyard.formats.uploads import read_upload
from steelyard.observations import Span
from steelyard.reliability import mark_agreement
from steelyard.report.document import Table
from steelyard.report.sections import marks as section_on_marks
from steelyard.study import Study
from steelyard.study.exporting import conventional_judgments, write_judgments
from steelyard.study.importing import import_file
from steelyard.study.marks import mark_table, write_wmt
from steelyard.study.recipes import recorded_judgments

MINOR, MAJOR = {"start": 0, "end": 4, "severity": "minor"}, {"start": 5, "end": 9, "severity": "major"}
OMISSION = {"omission": True, "severity": "minor"}


def write(folder: Path, protocol: str = "", items: str | None = None) -> Path:
    folder.mkdir()
    rows = "".join(f"{system}-{n},some text {n},{system},source {n}\n" for system in ("A", "B") for n in range(2))
    (folder / "items.csv").write_text(items or f"id,text,group,context\n{rows}", encoding="utf-8")
    (folder / "study.toml").write_text(
        f'title = "T"\nquestion = "Q"\nitems = "items.csv"\n[protocol]\nname = "error_spans"\n{protocol}', "utf-8"
    )
    return folder


def answer(study: Study, annotator: str, answers: dict[str, dict[str, object]]) -> None:
    for _ in answers:
        task = study.ask(annotator)
        assert task is not None
        study.tell(task, {item: answers[item] for item in task.item_ids})


def answers_in(study: Study) -> dict[tuple[str, str], object]:
    return {(j.annotator, j.items[0]): j.answer for j in study.stream_judgments()}


ANN = {
    "A-0": {"score": 80, "spans": [MINOR]},
    "A-1": {"score": 100, "spans": []},
    "B-0": {"score": 20, "spans": [MAJOR, OMISSION]},
    "B-1": {"score": 50, "spans": [MINOR, MAJOR]},
}
BOB = {**ANN, "A-0": {"score": 90, "spans": []}, "B-1": {"score": 40, "spans": [MAJOR]}}


@pytest.fixture
def study(tmp_path):
    with Study.open(write(tmp_path / "study")) as opened:
        answer(opened, "ann", ANN)
        answer(opened, "bob", BOB)
        yield opened


def test_a_mark_beyond_the_text_is_refused_and_nothing_is_saved(tmp_path):
    with Study.open(write(tmp_path / "study")) as study:
        task = study.ask("ann")
        with pytest.raises(AnswerError, match="ends at character 12, but the text has 11"):
            study.tell(task, {task.item_ids[0]: {"score": 1, "spans": [{**MINOR, "end": 12}]}})
        assert study.status().judgments == 0


def test_marks_are_exported_one_a_row_with_their_words(study):
    table = mark_table(study, real_ids=True).sort("annotator", "item", "start")
    assert table.filter(annotator="bob").select("item", "group", "text", "severity", "omission").rows() == [
        ("B-0", "B", None, "minor", True),
        ("B-0", "B", "text", "major", False),
        ("B-1", "B", "text", "major", False),
    ]
    assert set(table["origin"]) == {"annotator"}


def test_what_became_of_suggestions_is_in_the_export(tmp_path):
    suggested = json.dumps([MINOR, MAJOR, OMISSION]).replace('"', '""')
    folder = write(tmp_path / "study", 'suggestions = "marks"', f'id,text,marks\na,some text,"{suggested}"\n')
    with Study.open(folder) as study:
        spans = [{**MINOR, "suggestion": 0}, {**MAJOR, "severity": "minor", "suggestion": 1}, {**MINOR, "end": 2}]
        value = {"score": 50, "spans": spans, "suggestions": [MINOR, MAJOR, OMISSION]}
        study.tell(study.ask("ann"), {"a": value})
        assert mark_table(study)["origin"].to_list() == ["kept", "changed", "annotator", "removed"]
        blocks = section_on_marks.section(Analysis.of(study)).blocks
        table = next(block for block in blocks if isinstance(block, Table) and block.name == "suggestions")
        assert table.frame["value"].to_list() == [1, 1, 1, 1]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_exported_judgments_are_imported_with_their_marks(study, tmp_path, suffix):
    path = tmp_path / f"judgments{suffix}"
    if suffix == ".parquet":
        write_judgments(study, path, real_ids=True)
    else:
        write_table(conventional_judgments(study, real_ids=True), path)
    with Study.open(write(tmp_path / "other")) as other:
        assert import_file(other, path).added == 8
        assert answers_in(other) == answers_in(study)
        assert import_file(other, path).added == 0


def test_scores_are_ratings_and_marks_do_not_change_them(study):
    ratings = study.observations("ratings")[""]
    assert sorted(ratings.value.tolist()) == sorted(v["score"] for a in (ANN, BOB) for v in a.values())
    means = dict(study.scores().select("item", "score").iter_rows())
    assert means["A-0"] == 85
    assert means["B-1"] == 45


def test_the_analysis_has_agreement_and_counts(study):
    analysis = Analysis.of(study)
    values = {row["statistic"]: row["value"] for row in analysis.reliability_table().iter_rows(named=True)}
    # 4 of ann's only; B-0: 4 + 4, both; B-1: 8 of ann's and 4 of bob's, 4 in common.
    assert values["character_f1"] == pytest.approx((8 + 8) / (4 + 8 + 12))
    assert values["texts_with_errors"] == pytest.approx(5 / 8)
    assert values["agreement_on_any_error"] == pytest.approx(3 / 4)
    blocks = section_on_marks.section(analysis).blocks
    errors = next(block.frame for block in blocks if isinstance(block, Table) and block.name == "errors")
    assert errors.rows() == [("A", 4, 0.25, 0.25, 0.0), ("B", 4, 1.0, 0.75, 1.0)]
    assert analysis.error_counts.filter(system="B")["errors"].to_list() == [4, 3]


ESA = [
    {"line_id": 0, "system": "A", "annotator": "x", "src": "one", "tgt": "eins zwei", "doc_id": "d", "esa_score": 70,
     "esa_spans": [{"start_i": 0, "end_i": 3, "severity": "minor"},
                   {"start_i": "missing", "end_i": "missing", "severity": "major"}]},
    {"line_id": 0, "system": "A", "annotator": "y", "src": "one", "tgt": "eins zwei", "doc_id": "d", "esa_score": 90,
     "esa_spans": []},
    {"line_id": 0, "system": "B", "annotator": "x", "src": "one", "tgt": "uno", "doc_id": "d", "esa_score": 10,
     "esa_spans": [{"start_i": 0, "end_i": 2, "severity": "undecided"}]},
]  # fmt: skip


def test_esa_judgments_of_wmt_become_a_study(tmp_path):
    path = tmp_path / "wmt24_esa.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ESA), encoding="utf-8")
    items = read_items(path)
    assert [(i.id, i.text, i.group, i.context, i.metadata["document"]) for i in items] == [
        ("A / 0", "eins zwei", "A", "one", "d"),
        ("B / 0", "uno", "B", "one", "d"),
    ]
    folder = write(tmp_path / "study", items="id,text,group\nA / 0,eins zwei,A\nB / 0,uno,B\n")
    with Study.open(folder) as study:
        assert import_file(study, path).added == 3
        marks = mark_table(study, real_ids=True).filter(annotator="x", item="A / 0")
        # Appraise's end is part of the mark; ours is not.
        assert marks.select("start", "end", "text", "omission").rows() == [
            (0, 4, "eins", False),
            (None, None, None, True),
        ]


MQM = """system\tdoc\tdoc_id\tseg_id\trater\tsource\ttarget\tcategory\tseverity
A\td1\t1\t7\tr1\tsome "source\t"Eins <v>zwei</v>.\tAccuracy/Mistranslation\tMajor
A\td1\t1\t7\tr1\tsome "source\t"Eins zwei<v>.</v>\tFluency/Punctuation\tMinor
A\td1\t1\t7\tr2\tsome "source\t"Eins zwei.\tNo-error\tNo-error
B\td1\t1\t7\tr1\t<v>some</v> "source\t"Eins.\tAccuracy/Omission\tMinor
B\td1\t1\t7\tr1\tsome "source\t"Eins.\tFound\tHOTW-test
"""


def test_mqm_marks_become_one_judgment_for_each_text_and_rater(tmp_path):
    path = tmp_path / "mqm.tsv"
    path.write_text(MQM, encoding="utf-8")
    read = read_judgments(path)
    values = {
        (read.observations.annotators[int(a)], read.observations.items[int(i)]): v
        for a, i, v in zip(read.observations.annotator, read.observations.item, read.observations.value, strict=True)
    }
    assert values == {("r1", "A / 7"): pytest.approx(-5.1), ("r2", "A / 7"): 0, ("r1", "B / 7"): -1}
    assert any("1 × answer to a planted error" in note for note in read.notes)
    items = "id,text,group\n" + "".join(
        f'{i.id},"{i.text.replace(chr(34), chr(34) * 2)}",{i.group}\n' for i in read_items(path)
    )
    with Study.open(write(tmp_path / "study", 'score = "mqm"', items)) as study:
        assert import_file(study, path).added == 3
        marks = mark_table(study).filter(item="A / 7").select("text", "category").rows()
        assert marks == [("zwei", "Accuracy/Mistranslation"), (".", "Fluency/Punctuation")]
        assert dict(study.scores().select("item", "score").iter_rows())["A / 7"] == pytest.approx(-2.55)


@pytest.mark.parametrize("cell", ["{}", "[", "[3]"])
def test_cells_that_are_no_marks_are_refused_with_their_line(tmp_path, cell):
    path = tmp_path / "log.csv"
    pl.DataFrame({"item": ["A-0"], "value": [3], "spans": [cell]}).write_csv(path)
    with pytest.raises(DataError, match=r"log.csv.*line 2.*the marks cannot be read"):
        read_judgments(path)


def test_agreement_on_the_marks_of_a_file(study, tmp_path):
    path = tmp_path / "judgments.csv"
    write_table(conventional_judgments(study, real_ids=True), path)
    spans = read_judgments(path).marked_texts("")
    assert spans is not None
    assert mark_agreement(spans)["character_f1"].value == pytest.approx((8 + 8) / (4 + 8 + 12))
    pl.read_csv(path).drop("spans").write_csv(path)
    assert read_judgments(path).marked_texts("") is None


def test_uploaded_esa_judgments_give_their_texts_as_items():
    content = "".join(json.dumps(row) + "\n" for row in ESA).encode()
    frame = read_upload(content, "wmt24_esa.jsonl").table.frame
    assert frame.rows() == [("A / 0", "eins zwei", "A", "one", "d"), ("B / 0", "uno", "B", "one", "d")]


def test_judgments_written_as_at_wmt_are_read_back_with_the_same_marks(study, tmp_path):
    folder = write(
        tmp_path / "study2", items="id,text,group,context,document\nA / 7,some text,A,x,d\nB / 7,some text,B,x,d\n"
    )
    with Study.open(folder) as first:
        answer(first, "ann", {"A / 7": {"score": 70, "spans": [MINOR, OMISSION]}, "B / 7": {"score": 90, "spans": []}})
        assert write_wmt(first, tmp_path / "esa.jsonl", real_ids=True) == 2
        assert write_wmt(first, tmp_path / "mqm.tsv", real_ids=True) == 4
        with pytest.raises(DataError, match=r"\.jsonl \(ESA\)"):
            write_wmt(first, tmp_path / "esa.csv")
        with Study.open(write(tmp_path / "again", items=(folder / "items.csv").read_text())) as again:
            import_file(again, tmp_path / "esa.jsonl")
            assert answers_in(again) == answers_in(first)
    mqm = read_judgments(tmp_path / "mqm.tsv").marked_texts("")
    assert mqm is not None
    assert [mqm.marks(row) for row in range(2)] == [
        (Span(0, 4, "minor", "Other"), Span(None, None, "minor", "Other")),
        (),
    ]


@pytest.mark.parametrize(("file", "score"), [("esa.jsonl", "slider"), ("mqm.tsv", "mqm")])
def test_judgments_of_wmt_make_a_study_of_error_marking(tmp_path, file, score):
    path = tmp_path / file
    esa = "".join(json.dumps(row) + "\n" for row in ESA)
    path.write_text(esa if score == "slider" else MQM, encoding="utf-8")
    recipe = recorded_judgments(read_judgments(path), {}, title="T", source=file)
    protocol = recipe.values["protocol"]
    assert (protocol["name"], protocol.get("score", "slider")) == ("error_spans", score)
    assert set(recipe.items["group"]) == {"A", "B"}


def test_marks_are_checked_beside_a_text_that_cannot_be_judged(tmp_path):
    folder = write(
        tmp_path / "pairs", 'items_per_page = 2\n[design]\nname = "random_tuples"\n[answers]\ncannot_judge = true\n'
    )
    with Study.open(folder) as study:
        task = study.ask("ann")
        assert task is not None
        one, other = task.item_ids
        with pytest.raises(AnswerError, match="but the text has"):
            study.tell(task, {one: {"cannot_judge": ""}, other: {"score": 50, "spans": [{**MINOR, "end": 99}]}})
        judgment = study.tell(task, {one: {"cannot_judge": ""}, other: {"score": 50, "spans": [MINOR]}})
    assert judgment.answer == {one: {"cannot_judge": ""}, other: {"score": 50, "spans": [MINOR]}}
