"""Judgments made elsewhere join a study: all or nothing."""

from __future__ import annotations

import pytest

from steelyard import Study
from steelyard.errors import ConfigError, DataError
from steelyard.formats import read_judgments, write_table
from steelyard.study.exporting import conventional_judgments
from steelyard.study.importing import import_file

CASES = {
    'name = "direct"': "annotator,item,value\nann,w0,10\nbob,w0,30\nann,w1,50\n",
    'name = "direct"\ncriteria = { joy = {}, fear = {} }': (
        "annotator,item,criterion,value\nann,w0,joy,10\nann,w0,fear,30\nbob,w1,joy,5\nbob,w1,fear,6\n"
    ),
    'name = "likert"': "annotator,item,value\nann,w0,1\nbob,w0,5\n",
    'name = "choice"\nlabels = ["yes", "no"]': "annotator,item,label\nann,w0,yes\nbob,w0,no\n",
    'name = "pairwise"': "annotator,left,right,winner\nann,w0,w1,left\nbob,w1,w2,tie\n",
    'name = "best_worst"': "annotator,item1,item2,item3,item4,best,worst\nann,w0,w1,w2,w3,w0,w3\n",
    'name = "scored_ranking"\nsize = 2': "annotator,task,item,value\nann,t1,w0,10\nann,t1,w1,90\n",
    'name = "ranking"\nsize = 4': "annotator,ranking\nann,w0>w1=w2>w3\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("protocol", CASES)
def test_an_import_says_what_the_file_says(make_study, tmp_path, protocol):
    file = tmp_path / "judgments.csv"
    file.write_text(CASES[protocol])
    with Study.open(make_study(protocol)) as study:
        result = import_file(study, file)
        assert result.added == study.status().judgments == study.status().imported
        exported = conventional_judgments(study, real_ids=True)
    write_table(exported, tmp_path / "out.csv")
    again = read_judgments(tmp_path / "out.csv", scale=(0, 100)).by_criterion
    before = read_judgments(file, scale=(0, 100)).by_criterion
    assert set(again) == set(before)
    for criterion, observations in before.items():
        assert _plain(again[criterion]) == _plain(observations)


def _plain(observations):
    """What a set of observations says, whatever its codes and order."""
    ids, kind = observations.items.ids, observations.kind
    who = [observations.annotators[int(a)] for a in observations.annotator]
    if kind == "ratings":
        rows = [(ids[i], v) for i, v in zip(observations.item, observations.value, strict=True)]
    elif kind == "labels":
        rows = [
            (ids[i], observations.classes[int(c)]) for i, c in zip(observations.item, observations.label, strict=True)
        ]
    elif kind == "comparisons":
        rows = [
            (ids[a], ids[b], int(o))
            for a, b, o in zip(observations.left, observations.right, observations.outcome, strict=True)
        ]
    elif kind == "choices":
        rows = [
            (tuple(ids[i] for i in shown), ids[b], ids[w])
            for shown, b, w in zip(observations.shown, observations.best, observations.worst, strict=True)
        ]
    else:
        rows = [tuple((ids[i], int(r)) for i, r in zip(observations.item, observations.rank, strict=True))]
    return sorted(zip(who, rows, strict=True))


def test_the_same_file_twice_is_imported_once(make_study, tmp_path):
    file = tmp_path / "judgments.csv"
    file.write_text(CASES['name = "direct"'])
    with Study.open(make_study()) as study:
        assert import_file(study, file).added == 3
        again = import_file(study, file)
        assert (again.added, again.already) == (0, 3)
        assert study.status().judgments == 3


def test_imported_judgments_count_towards_the_design(make_study, tmp_path):
    file = tmp_path / "judgments.csv"
    file.write_text("annotator,item,value\n" + "".join(f"ann,w{n},5\n" for n in range(5)))
    with Study.open(make_study(design="judgments = 1")) as study:
        import_file(study, file)
        assert study.ask("bob").item_ids == ("w5",)
        assert study.ask("ann") is None


def test_judgments_without_annotators_are_imported_too(make_study, tmp_path):
    file = tmp_path / "judgments.csv"
    file.write_text("item,value\nw0,5\nw0,15\nw1,5\n")
    with Study.open(make_study()) as study:
        import_file(study, file)
        assert study.scores()["score"].drop_nulls().to_list() == [10.0, 5.0]
        assert study.status().annotators == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("annotator,item,value\nann,w0,5\nann,dog,5\n", r"judgments.csv line 3 \(item\): 'dog' is not an item"),
        ("annotator,item,value\nann,w0,5\nann,w1,500\n", r"judgments.csv line 3.*outside the scale"),
        ("annotator,item,value\nann,w0,5\nann,w1,nan\n", r"judgments.csv line 3"),
        ("annotator,item,label\nann,w0,yes\n", "these are labels, but the study asks for ratings"),
    ],
)
def test_one_bad_row_refuses_the_whole_file(make_study, tmp_path, text, message):
    file = tmp_path / "judgments.csv"
    file.write_text(text)
    with Study.open(make_study()) as study:
        with pytest.raises(DataError, match=message):
            import_file(study, file)
        assert study.status().judgments == 0


def test_foreign_choices_are_read_leniently_unless_strict(make_study, tmp_path):
    file = tmp_path / "judgments.csv"
    file.write_text("item1,item2,item3,item4,best,worst\nw0,w1,w2,w3,w0,\nw0,w1,w2,w3,w1,w1\nw0,w1,w2,w3,w0,w3\n")
    with Study.open(make_study('name = "best_worst"')) as study:
        with pytest.raises(DataError, match="line 2"):
            import_file(study, file, strict=True)
        result = import_file(study, file)
        assert result.added == 3
        assert len(result.notes) == 2
        # w0: best twice of three; w1: best and worst once; w3: worst once.
        scores = dict(study.scores().select("item", "score").drop_nulls().iter_rows())
        assert scores == pytest.approx({"w0": 2 / 3, "w1": 0, "w2": 0, "w3": -1 / 3})


def test_sliders_shown_together_need_a_task(make_study, tmp_path):
    file = tmp_path / "judgments.csv"
    file.write_text("annotator,item,value\nann,w0,5\nann,w1,6\n")
    with Study.open(make_study('name = "scored_ranking"')) as study, pytest.raises(DataError, match="column 'task'"):
        import_file(study, file)


def test_the_stage_is_asked_for_when_two_could_take_the_file(tmp_path):
    folder = tmp_path / "s"
    folder.mkdir()
    (folder / "items.csv").write_text("id,text\na,a\nb,b\n")
    (folder / "study.toml").write_text(
        'title = "T"\nquestion = "Q"\nitems = "items.csv"\n'
        '[[stage]]\nname = "one"\nprotocol = { name = "direct" }\n'
        '[[stage]]\nname = "two"\nprotocol = { name = "direct" }\n'
    )
    file = tmp_path / "judgments.csv"
    file.write_text("annotator,item,value\nann,a,5\n")
    with Study.open(folder) as study:
        with pytest.raises(ConfigError, match="several stages accept ratings: one, two"):
            import_file(study, file)
        with pytest.raises(ConfigError, match="no stage called 'three'"):
            import_file(study, file, stage="three")
        import_file(study, file, stage="two")
        assert study.judgments()["stage"].to_list() == ["two"]


@pytest.mark.slow
@pytest.mark.shared_data
def test_the_nli_sliders_give_the_published_means(make_study, tmp_path, shared_data):
    """Every item mean within .2 of the mean of its usable answers, computed straight from the file."""
    import polars as pl

    sliders = pl.read_csv(shared_data / "nli/sliders.csv.gz").filter(pl.col("na") == 0, pl.col("status") != "Rejected")
    file = tmp_path / "sliders.csv"
    sliders.select("annotator", "item", "value").write_csv(file)
    with Study.open(make_study(items=sorted(sliders["item"].cast(pl.String).unique().to_list()))) as study:
        assert import_file(study, file).added == sliders.height
        scores = study.scores()
    published = pl.read_csv(shared_data / "nli/items.csv.gz", infer_schema_length=None)
    joined = scores.join(published.with_columns(pl.col("item").cast(pl.String)), on="item").drop_nulls("published_mean")
    # README of the data: r of item means with published_mean is .9983.
    assert joined.select(pl.corr("score", "published_mean")).item() == pytest.approx(0.9983, abs=0.0005)
    assert joined.height == 496


def test_bad_rows_may_be_skipped_and_are_counted(make_study, tmp_path):
    file = tmp_path / "judgments.csv"
    file.write_text("annotator,item,value\nann,w0,5\nann,dog,5\nann,w1,many\nbob,w1,500\nbob,w1,50\n")
    with Study.open(make_study('name = "direct"')) as study:
        with pytest.raises(DataError):
            import_file(study, file)
        result = import_file(study, file, skip_bad_rows=True)
        assert result.added == study.status().judgments == 2
    read, unknown = result.notes
    assert read.startswith("2 bad rows skipped: line 4: value 'many' is not a number; line 5: value 500 is outside")
    assert unknown == "1 bad row skipped: line 3: 'dog' is not an item of the study."
