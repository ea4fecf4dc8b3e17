"""What annotators see of an item: the columns that [page] fields names, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from steelyard import Study
from steelyard.errors import ConfigError, DataError
from steelyard.judges import Prompt
from steelyard.protocols import Pairwise
from steelyard.study.display import item_parts, part_beside, unblinding_warnings
from steelyard.study.opening import check_study

CHAT = json.dumps([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}])


def write(folder: Path, page: str, rows: list[dict[str, str]], protocol: str = "direct") -> Path:
    folder.mkdir(exist_ok=True)
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "items.jsonl").write_text(lines, encoding="utf-8")
    (folder / "study.toml").write_text(
        'title = "T"\nquestion = "Q?"\nitems = "items.jsonl"\n'
        f'[page]\n{page}\n[protocol]\nname = "{protocol}"\n[design]\njudgments = 1\n',
        encoding="utf-8",
    )
    return folder


ROWS = [{"id": s, "text": f"body {s}", "title": f"Title {s}", "price": "7", "system": s, "engine": s} for s in "ab"]


def test_columns_are_shown_in_the_order_of_fields_with_their_headings_and_formats(tmp_path):
    page = 'content = "markdown"\nfields = ["title", { column = "text", label = "Body" }, "engine"]'
    config, items = check_study(write(tmp_path / "s", page, ROWS))
    parts = item_parts(items[0], config.page)
    assert [(part.column, part.label, part.format, part.text) for part in parts] == [
        ("title", "title", "markdown", "Title a"),
        ("text", "Body", "markdown", "body a"),
        ("engine", "engine", "markdown", "a"),
    ]


def test_a_column_that_tells_systems_apart_is_warned_about_and_no_other(tmp_path):
    names = ["title", "price", "engine", "system", "gold"]
    rows = [{**row, "gold": "1", "title": "same"} for row in ROWS] + [{**ROWS[0], "id": "c", "title": "other"}]
    config, items = check_study(write(tmp_path / "s", f"fields = {names}", rows))
    warnings = unblinding_warnings(config.page, items)
    assert len(warnings) == 3
    assert "'engine' differs between systems" in warnings[0]
    assert "which system" in warnings[1]
    assert "known answers" in warnings[2]
    default, items = check_study(write(tmp_path / "s", "", rows))
    assert unblinding_warnings(default.page, items) == []
    assert [part.column for part in item_parts(items[0], default.page)] == ["text"]


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ('fields = ["titel"]', r"study\.toml line 5 .*no column 'titel'.*Did you mean 'title'"),
        ('fields = ["title", "title"]', "named twice"),
        ('fields = ["media"]', "media are always shown"),
        ('fields = "title"', "write a list of columns"),
        ('fields = [{ column = "title", formt = "text" }]', "Did you mean 'format'"),
    ],
)
def test_wrong_fields_are_refused(tmp_path, page, message):
    with pytest.raises(ConfigError, match=message):
        check_study(write(tmp_path / "s", page, ROWS))


def test_error_marking_needs_the_plain_text(tmp_path):
    with pytest.raises(ConfigError, match="fields does not name it"):
        check_study(write(tmp_path / "s", 'fields = ["title"]', ROWS, "error_spans"))
    with pytest.raises(ConfigError, match="cannot be shown as conversation"):
        check_study(write(tmp_path / "s", 'content = "conversation"', [{"id": "a", "text": CHAT}], "error_spans"))


def test_a_broken_conversation_is_refused_with_its_line_and_column(tmp_path):
    rows = [{"id": "a", "text": "x", "talk": CHAT}, {"id": "b", "text": "y", "talk": '[{"role": "user"}]'}]
    page = 'fields = ["text", { column = "talk", format = "conversation" }]'
    with pytest.raises(ConfigError, match=r"items\.jsonl line 2 \(talk\): turn 1 of the conversation has no content"):
        check_study(write(tmp_path / "s", page, rows))


def test_an_item_of_which_nothing_is_shown_is_refused(tmp_path):
    rows = [ROWS[0], {**ROWS[1], "title": ""}]
    with pytest.raises(ConfigError, match=r"items\.jsonl line 2: nothing of item 'b' would be shown"):
        check_study(write(tmp_path / "s", 'fields = ["title"]', rows))


def test_shown_columns_may_not_change_once_they_are_in_the_study_and_others_may(tmp_path):
    folder = write(tmp_path / "s", 'fields = ["text", "title"]', ROWS)
    Study.open(folder).close()
    write(folder, 'fields = ["text", "title"]', [{**row, "price": "8"} for row in ROWS])
    Study.open(folder).close()
    write(folder, 'fields = ["text", "title"]', [{**row, "title": "Other"} for row in ROWS])
    with pytest.raises(DataError, match="has changed since it was added"):
        Study.open(folder)


def test_models_read_what_people_see(tmp_path):
    turns = json.loads(CHAT)
    rows = [{**row, "source": turns, "text": f"**{row['id']}**"} for row in ROWS]
    page = 'fields = ["title", "text", { column = "context", format = "conversation" }]'
    config, items = check_study(write(tmp_path / "s", page, rows, "pairwise"))
    text = Prompt("Q?", page=config.page).messages(items, Pairwise())[1]["content"]
    assert "<context>[user]\nHi\n\n[assistant]\nHello</context>" in text
    assert "<item A>title:\nTitle a\n\n**a**</item>" in text
    assert "engine" not in text
    assert "price" not in text
    assert Prompt("Q?", page=config.page).digest != Prompt("Q?").digest
    beside = part_beside(items[0], "context", config.page)
    assert beside is not None
    assert beside.format == "conversation"
