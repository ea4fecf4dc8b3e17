"""Run the notebooks in docs/notebooks and keep their outputs; turn a notebook into a page of the documentation site.

Run: python -m scripts.notebooks [NAME …]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "notebooks"


def cells(path: Path) -> list[dict[str, Any]]:
    """Return the cells of a notebook, with `source` as one text."""
    document = json.loads(path.read_text(encoding="utf-8"))
    return [{**cell, "source": "".join(cell["source"])} for cell in document["cells"]]


def markdown_of(path: Path) -> str:
    """Return a notebook as a Markdown page: texts, code and stored outputs."""
    parts = []
    for cell in cells(path):
        if cell["cell_type"] == "markdown":
            parts.append(cell["source"])
        elif cell["cell_type"] == "code":
            parts.append(f"```python\n{cell['source'].strip()}\n```")
            parts += [_output(output) for output in cell["outputs"]]
        if len(parts) == 1:
            parts.append(f"[Download this notebook]({path.name}){{ download }}")
    return "\n\n".join(part for part in parts if part) + "\n"


def _output(output: dict[str, Any]) -> str:
    """Return one output of a cell as Markdown; warnings and logs are left out."""
    if output["output_type"] == "stream":
        return _text(output["text"]) if output["name"] == "stdout" else ""
    data = output.get("data", {})
    for kind in ("image/svg+xml", "text/html"):
        if kind in data:
            content = "".join(data[kind]).replace("\n\n", "\n").strip()
            return f'<div class="notebook-output">\n{content}\n</div>'
    return _text(data["text/plain"]) if "text/plain" in data else ""


def _text(lines: str | list[str]) -> str:
    return f"```text\n{''.join(lines).rstrip()}\n```"


def run(path: Path) -> None:
    """Run a notebook from top to bottom in an empty folder, and store its outputs in it."""
    import tempfile

    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(notebook, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()
    for number, cell in enumerate(notebook.cells):
        # No times of execution and random ids, so that running a notebook again changes only what came out differently.
        cell.metadata.pop("execution", None)
        cell["id"] = f"cell-{number}"
        if cell.cell_type == "code":
            cell["outputs"] = _joined(cell["outputs"])
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    nbformat.write(notebook, path)  # type: ignore[no-untyped-call]


def _joined(outputs: list[Any]) -> list[Any]:
    """Join the lines that a cell printed one by one; leave out what it wrote to standard error."""
    joined: list[Any] = []
    for output in outputs:
        if output["output_type"] != "stream":
            joined.append(output)
        elif output["name"] == "stdout":
            if joined and joined[-1]["output_type"] == "stream":
                joined[-1]["text"] += output["text"]
            else:
                joined.append(output)
    return joined


def main() -> None:
    """Run the notebooks named on the command line, or all of them."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        if len(sys.argv) == 1 or path.stem in sys.argv[1:]:
            run(path)
            print(path.name)


if __name__ == "__main__":
    main()
