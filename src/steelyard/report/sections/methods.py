"""The methods section: a paragraph for a paper, references, configuration and software."""

from __future__ import annotations

import json
import platform
import re
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

import polars as pl

from steelyard.analysis.analysis import Analysis
from steelyard.errors import ConfigError
from steelyard.formats.toml_reading import parse_toml
from steelyard.report.document import Block, Listing, Section, Table, text_column
from steelyard.report.methods_text import methods_text
from steelyard.report.references import bibliography
from steelyard.study import Study
from steelyard.study.config import CONFIG_FILE
from steelyard.version import __version__

TITLE = "Methods and software"
_PACKAGES = ("numpy", "scipy", "polars", "numba", "sqlalchemy", "altair", "vl-convert-python")
_DATABASE = re.compile(r"^\s*database\s*=.*\n?", re.MULTILINE)


def section(analysis: Analysis) -> Section:
    """Return the methods paragraph, the references, the configuration and the software."""
    written = methods_text(analysis)
    file, config = exact_config(analysis.study)
    blocks: tuple[Block, ...] = (
        Listing("methods.txt", "Methods paragraph, ready to adapt for a paper.", written.text, wrapped=True),
        Listing(
            "references.bib",
            "References of the methods paragraph.",
            bibliography(written.cited, __version__, datetime.now(UTC).year),
        ),
        Listing(file, "Complete configuration.", config),
        _software(),
    )
    return Section("methods", TITLE, blocks)


def exact_config(study: Study) -> tuple[str, str]:
    """Return study.toml without the database's address; if the file has changed since, the configuration in use."""
    source = {key: value for key, value in (study.config.source or {}).items() if key != "database"}
    try:
        text = _DATABASE.sub("", (study.folder / CONFIG_FILE).read_text(encoding="utf-8"))
        if parse_toml(text) == source:
            return CONFIG_FILE, text.strip() + "\n"
    except (OSError, UnicodeDecodeError, ConfigError):
        pass
    return "study.json", json.dumps(source, ensure_ascii=False, indent=2, default=str)


def _software() -> Table:
    rows = [("steelyard", __version__), ("Python", platform.python_version())]
    for name in _PACKAGES:
        try:
            rows.append((name, version(name)))
        except PackageNotFoundError:
            continue
    frame = pl.DataFrame(rows, schema=["package", "version"], orient="row")
    return Table("software", "Software.", frame, (text_column("package", "package"), text_column("version", "version")))
