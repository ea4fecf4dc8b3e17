"""Tables as LaTeX, for papers: booktabs, everything escaped."""

from __future__ import annotations

from steelyard.report.document import Table

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "–": "--",
    "—": "---",
    "…": r"\dots{}",
    "’": "'",
    "‘": "`",
    "“": "``",
    "”": "''",
    "α": r"$\alpha$",
    "κ": r"$\kappa$",
    "ρ": r"$\rho$",
    "ζ": r"$\zeta$",
    "σ": r"$\sigma$",
    "μ": r"$\mu$",
    "−": "$-$",
    "×": r"$\times$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "·": r"$\cdot$",
    "\n": " ",
    "\r": " ",
    "\t": " ",
}
_TABLE = str.maketrans(_SPECIAL)
_LONG_TEXT = 40
"""Texts longer than this are set in several lines."""
_SHRUNK = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
"""Tables wider than the text are scaled down to its width."""


def escape(text: str) -> str:
    """Escape a text for LaTeX."""
    return text.translate(_TABLE)


def latex_table(table: Table) -> str:
    """Write a table as a booktabs `tabular` in a `table`; rows omitted on the page are omitted here too."""
    heads = [escape(column.head) for column in table.columns]
    texts = [[cell.text for cell in row] for row in table.rows()]
    rows = [[escape(text) for text in row] for row in texts]
    longest = [max((len(row[place]) for row in texts), default=0) for place in range(len(heads))]
    columns = "".join(
        "r" if column.numeric else rf"p{{{_LONG_TEXT // 2}em}}" if length > _LONG_TEXT else "l"
        for column, length in zip(table.columns, longest, strict=True)
    )
    half = table.shown.height // 2
    lines = [
        "% needs \\usepackage{booktabs}, \\usepackage{graphicx} and \\usepackage[T1]{fontenc}",
        r"\begin{table}",
        r"\centering",
        _SHRUNK,
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
    ]
    if any(heads):
        lines += [_row(heads), r"\midrule"]
    for place, row in enumerate(rows):
        if table.left_out and place == half:
            lines.append(rf"\multicolumn{{{len(heads)}}}{{c}}{{\dots{{}} {table.left_out} more rows}} \\")
        if place in table.rules_shown:
            lines.append(r"\midrule")
        lines.append(_row(row))
    lines += [
        r"\bottomrule",
        r"\end{tabular}}",
        rf"\caption{{{escape(table.caption)}}}",
        rf"\label{{tab:{table.name}}}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _row(cells: list[str]) -> str:
    # A bracket at the start of a row would be read as an option of the preceding line break.
    guarded = [f"{{}}{cell}" if cell.startswith("[") else cell for cell in cells]
    return " & ".join(guarded) + r" \\"
