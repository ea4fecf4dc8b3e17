"""LaTeX that LaTeX would take: everything that it reads as a command is escaped."""

from __future__ import annotations

import re

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from steelyard.report.document import MOST_ROWS, Table, count_column, text_column
from steelyard.report.latex import escape, latex_table

COMMANDS = r"\\(?:textbackslash|textasciicircum|textasciitilde|textless|textgreater|textbar|textquotedbl|dots)\{\}"


def table(texts: list[str], head: str = "text") -> Table:
    frame = pl.DataFrame({"text": texts, "count": list(range(len(texts)))}, schema_overrides={"text": pl.String})
    return Table("some-table", "Costs: 5 % & more_", frame, (text_column("text", head), count_column("count", "n")))


@given(st.text(alphabet="\\{}$&#%_^~<>|\"aé–αρ\n\t' ", max_size=20))
def test_nothing_that_latex_reads_as_a_command_is_left(text):
    left = re.sub(COMMANDS, "", escape(text))
    left = re.sub(r"\\[{}$&#%_]", "", left)
    left = re.sub(r"\$\\[a-z]+\$|\$-\$", "", left)
    assert not set(left) & set("\\{}$&#%_^~\n\t")


def test_a_table_is_a_booktabs_tabular_with_as_many_cells_in_every_row():
    latex = latex_table(table(["a & b", "50 %", "x_1", r"\input{x}", "[oops]"], head="what & why"))
    assert r"\begin{tabular}{lr}" in latex
    assert latex.count(r"\toprule") == latex.count(r"\midrule") == latex.count(r"\bottomrule") == 1
    rows = [line for line in latex.splitlines() if line.endswith(r"\\")]
    assert rows[0] == r"what \& why & n \\"
    assert rows[1] == r"a \& b & 0 \\"
    assert rows[4] == r"\textbackslash{}input\{x\} & 3 \\"
    assert rows[5] == r"{}[oops] & 4 \\"
    assert all(len(re.findall(r"(?<!\\)&", row)) == 1 for row in rows)
    assert r"\caption{Costs: 5 \% \& more\_}" in latex
    assert latex.count("{") == latex.count("}")


def test_a_long_table_says_how_many_rows_it_leaves_out():
    latex = latex_table(table([f"row {n}" for n in range(MOST_ROWS + 7)]))
    assert "7 more rows" in latex
    assert "row 0 " in latex
    assert f"row {MOST_ROWS + 6} " in latex
    assert f"row {MOST_ROWS // 2} " not in latex


def test_long_texts_break_into_lines_and_a_wide_table_is_made_narrower():
    latex = latex_table(table(["short", "so long a remark that no column of a paper would hold it"]))
    assert r"\begin{tabular}{p{20em}r}" in latex
    assert r"\resizebox" in latex.split(r"\begin{tabular}")[0]
