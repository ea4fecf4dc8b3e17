"""A study as a data set to publish: Parquet files and a data set card, in the layout of the Hugging Face Hub."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from steelyard.analysis.analysis import Analysis
from steelyard.errors import ConfigError, DataError, ModelFailedError
from steelyard.formats import item_table, write_table
from steelyard.report.methods_text import methods_text
from steelyard.report.references import bibliography
from steelyard.study import Study
from steelyard.version import __version__

_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
_MEANINGS = {
    "scores": {
        "item": "the item’s id",
        "text": "the item’s text",
        "criterion": "criterion of the judgment",
        "group": "group (system) of the item",
        "score": "score, in units of the scale or of the model",
        "unit_score": "score on the scale from 0 to 1",
        "label": "most probable label",
        "probability": "probability of that label",
        "tied": "number of labels tied for the first rank",
        "sd": "standard error of the score",
        "lower": "lower end of the interval",
        "upper": "upper end of the interval",
        "interval": "method of the interval",
        "rank": "rank, 1 for the highest score; tied items share a rank",
        "rank_lower": "lower end of the rank’s interval",
        "rank_upper": "upper end of the rank’s interval",
        "judgments": "number of judgments",
        "annotators": "number of annotators",
    },
    "judgments": {
        "judgment_id": "the judgment’s id",
        "annotator": "who answered",
        "stage": "stage of the study",
        "protocol": "protocol of the question",
        "items": "items in the order shown",
        "answer": "the answer, as JSON",
        "at": "when (UTC)",
        "seconds": "active time in seconds",
        "late": "whether the answer arrived after its lease had expired",
        "revised": "whether the answer was revised; this is the latest version",
        "imported": "whether the judgment was imported",
        "set_aside": "whether the annotator was excluded, so that the judgment does not count in the scores",
        "purpose": "judgment, overlap (assigned to every annotator), check (the answer is known) or repeat",
        "right": "whether a check was answered right",
        "annotator_kind": "person or model",
        "in_scores": "whether it counts in the scores",
        "version": "version of a model’s prompt and settings",
        "cost": "what a model’s answer cost",
        "first_action": "active seconds before the annotator's first action",
        "changes": "number of changes before the answer was sent",
        "untrusted": "number of events on the page that were triggered by a script, not by a person",
        "pastes": "how often text was pasted",
        "item_seconds": "active seconds spent on each item of a page with several, as JSON",
    },
    "items": {
        "id": "the item’s id",
        "text": "what was shown",
        "group": "group (system) of the item",
        "context": "context shown next to the item",
        "reference": "reference text",
        "media": "image, audio or video",
        "tags": "tags of the item",
        "gold": "the known answer",
    },
}


def write_dataset(study: Study, folder: Path, *, real_ids: bool = False) -> list[Path]:
    """Write scores, judgments and items as Parquet, and README.md that explains them; return the files.

    Annotators have pseudonyms, the same as in the study's other exports, unless `real_ids`.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder} already exists and is not empty.", "Choose another folder.")
    analysis = Analysis.of(study, real_ids=real_ids)
    tables = _tables(analysis)
    data = folder / "data"
    try:
        data.mkdir(parents=True)
    except OSError as error:
        raise ConfigError(f"{folder} cannot be created: {error.strerror}.", "Choose another folder.") from None
    written = []
    for name, table in tables.items():
        written.append(data / f"{name}.parquet")
        write_table(table, written[-1])
    card = folder / "README.md"
    card.write_text(dataset_card(analysis, tables), encoding="utf-8")
    return [*written, card]


def _tables(analysis: Analysis) -> dict[str, pl.DataFrame]:
    study = analysis.study
    items = item_table(study.items)
    # A data set is published; comments are for those who run the study.
    judgments = analysis.names.frame(study.judgments().drop("comment"))
    if isinstance(analysis.fit, str) and analysis.model_failed:
        raise ModelFailedError(analysis.fit, "Export only the judgments, or choose another model in [model].")
    if isinstance(analysis.fit, str):
        raise DataError(f"there is nothing to publish: {analysis.fit}", "Collect judgments first.")
    return {"scores": analysis.fit.scores, "judgments": judgments, "items": items}


def dataset_card(analysis: Analysis, tables: dict[str, pl.DataFrame]) -> str:
    """Return the data set card: YAML for the Hub, and a description for readers."""
    config = analysis.study.config
    written = methods_text(analysis)
    rows = tables["judgments"].height
    size = next((name for most, name in _SIZES if rows < most), "n>1M")
    front = [
        "---",
        f"pretty_name: {json.dumps(config.title, ensure_ascii=False)}",
        "license: unknown # fill in the licence",
        "annotations_creators:",
        "- crowdsourced",
        "size_categories:",
        f"- {size}",
        "configs:",
    ]
    for place, name in enumerate(tables):
        front += [f"- config_name: {name}", "  data_files:", "  - split: train", f"    path: data/{name}.parquet"]
        front += ["  default: true"] if place == 0 else []
    front.append("---")
    questions = dict.fromkeys(config.question_of(stage) for stage in config.stages)
    lines = [
        *front,
        "",
        f"# {_line(config.title)}",
        "",
        *(f"Annotators were asked: *{_line(question)}*" for question in questions),
        "",
        "## Files",
        "",
    ]
    for name, table in tables.items():
        lines += [f"### {name} ({table.height:,} rows)", "", "| column | type | meaning |", "|---|---|---|"]
        lines += [
            f"| `{_code(column)}` | {_type(kind)} | {_MEANINGS[name].get(column) or _other_column(name, column)} |"
            for column, kind in table.schema.items()
        ]
        lines.append("")
    lines += [
        "## How it was collected",
        "",
        _line(written.text),
        "",
        "Judgments of excluded annotators are included and marked `set_aside`; so are checks and repeats, by "
        "`purpose`. None of these count in the scores.",
        "",
        "## Licence",
        "",
        "Fill in: the licence of the items, and that of the judgments.",
        "",
        "## Citation",
        "",
        "Fill in how to cite this data set. The methods:",
        "",
        "```bibtex",
        bibliography(written.cited, __version__, datetime.now(UTC).year),
        "```",
        "",
    ]
    return "\n".join(lines)


def _line(text: str) -> str:
    """Escape a text for Markdown."""
    flat = " ".join(text.split())
    for sign in "\\`*_[]<>|#":
        flat = flat.replace(sign, f"\\{sign}")
    return flat


def _code(text: str) -> str:
    """Format a name as code in a Markdown table."""
    return " ".join(text.split()).replace("`", "'").replace("|", "\\|")


def _type(kind: pl.DataType) -> str:
    return {"String": "text", "Int64": "whole number", "Float64": "number", "Boolean": "yes or no"}.get(
        str(kind), "list of texts" if kind.is_nested() else "time" if kind.is_temporal() else str(kind).lower()
    )


def _other_column(table: str, column: str) -> str:
    if table == "items":
        return "column of the items file"
    return "probability of that label" if column.startswith("p(") else ""
