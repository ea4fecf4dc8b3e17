"""The JSON Schema of study.toml accepts what `parse_config` accepts, and refuses known mistakes."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pydantic
import pytest
from jsonschema import Draft202012Validator

from steelyard import registry
from steelyard.errors import ConfigError
from steelyard.study import parse_config
from steelyard.study.config.schema import SCHEMA_FILE, SCHEMA_LINE, study_schema
from tests.cli.running import run

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ROOT / "src" / "steelyard" / "study" / "config" / SCHEMA_FILE
STUDY = {"title": "T", "question": "Q?", "items": "items.csv", "protocol": {"name": "direct"}}
NEEDED = {"choice": {"labels": ["yes", "no"]}, "ranking": {"size": 3}}
"""Settings that a protocol cannot do without."""
BLOCK = re.compile(r"^```toml\n(title.*?)^```$", re.M | re.S)


@pytest.fixture(scope="module")
def schema() -> Draft202012Validator:
    content = study_schema()
    Draft202012Validator.check_schema(content)
    return Draft202012Validator(content)


def written_studies() -> list[str]:
    files = [path.read_text(encoding="utf-8") for path in ROOT.glob("src/steelyard/examples/*/study.toml")]
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    return files + [text for page in pages for text in BLOCK.findall(page.read_text(encoding="utf-8"))]


@pytest.mark.skipif(
    tuple(map(int, pydantic.VERSION.split(".")[:2])) < (2, 14), reason="pydantic before 2.14 writes other schemas"
)
def test_the_shipped_schema_is_up_to_date():
    assert json.loads(SHIPPED.read_text(encoding="utf-8")) == study_schema(), "run: python -m scripts.reference"


def test_every_study_in_examples_and_documentation_is_valid(schema):
    studies = written_studies()
    assert len(studies) >= 3
    for text in studies:
        assert [error.message for error in schema.iter_errors(tomllib.loads(text))] == [], text


@pytest.mark.parametrize("name", registry.names("protocols"))
def test_every_protocol_with_its_default_design_and_model_is_valid(schema, name):
    cls = registry.find("protocols", name)
    names = {"design": {"name": cls.default_design}, "model": {"name": cls.default_model}}
    config = {**STUDY, "protocol": {"name": name, **NEEDED.get(name, {})}, **names}
    parse_config(config)
    assert [error.message for error in schema.iter_errors(config)] == []


def test_a_new_study_names_its_schema_and_is_valid(schema, tmp_path):
    run("new", "words", cwd=tmp_path)
    text = (tmp_path / "words" / "study.toml").read_text(encoding="utf-8")
    assert text.splitlines()[0] == SCHEMA_LINE
    assert json.loads((tmp_path / "words" / SCHEMA_FILE).read_text(encoding="utf-8")) == schema.schema
    assert schema.is_valid(tomllib.loads(text))


WRONG = {
    "no title": {key: value for key, value in STUDY.items() if key != "title"},
    "no protocol": {key: value for key, value in STUDY.items() if key != "protocol"},
    "unknown key": {**STUDY, "tittle": "T"},
    "unknown key of a table": {**STUDY, "annotators": {"max_task": 3}},
    "unknown protocol": {**STUDY, "protocol": {"name": "slider"}},
    "protocol without a name": {**STUDY, "protocol": {"scale": [0, 1]}},
    "setting of another protocol": {**STUDY, "protocol": {"name": "direct", "ties": True}},
    "setting of another design": {**STUDY, "design": {"name": "per_item", "rounds": 3}},
    "text instead of a number": {**STUDY, "annotators": {"max_tasks": "three"}},
    "number out of range": {**STUDY, "quality": {"repeat_rate": 2.0}},
    "wrong choice": {**STUDY, "page": {"content": "pdf"}},
    "stages and a protocol": {**STUDY, "stage": [{"protocol": {"name": "direct"}}]},
    "unknown setting in a stage": {
        **{key: value for key, value in STUDY.items() if key != "protocol"},
        "stage": [{"protocol": {"name": "pairwise", "tie": True}}],
    },
}


@pytest.mark.parametrize("name", WRONG)
def test_mistakes_are_refused_as_when_the_study_is_read(schema, name):
    assert not schema.is_valid(WRONG[name])
    with pytest.raises(ConfigError):
        parse_config(WRONG[name])
