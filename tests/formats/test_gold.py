"""Known answers from a table."""

from __future__ import annotations

import pytest

from steelyard import read_gold
from steelyard.errors import DataError


def test_gold_is_read_by_its_usual_names(tmp_path):
    for header in ("item,gold", "item,label", "id,truth", "task,value"):
        (tmp_path / "g.csv").write_text(f"{header}\n007,yes\nb,no\nc,\n")
        assert read_gold(tmp_path / "g.csv") == {"": {"007": "yes", "b": "no"}}


def test_a_file_of_judgments_that_repeats_its_gold_will_do(tmp_path):
    (tmp_path / "j.csv").write_text("annotator,item,label,gold\na,x,1,0\nb,x,0,0\na,y,1,1\n")
    assert read_gold(tmp_path / "j.csv") == {"": {"x": "0", "y": "1"}}


def test_gold_may_be_by_criterion():
    rows = [{"item": "x", "criterion": "joy", "gold": "3"}, {"item": "x", "criterion": "fear", "gold": "9"}]
    assert read_gold(rows) == {"joy": {"x": "3"}, "fear": {"x": "9"}}


def test_two_answers_for_one_item_are_refused_with_the_line(tmp_path):
    (tmp_path / "g.csv").write_text("item,gold\nx,1\ny,1\nx,2\n")
    with pytest.raises(DataError, match=r"g\.csv line 4 \(gold\): 'x' has gold 1 above and 2 here"):
        read_gold(tmp_path / "g.csv")


@pytest.mark.parametrize(
    ("text", "message"), [("item,colour\nx,1\n", "no column gold"), ("item,gold\nx,\n", "no gold answers")]
)
def test_a_table_without_gold_is_refused(tmp_path, text, message):
    (tmp_path / "g.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        read_gold(tmp_path / "g.csv")
