"""WMT rankings and Mechanical Turk batch results, in small."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from steelyard.errors import DataError
from steelyard.formats import JudgmentFile, judgment_table, read_judgments
from steelyard.observations import Choices, Comparisons, Rankings

WMT = (
    "srclang,trglang,srcIndex,judgeId,system1Id,system2Id,system3Id,system1rank,system2rank,system3rank\n"
    "Spanish,English,39,j1,bbn,upc,upv,1,4,4\n"
    "Spanish,English,40,j2,bbn,upc,upv,2,-1,1\n"
    "Spanish,English,41,j2,bbn,upc,upv,-1,-1,1\n"
)


def judged(folder: Path, text: str, **options: object) -> JudgmentFile:
    path = folder / "log.csv"
    path.write_text(text)
    return read_judgments(path, **options)  # type: ignore[arg-type]


def test_wmt_rankings_keep_the_order_shown_and_drop_blanks(tmp_path: Path) -> None:
    file = judged(tmp_path, WMT)
    rankings = file.observations
    assert isinstance(rankings, Rankings)
    assert rankings.items.ids == ("bbn", "upc", "upv")
    assert rankings.annotators.ids == ("j1", "j2")
    assert rankings.tasks.ids == ("Spanish-English-39", "Spanish-English-40")
    assert rankings.item.tolist() == [0, 1, 2, 0, 2]
    assert rankings.rank.tolist() == [1, 2, 2, 2, 1]
    assert rankings.start.tolist() == [0, 3, 5]
    assert file.notes == ("3 blank ranks in 2 rows: left out.", "Fewer than two ranked items in 1 row: left out.")


def test_wmt_files_may_show_any_number_of_systems(tmp_path: Path) -> None:
    text = "system1Id,system1rank,system2Id,system2rank\na,2,b,1\n"
    assert judgment_table(judged(tmp_path, text).observations)["ranking"].to_list() == ["b>a"]


def test_wrong_wmt_rows_are_refused_by_line(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        judged(tmp_path, WMT.replace("1,4,4", "1,first,0"))
    assert [(p.line, p.field) for p in caught.value.problems] == [(2, "system2rank"), (2, "system3rank")]
    with pytest.raises(DataError, match=r"line 2 .*'bbn' appears twice in the ranking"):
        judged(tmp_path, WMT.replace("39,j1,bbn,upc", "39,j1,bbn,bbn"))
    with pytest.raises(DataError) as caught:
        judged(tmp_path, WMT, strict=True)
    assert {p.line for p in caught.value.problems} == {3, 4}


AMT = "HITId,WorkerId,AssignmentStatus,WorkTimeInSeconds,"


def test_amt_with_one_question_an_assignment(tmp_path: Path) -> None:
    rows = "h1,w1,Approved,9,x,70\nh1,w2,Rejected,9,x,10\nh2,w1,Submitted,9,y,\nh2,w3,Approved,9,y,5\n"
    file = judged(tmp_path, f"{AMT}Input.item,Answer.value\n{rows}", scale=(0, 100))
    assert judgment_table(file.observations).rows() == [("w1", "h1", "x", 70.0), ("w3", "h2", "y", 5.0)]
    assert file.notes[0] == "1 rejected assignment: left out."
    assert "No value in 1 row: left out." in file.notes


def test_amt_comparisons_choices_and_labels(tmp_path: Path) -> None:
    pairs = judged(tmp_path, f"{AMT}Input.left,Input.right,Answer.winner\nh1,w1,Approved,9,x,y,right\n").observations
    assert isinstance(pairs, Comparisons)
    assert pairs.outcome.tolist() == [-1]
    named = judged(tmp_path, f"{AMT}Input.left,Input.right,Answer.label\nh1,w1,Approved,9,x,y,x\n").observations
    assert isinstance(named, Comparisons)
    header = f"{AMT}Input.item1,Input.item2,Input.item3,Answer.best,Answer.worst\n"
    choices = judged(tmp_path, header + "h1,w1,Approved,9,x,y,z,z,x\n").observations
    assert isinstance(choices, Choices)
    assert judgment_table(choices).rows() == [("w1", "h1", "x", "y", "z", "z", "x")]
    labels = judged(tmp_path, f"{AMT}Input.item,Input.label,Answer.label\nh1,w1,Approved,9,x,no,yes\n").observations
    assert judgment_table(labels).rows() == [("w1", "h1", "x", "yes")]


NUMBERED = (
    f"{AMT}Input.pair_id_0,Input.pair_id_1,Answer.na1,Answer.na0,Answer.rating1,Answer.rating0\n"
    "h1,w1,Approved,9,x,y,na,,50,70\n"
    "h2,w2,Approved,9,z,,,,,10\n"
)


@pytest.mark.parametrize(
    "columns",
    [None, {"item": "Input.pair_id_*", "value": "Answer.rating*", "missing": "Answer.na*"}],
    ids=["guessed", "mapped"],
)
def test_amt_with_numbered_questions(tmp_path: Path, columns: dict[str, str] | None) -> None:
    file = judged(tmp_path, NUMBERED, columns=columns, scale=(0, 100))
    assert judgment_table(file.observations).rows() == [("w1", "h1", "x", 70.0), ("w2", "h2", "z", 10.0)]
    assert file.notes == ("1 answer marked as missing: left out.", "1 of 10 columns were not used.")
    # Nine seconds an assignment: two questions in the first, one in the second.
    assert [file.seconds("", 0), file.seconds("", 1)] == [4.5, 9.0]


def test_wrong_amt_values_are_refused_by_line_and_column(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        judged(tmp_path, NUMBERED.replace(",,10", ",,ten"))
    problem = caught.value.problems[0]
    assert (problem.line, problem.field) == (3, "Answer.rating*")


@pytest.mark.parametrize(
    ("header", "options"),
    [
        ("Input.item,Answer.feeling", {}),
        ("Input.thing,Answer.value", {}),
        ("Input.item,Answer.value", {"columns": {"value": "Answer.valeu"}}),
        ("Input.item,Answer.value", {"columns": {"valeu": "Answer.value"}}),
        ("Input.item_0,Answer.value", {}),
        ("Input.item,Answer.value,Answer.label", {}),
    ],
    ids=["no answer", "no item", "no such column", "no such field", "one answer to many", "two kinds"],
)
def test_amt_files_that_need_a_mapping_say_so(tmp_path: Path, header: str, options: dict[str, object]) -> None:
    values = ",".join("1" for _ in header.split(","))
    with pytest.raises(DataError) as caught:
        judged(tmp_path, f"{AMT}{header}\nh1,w1,Approved,9,{values}\n", **options)
    assert caught.value.problems[0].remedy


def test_a_batch_with_every_assignment_rejected_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="1 rejected"):
        judged(tmp_path, f"{AMT}Input.item,Answer.value\nh1,w1,Rejected,9,x,1\n")


def test_columns_of_lists_are_refused_by_name(tmp_path):
    """Found by fuzzing: Parquet files whose columns hold lists where texts are expected."""
    wmt = {"srclang": ["a"], "trglang": [["b"]], "srcIndex": ["1"], "judgeId": ["j"]}
    for place in (1, 2):
        wmt |= {f"system{place}Id": [f"s{place}"], f"system{place}rank": [place]}
    amt = {"WorkerId": ["w"], "AssignmentStatus": [["x"]], "Input.item": ["a"], "Answer.value": [1.0]}
    for name, made, column in (("wmt", wmt, "trglang"), ("amt", amt, "AssignmentStatus")):
        pl.DataFrame(made).write_parquet(tmp_path / f"{name}.parquet")
        with pytest.raises(DataError, match=column):
            read_judgments(tmp_path / f"{name}.parquet")
