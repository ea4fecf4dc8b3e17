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


def escape(text: str) -> str:
    """Return a text as LaTeX that prints it."""
    return text.translate(_TABLE)


def latex_table(table: Table) -> str:
    """Write a table as a booktabs `tabular` in a `table`; rows that the page leaves out are left out here too."""
    columns = "".join("r" if column.numeric else "l" for column in table.columns)
    heads = [escape(column.head) for column in table.columns]
    rows = [[escape(cell.text) for cell in row] for row in table.rows()]
    half = table.shown.height // 2
    lines = [
        "% needs \\usepackage{booktabs} and \\usepackage[T1]{fontenc}",
        r"\begin{table}",
        r"\centering",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
    ]
    if any(heads):
        lines += [_row(heads), r"\midrule"]
    for place, row in enumerate(rows):
        if table.left_out and place == half:
            lines.append(rf"\multicolumn{{{len(heads)}}}{{c}}{{\dots{{}} {table.left_out} more rows}} \\")
        lines.append(_row(row))
    lines += [
        r"\bottomrule",
        r"\end{tabular}",
        rf"\caption{{{escape(table.caption)}}}",
        rf"\label{{tab:{table.name}}}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _row(cells: list[str]) -> str:
    # A bracket at the start of a row would pass for an option of the line break before it.
    guarded = [f"{{}}{cell}" if cell.startswith("[") else cell for cell in cells]
    return " & ".join(guarded) + r" \\"
