from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from steelyard.errors import DataError, Problem
from steelyard.formats import JudgmentFile, judgment_table, read_judgments
from steelyard.observations import Choices, Comparisons, Labels, Rankings, Ratings

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")


def judged(folder: Path, text: str, name: str = "log.csv", **options: Any) -> JudgmentFile:
    path = folder / name
    path.write_text(text)
    return read_judgments(path, **options)


def problems(folder: Path, text: str, **options: Any) -> tuple[Problem, ...]:
    with pytest.raises(DataError) as caught:
        judged(folder, text, **options)
    for problem in caught.value.problems:
        assert problem.file == str(folder / "log.csv")
        assert problem.remedy
    return caught.value.problems


# Ratings


def test_ratings_are_read(tmp_path: Path) -> None:
    file = judged(tmp_path, "annotator,item,value,task\nb, 007 ,71,t1\na,1e5,4.5,t1\n", scale=(0, 100))
    ratings = file.observations
    assert isinstance(ratings, Ratings)
    assert file.kind == "ratings"
    assert file.notes == ()
    assert ratings.items.ids == ("007", "1e5")
    assert ratings.annotators.ids == ("a", "b")
    assert ratings.tasks.ids == ("t1",)
    assert ratings.item.tolist() == [0, 1]
    assert ratings.annotator.tolist() == [1, 0]
    assert ratings.value.tolist() == [71, 4.5]
    assert ratings.scale == (0, 100)


@pytest.mark.parametrize("header", ["worker,task,score", "Judge_ID,item_id,rating", "WorkerId,Item,Value"])
def test_aliases_name_the_same_ratings(tmp_path: Path, header: str) -> None:
    ratings = judged(tmp_path, f"{header}\na,x,1\nb,y,2\n").observations
    assert judgment_table(ratings).rows() == [("a", "x", 1.0), ("b", "y", 2.0)]


def test_annotators_may_be_unknown(tmp_path: Path) -> None:
    ratings = judged(tmp_path, "item,value\nx,1\ny,2\n").observations
    assert not ratings.knows_annotators
    partly = judged(tmp_path, "annotator,item,value\na,x,1\n,y,2\n")
    assert partly.observations.annotator.tolist() == [0, -1]
    assert "No annotator in 1 row: kept, annotator unknown." in partly.notes


def test_the_scale_is_the_range_of_the_values_unless_given(tmp_path: Path) -> None:
    file = judged(tmp_path, "item,value\nx,-2.5\ny,7\n")
    assert isinstance(file.observations, Ratings)
    assert file.observations.scale == (-2.5, 7)
    assert not file.observations.scale_known
    assert "range from -2.5 to 7" in file.notes[0]
    assert "intervals may exceed it" in file.notes[0]
    same = judged(tmp_path, "item,value\nx,3\ny,3\n")
    assert isinstance(same.observations, Ratings)
    assert same.observations.scale == (2.5, 3.5)
    assert "All values are 3" in same.notes[0]


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ([1, 2, 3, 4, 5], (1, 5)),
        ([5, 1, 2, 5], (1, 5)),
        ([0, 1, 1], (0, 1)),
        (list(range(0, 101, 10)), (0, 100)),
        ([-3, 0, 3], (-3, 3)),
        (list(range(11)), (0, 10)),
    ],
)
def test_few_whole_numbers_are_the_steps_of_a_scale(tmp_path: Path, values: list[int], scale: tuple[int, int]) -> None:
    rows = "".join(f"i{n % 3},{value}\n" for n, value in enumerate(values))
    file = judged(tmp_path, f"item,value\n{rows}")
    assert isinstance(file.observations, Ratings)
    assert file.observations.scale == scale
    assert file.observations.scale_known
    assert f"steps from {scale[0]} to {scale[1]}" in file.notes[0]


@pytest.mark.parametrize("values", [list(range(12)), [1, 2, 2.5], [12, 37, 88], [4, 4], [0, 10**9]])
def test_other_values_leave_the_scale_unknown(tmp_path: Path, values: list[float]) -> None:
    rows = "".join(f"i{n % 3},{value}\n" for n, value in enumerate(values))
    file = judged(tmp_path, f"item,value\n{rows}")
    assert isinstance(file.observations, Ratings)
    assert not file.observations.scale_known


def test_the_scale_of_steps_is_inferred_from_all_rows(tmp_path: Path) -> None:
    rows = "i,1\ni,5\n" * 200 + "i,77\ni,33\n"
    file = judged(tmp_path, f"item,value\n{rows}")
    assert isinstance(file.observations, Ratings)
    assert not file.observations.scale_known
    assert file.observations.scale == (1, 77)


def test_criteria_are_kept_apart(tmp_path: Path) -> None:
    text = "annotator,item,criterion,value\na,x,joy,10\na,x,fear,-5\nb,y,joy,20\nb,y,fear,5\n"
    file = judged(tmp_path, text)
    assert list(file.by_criterion) == ["fear", "joy"]
    joy = file.by_criterion["joy"]
    assert isinstance(joy, Ratings)
    assert joy.value.tolist() == [10, 20]
    assert joy.scale == (10, 20)
    assert any(note.startswith("Criterion joy: ") for note in file.notes)
    with pytest.raises(DataError, match="2 criteria: fear, joy"):
        _ = file.observations
    assert judgment_table(file.by_criterion).sort("criterion", "item").rows()[0] == ("fear", "a", "x", -5.0)


def test_an_empty_value_is_left_out_and_counted_or_refused_when_strict(tmp_path: Path) -> None:
    text = "annotator,item,value\na,x,1\na,y,\na,z,  \n"
    file = judged(tmp_path, text, scale=(0, 10))
    assert len(file.observations) == 1
    assert file.observations.items.ids == ("x",)
    assert file.notes == ("No value in 2 rows: left out.",)
    assert [p.line for p in problems(tmp_path, text, scale=(0, 10), strict=True)] == [3, 4]


@pytest.mark.parametrize("value", ["NaN", "inf", "-Infinity", "good", '"1,5"', "0x10"])
def test_a_value_that_is_no_number_is_refused(tmp_path: Path, value: str) -> None:
    (problem,) = problems(tmp_path, f"annotator,item,value\na,x,1\na,y,{value}\n")
    assert (problem.line, problem.field) == (3, "value")
    assert problem.what == f"value '{value.strip(chr(34))}' is not a number."


def test_nan_in_a_frame_is_refused_but_pandas_writes_missing_so() -> None:
    frame = pl.DataFrame({"item": ["x", "y"], "value": [1.0, float("nan")]})
    with pytest.raises(DataError, match="not a number"):
        read_judgments(frame)
    assert len(read_judgments(frame.to_pandas()).observations) == 1


def test_a_value_outside_the_scale_is_refused(tmp_path: Path) -> None:
    messages = problems(tmp_path, 'item,score\n"x\nx",-1\ny,5\nz,101\n', scale=(0, 100))
    assert [(p.line, p.field) for p in messages] == [(2, "score"), (5, "score")]
    assert messages[1].what == "value 101 is outside the scale 0 to 100."


def test_an_empty_item_is_refused(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, "item,value\nx,1\n ,2\n")
    assert (problem.line, problem.field) == (3, "item")


def test_problems_of_every_sort_come_together_in_the_order_of_the_file(tmp_path: Path) -> None:
    messages = problems(tmp_path, "item,value\nx,bad\n,2\ny,200\n", scale=(0, 100))
    assert [p.line for p in messages] == [2, 3, 4]


def test_more_than_twenty_problems_are_counted(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        judged(tmp_path, "item,value\n" + "x,bad\n" * 50)
    assert [p.line for p in caught.value.problems[:20]] == list(range(2, 22))
    assert str(caught.value.problems[20]) == "… and 30 more."


# Comparisons


def outcomes(file: JudgmentFile) -> Any:
    assert isinstance(file.observations, Comparisons)
    return file.observations.outcome.tolist()


@pytest.mark.parametrize("name", ["winner", "label"])
def test_a_winner_is_a_side_a_tie_or_an_item(tmp_path: Path, name: str) -> None:
    rows = "a,x,y,left\na,x,y,RIGHT\nb,x,y,tie\nb,x,y,draw\nb,x,y,x\na,y,x,x\n"
    file = judged(tmp_path, f"annotator,left,right,{name}\n{rows}")
    assert outcomes(file) == [1, -1, 0, 0, 1, -1]
    assert file.observations.items.ids == ("x", "y")


def test_an_item_called_left_or_tie_wins_only_in_its_own_rows(tmp_path: Path) -> None:
    file = judged(tmp_path, "left,right,winner\nx,left,left\nx,y,left\ntie,x,tie\ny,x,tie\n")
    assert outcomes(file) == [-1, 1, 1, 0]


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("model_a,model_b,winner", ["model_a", "model_b", "tie", "tie (bothbad)", "both_bad"]),
        ("left,right,outcome", ["left", "right", "tie", "Tie", "draw"]),
        ("System A,System B,preference", ["System A", "[[B]]", "A=B", "equal", "neither"]),
        ("response_1,response_2,answer", ["response_1", "b is slightly better", "same", "both", "no preference"]),
        ("item1,item2,winner", ["1", "2", "tie", "=", "tied"]),
    ],
)
def test_other_spellings_of_winners_are_recognised(tmp_path: Path, header: str, words: list[str]) -> None:
    text = "".join(f"1,2,{word}\n" for word in words)
    read = judged(tmp_path, f"{header}\n{text}")
    assert isinstance(read.observations, Comparisons)
    assert read.observations.outcome.tolist() == [1, -1, 0, 0, 0]
    assert read.observations.items.ids == ("1", "2")
    bad = sum(word in ("tie (bothbad)", "both_bad", "neither") for word in words)
    assert any(f"bad in {bad} row" in note for note in read.notes) == (bad > 0)


def test_a_spelling_that_is_an_item_elsewhere_is_not_a_side(tmp_path: Path) -> None:
    assert problems(tmp_path, "left,right,winner\nx,y,a\na,x,x\n")[0].line == 2
    read = judged(tmp_path, "left,right,winner\nx,y,a\nz,x,x\n")
    assert isinstance(read.observations, Comparisons)
    assert read.observations.outcome.tolist() == [1, -1]


def test_texts_named_a_and_b_leave_labels_labels(tmp_path: Path) -> None:
    assert judged(tmp_path, "annotator,item,text_a,text_b,label\nann,i,dog,cat,yes\n").kind == "labels"


def test_the_column_that_holds_outcomes_is_the_winner(tmp_path: Path) -> None:
    read = judged(tmp_path, "model_a,model_b,answer,vote\nx,y,42 is the answer,model_b\n")
    assert isinstance(read.observations, Comparisons)
    assert read.observations.outcome.tolist() == [-1]


def test_winner_and_loser_suffice(tmp_path: Path) -> None:
    file = judged(tmp_path, "judge,winner,loser\na,x,y\na,y,z\n")
    assert outcomes(file) == [1, 1]
    assert judgment_table(file.observations).rows() == [("a", "x", "y", "x"), ("a", "y", "z", "y")]
    assert any("the winner is taken as the left item" in note for note in file.notes)


def test_an_empty_winner_is_not_a_tie(tmp_path: Path) -> None:
    text = "left,right,winner\nx,y,left\nx,y,\n"
    file = judged(tmp_path, text)
    assert len(file.observations) == 1
    assert file.notes == ("No winner in 1 row: left out (write tie for ties).",)
    assert problems(tmp_path, text, strict=True)[0].line == 3


def test_impossible_comparisons_are_refused(tmp_path: Path) -> None:
    messages = problems(tmp_path, "left,right,winner\nx,y,z\nx,x,left\nx,,left\nz,y,z\n")
    assert [(p.line, p.field) for p in messages] == [(2, "winner"), (3, "right"), (4, "right")]
    assert messages[0].what == "winner 'z' is neither 'x' nor 'y'."
    (problem,) = problems(tmp_path, "winner,loser\nx,x\n")
    assert problem.what == "'x' is compared with itself."


def test_many_rows_are_coded_like_few() -> None:
    rng = np.random.default_rng(1)
    left = rng.integers(0, 50, 60_000)
    right = (left + rng.integers(1, 50, 60_000)) % 50
    # The last ids occur only after the rows that the coding looks at first.
    left[-1], right[-1] = 77, 88
    frame = pl.DataFrame({"left": left, "right": right, "winner": np.where(rng.random(60_000) < 0.5, left, right)})
    read = read_judgments(frame).observations
    assert isinstance(read, Comparisons)
    ids = np.array(read.items.ids).astype(int)
    assert (ids[read.left] == left).all()
    assert (ids[read.right] == right).all()
    assert ((read.outcome == 1) == (frame["winner"].to_numpy() == left)).all()


# Best–worst choices

TUPLES = "annotator,item1,item2,item3,best,worst\na,x,y,z,x,z\nb,y,z,x,z,y\n"


def test_tuples_are_read_from_columns_lists_json_and_text(tmp_path: Path) -> None:
    rows = [
        {"annotator": "a", "items": ["x", "y", "z"], "best": "x", "worst": "z"},
        {"annotator": "b", "items": ["y", "z", "x"], "best": "z", "worst": "y"},
    ]
    sources = [
        judged(tmp_path, TUPLES),
        judged(tmp_path, TUPLES.replace("item", "Item_")),
        judged(tmp_path, TUPLES.replace("item", "option"), columns={"items": "option*"}),
        judged(tmp_path, "\n".join(map(json.dumps, rows)), "log.jsonl"),
        read_judgments(pl.DataFrame(rows)),
        judged(tmp_path, "annotator,items,best,worst\na,x|y | z,x,z\nb,y|z|x,z,y\n"),
        judged(tmp_path, 'annotator,items,best,worst\na,"[""x"",""y"",""z""]",x,z\nb,y|z|x,z,y\n'),
    ]
    for file in sources:
        choices = file.observations
        assert isinstance(choices, Choices)
        assert choices.items.ids == ("x", "y", "z")
        assert choices.shown.tolist() == [[0, 1, 2], [1, 2, 0]]
        assert choices.best.tolist() == [0, 2]
        assert choices.worst.tolist() == [2, 1]
        assert file.notes == ()


def test_incomplete_choices_are_kept_and_counted_or_refused_when_strict(tmp_path: Path) -> None:
    text = "item1,item2,item3,best,worst\nx,y,z,,z\nx,y,z,x,\nx,y,z,x,x\nx,y,,x,y\nx,,,x,\n"
    file = judged(tmp_path, text)
    assert isinstance(file.observations, Choices)
    assert file.observations.best.tolist() == [-1, 0, 0, 0]
    assert file.observations.worst.tolist() == [2, -1, 0, 1]
    assert file.observations.shown[3].tolist() == [0, 1, -1]
    assert file.notes == (
        "No best in 1 row: kept without it.",
        "No worst in 2 rows: kept without it.",
        "The same item as best and as worst in 1 row: kept.",
        "Fewer than two items in 1 row: left out.",
    )
    assert {p.line for p in problems(tmp_path, text, strict=True)} == {2, 3, 4, 6}


def test_impossible_choices_are_refused(tmp_path: Path) -> None:
    messages = problems(tmp_path, "item1,item2,item3,best,worst\nx,y,z,w,z\nx,y,z,x,v\nx,y,x,x,y\n")
    assert [p.line for p in messages] == [2, 3, 4]
    assert messages[0].what == "best 'w' is not among the items of its row."
    assert messages[1].field == "worst"
    assert messages[2].what == "'x' appears twice in the tuple."


def test_broken_lists_are_refused_by_line(tmp_path: Path) -> None:
    messages = problems(tmp_path, 'items,best,worst\na|b,a,b\n"[""a"",""b",a,b\n')
    assert [p.line for p in messages if "JSON list" in p.what] == [3]


# Labels


def test_labels_are_read(tmp_path: Path) -> None:
    text = "worker,task,label\na,x,yes\nb,x, no \na,y,yes\nb,y,\n"
    file = judged(tmp_path, text)
    labels = file.observations
    assert isinstance(labels, Labels)
    assert labels.classes.ids == ("no", "yes")
    assert labels.label.tolist() == [1, 0, 1]
    assert labels.item.tolist() == [0, 0, 1]
    assert file.notes == ("No label in 1 row: left out.",)
    assert problems(tmp_path, text, strict=True)[0].line == 5


# Rankings


def test_rankings_are_read_from_text_json_and_lists(tmp_path: Path) -> None:
    tiers = [[["c"], ["a", "b"], ["d"]], [["b"], ["a"]]]
    rows = [{"annotator": name, "ranking": ranking} for name, ranking in zip("pq", tiers, strict=True)]
    sources = [
        judged(tmp_path, "annotator,ranking\np,c>a=b>d\nq,b>a\n"),
        judged(tmp_path, "annotator,ranking\np, c > a = b > d\nq,b >a\n"),
        judged(tmp_path, 'annotator,ranking\np,"[[""c""],[""a"",""b""],[""d""]]"\nq,b>a\n'),
        judged(tmp_path, "\n".join(map(json.dumps, rows)), "log.jsonl"),
        read_judgments(pl.DataFrame(rows)),
    ]
    for file in sources:
        rankings = file.observations
        assert isinstance(rankings, Rankings)
        assert rankings.items.ids == ("a", "b", "c", "d")
        assert rankings.start.tolist() == [0, 4, 6]
        assert rankings.item.tolist() == [2, 0, 1, 3, 1, 0]
        assert rankings.rank.tolist() == [1, 2, 2, 3, 1, 2]


def test_places_in_columns_are_a_ranking_and_ids_called_ranking_are_not(tmp_path: Path) -> None:
    read = judged(tmp_path, "ranking,first,second,third\n1,go,cook,eat\n2,eat,go,\n")
    rankings = read.observations
    assert isinstance(rankings, Rankings)
    assert [rankings.items[int(code)] for code in rankings.item] == ["go", "cook", "eat", "eat", "go"]
    assert rankings.rank.tolist() == [1, 2, 3, 1, 2]
    assert read.notes == ("Ignored columns: ranking.",)


def test_a_ranking_column_of_ids_does_not_hide_ratings(tmp_path: Path) -> None:
    assert judged(tmp_path, "ranking,item,value\n1,go,3\n2,cook,4\n").kind == "ratings"
    assert [p.what for p in problems(tmp_path, "ranking,item,value\na>b,go,3\n")] == [
        "the columns match ratings and rankings."
    ]


def test_lists_of_ids_are_rankings_without_ties() -> None:
    rankings = read_judgments([{"ranking": ["b", "a"]}, {"ranking": ["a", "b"]}]).observations
    assert judgment_table(rankings)["ranking"].to_list() == ["b>a", "a>b"]


def test_short_rankings_are_left_out_and_impossible_ones_refused(tmp_path: Path) -> None:
    file = judged(tmp_path, "annotator,ranking\np,a>b\nq,a\nr,\n")
    assert len(file.observations) == 1
    assert file.observations.annotators.ids == ("p",)
    assert file.notes == ("Fewer than two ranked items in 2 rows: left out.",)
    messages = problems(tmp_path, "annotator,ranking\np,a>b>a\nq,a>>b\nr,a>b=\n")
    assert [p.line for p in messages] == [2, 3, 4]
    assert messages[0].what == "'a' appears twice in the ranking."
    assert messages[1].what == "a rank is empty."


# Kinds and columns


@pytest.mark.parametrize(
    ("header", "kind", "missing"),
    [
        ("annotator,item,valeu", None, None),
        ("annotator,value", "ratings", "item"),
        ("annotator,left,right", "comparisons", "winner"),
        ("item1,item2,best", "choices", "worst"),
        ("best,worst", "choices", "items"),
        ("annotator,label", "labels", "item"),
    ],
)
def test_missing_columns_name_the_kind_and_the_way_to_map(
    tmp_path: Path, header: str, kind: str | None, missing: str | None
) -> None:
    messages = problems(tmp_path, f"{header}\n{','.join('x' * len(header.split(',')))}\n")
    assert "--columns" in messages[0].remedy
    if kind:
        assert messages[0].what == f"these appear to be {kind}, but there is no {missing} column."
        assert messages[0].field == missing


def test_a_missing_column_suggests_the_closest(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, "annotator,item,valeu\na,x,1\n", kind="ratings")
    assert "Did you mean 'valeu'?" in problem.remedy
    assert "--columns value=their_name" in problem.remedy


def test_value_and_label_together_need_a_kind(tmp_path: Path) -> None:
    text = "item,value,label\nx,1,yes\ny,2,no\n"
    (problem,) = problems(tmp_path, text)
    assert problem.what == "the columns match ratings and labels."
    assert judged(tmp_path, text, kind="ratings").kind == "ratings"
    assert judged(tmp_path, text, kind="labels").kind == "labels"


def test_extra_columns_are_listed_or_refused_when_strict(tmp_path: Path) -> None:
    text = "item,value,colour,critreion\nx,1,3,joy\ny,2,4,joy\n"
    assert judged(tmp_path, text, scale=(0, 9)).notes == (
        "Ignored columns: colour, critreion.",
        "'critreion': Did you mean 'criterion'?",
    )
    messages = problems(tmp_path, text, scale=(0, 9), strict=True)
    assert [p.field for p in messages] == ["colour", "critreion"]
    assert "Did you mean 'criterion'?" in messages[1].remedy


def test_mappings_choose_columns_and_wrong_ones_are_refused(tmp_path: Path) -> None:
    text = "who,worker,judge,what,score,score_z\na,1,2,x,1,0\na,1,2,y,2,9\n"
    assert "could both be the annotator" in problems(tmp_path, text, columns={"item": "what"})[0].what
    file = judged(tmp_path, text, columns={"item": "what", "annotator": "who", "value": "score_z"})
    assert judgment_table(file.observations).rows() == [("a", "x", 0.0), ("a", "y", 9.0)]
    messages = problems(tmp_path, text, columns={"itme": "what", "value": "scoer"})
    assert [p.remedy for p in messages] == ["Did you mean 'item'?", "Did you mean 'score'?"]


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("item,value\n", {}),
        ("item,value\nx,\n", {}),
        ("colour,size\nred,1\n", {}),
    ],
    ids=["no rows", "no usable rows", "no known columns"],
)
def test_what_holds_no_judgments_is_refused(tmp_path: Path, text: str, options: dict[str, object]) -> None:
    assert problems(tmp_path, text, **options)


def test_wrong_options_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="Did you mean 'ratings'"):
        judged(tmp_path, "item,value\nx,1\n", kind="rating")
    with pytest.raises(DataError, match="lower end first"):
        judged(tmp_path, "item,value\nx,1\n", scale=(1, 0))


def test_row_order_changes_no_code(tmp_path: Path) -> None:
    one = judged(tmp_path, "annotator,left,right,winner\na,x,y,x\nb,y,z,tie\n").observations
    two = judged(tmp_path, "annotator,left,right,winner\nb,y,z,tie\na,x,y,x\n").observations
    assert one.items == two.items
    assert one.annotators == two.annotators
    assert one.annotator.tolist() == two.annotator.tolist()[::-1]


@pytest.mark.parametrize("make", [pl.DataFrame, pd.DataFrame, pa.table, lambda d: pl.DataFrame(d).lazy()])
def test_frames_of_every_kind_give_judgments(make: object) -> None:
    data = {"annotator": [7, 8], "item": ["x", "y"], "value": [1, 2]}
    ratings = read_judgments(make(data)).observations  # type: ignore[operator]
    assert judgment_table(ratings).rows() == [("7", "x", 1.0), ("8", "y", 2.0)]


def test_rows_of_frames_and_lines_of_json_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the table line 2"):
        read_judgments(pl.DataFrame({"item": ["x", "y"], "value": ["1", "b"]}))
    with pytest.raises(DataError) as caught:
        judged(tmp_path, '{"item": "x", "value": "1"}\n\n{"item": "y", "value": "b"}\n', "log.jsonl")
    assert caught.value.problems[0].line == 3


def test_whole_numbers_stay_ids_where_pandas_made_them_floats() -> None:
    frame = pd.DataFrame({"left": [1, 2], "right": [2, 3], "winner": [2, None]})
    file = read_judgments(frame)
    assert judgment_table(file.observations).rows() == [("1", "2", "2")]


@pytest.mark.parametrize(
    "column",
    [
        {"item": ["a"], "value": [[1]]},
        {"item": [["a"]], "value": [1]},
        {"item": [b"\xff"], "value": [1]},
        {"ranking": [{"a": 1}]},
        {"items": [{"a": 1}], "best": ["a"], "worst": ["a"]},
    ],
)
def test_columns_of_the_wrong_type_are_refused(column: dict[str, list[object]]) -> None:
    with pytest.raises(DataError, match="the column holds"):
        read_judgments(pl.DataFrame(column))


def test_ids_in_a_flat_list_may_hold_marks() -> None:
    rankings = read_judgments([{"ranking": ["b=c", "a>d"]}]).observations
    assert rankings.items.ids == ("a>d", "b=c")
    assert judgment_table(rankings)["ranking"].to_list() == ['[["b=c"], ["a>d"]]']


# Bad rows


@pytest.mark.parametrize(
    ("header", "good", "bad"),
    [
        ("left,right,winner", ["a,b,left", "b,c,tie"], ["a,a,left", "a,b,z", ",b,b", "a,b"]),
        ("item,value", ["a,1.5", "b,2.5"], ["a,many", ",3", "a,NaN", "a,1,2"]),
        ("item,label", ["a,x", "b,y"], [",x", "a,b,c"]),
        ("item1,item2,item3,best,worst", ["a,b,c,a,b"], ["a,a,b,a,b", "a,b,c,d,a", "a,b,c,a,d"]),
        ("ranking", ["a>b>c", "b=a"], ["a>a>b", "a>>b"]),
        ("first,second,third", ["a,b,c"], ["a,a,b"]),
    ],
)
def test_bad_rows_are_refused_by_line_or_skipped_and_counted(
    tmp_path: Path, header: str, good: list[str], bad: list[str]
) -> None:
    for row in bad:
        text = "\n".join([header, good[0], row, *good[1:]]) + "\n"
        with pytest.raises(DataError) as refusal:
            judged(tmp_path, text)
        assert {problem.line for problem in refusal.value.problems} == {3}
        assert refusal.value.__notes__[0].startswith(f"1 of {len(good) + 1} rows is invalid.")
        assert "--skip-bad-rows" in refusal.value.__notes__[0]
        read = judged(tmp_path, text, skip_bad_rows=True)
        assert any(note.startswith("1 bad row skipped: line 3: ") for note in read.notes)
        alone = judged(tmp_path, "\n".join([header, *good]) + "\n", name="good.csv").observations
        assert judgment_table(read.observations).equals(judgment_table(alone))
        assert read.line("", len(good) - 1) == len(good) + 1 + (len(good) > 1)


def test_skipped_rows_of_several_sorts_are_counted_together(tmp_path: Path) -> None:
    text = "left,right,winner\n" + "a,b,left\n" * 100 + "c,c,c\n" * 30 + "a,b,z\n"
    assert judged(tmp_path, text, skip_bad_rows=True).notes == (
        "31 bad rows skipped: line 102: 'c' is compared with itself; line 103: 'c' is compared with itself; "
        "line 104: 'c' is compared with itself …",
    )


def test_a_file_of_bad_rows_and_contradictory_options_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no row can be used\. 1 bad row skipped"):
        judged(tmp_path, "left,right,winner\nc,c,c\n", skip_bad_rows=True)
    with pytest.raises(DataError, match="Choose one of them"):
        judged(tmp_path, "left,right,winner\na,b,a\n", skip_bad_rows=True, strict=True)


def test_several_columns_together_make_an_id() -> None:
    rows = [{"doc": d, "system": s, "worker": "w", "score": d * 10 + len(s)} for d in (1, 2) for s in ("x", "yy")]
    file = read_judgments(pl.DataFrame(rows), columns={"item": "doc+system", "value": "score", "annotator": "worker"})
    ratings = file.observations
    assert isinstance(ratings, Ratings)
    assert ratings.items.ids == ("1 / x", "1 / yy", "2 / x", "2 / yy")
    assert ratings.value.tolist() == [11, 12, 21, 22]
    assert not any("gnored" in note for note in file.notes)
    # A column whose name has a plus sign is that column, and a part can be used for another field as well.
    plus = pl.DataFrame(rows).with_columns(pl.lit("same").alias("doc+system"))
    assert read_judgments(plus, columns={"item": "doc+system", "value": "score"}).observations.items.ids == ("same",)
    both = read_judgments(pl.DataFrame(rows), columns={"item": "doc+system", "task": "doc", "value": "score"})
    assert both.observations.tasks.ids == ("1", "2")
    with pytest.raises(DataError, match="no such column"):
        read_judgments(pl.DataFrame(rows), columns={"item": "doc+sytem", "value": "score"})


# Strengths of preferences


def test_strengths_are_read_from_a_column_and_written_back(tmp_path: Path) -> None:
    text = "left,right,winner,strength\na,b,left,2\na,b,right,-1\na,b,tie,\nb,a,left,\n"
    comparisons = judged(tmp_path, text).observations
    assert isinstance(comparisons, Comparisons)
    assert comparisons.strength.tolist() == [2, 1, 0, 0]
    again = read_judgments(judgment_table(comparisons)).observations
    assert isinstance(again, Comparisons)
    assert again.strength.tolist() == [2, 1, 0, 0]
    assert again.outcome.tolist() == comparisons.outcome.tolist()


def test_words_for_how_much_better_are_strengths_where_a_file_uses_several(tmp_path: Path) -> None:
    words = ["a is slightly better", "b is better", "tie", "A>>B"]
    text = "left,right,winner\n" + "".join(f"x,y,{word}\n" for word in words)
    assert judged(tmp_path, text).observations.strength.tolist() == [1, 2, 0, 3]  # type: ignore[attr-defined]
    plain = "left,right,winner\nx,y,a is better\nx,y,b\n"
    assert not judged(tmp_path, plain).observations.strength.any()  # type: ignore[attr-defined]
    by_id = "left,right,winner\ny,x>>,x>>\ny,x,x\n"
    assert not judged(tmp_path, by_id).observations.strength.any()  # type: ignore[attr-defined]


@pytest.mark.parametrize(("row", "what"), [("a,b,left,1.5", "whole number"), ("a,b,tie,2", "a tie has strength 2")])
def test_a_wrong_strength_is_refused(tmp_path: Path, row: str, what: str) -> None:
    (problem,) = problems(tmp_path, f"left,right,winner,strength\na,b,left,1\n{row}\n")
    assert what in problem.what
    assert problem.field == "strength"
