"""The catalogues hold what the page says, in every language, with the same names in braces."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import steelyard.web
from steelyard.study import Study
from steelyard.web.catalogue import read_po
from tests.web.pages.studies import write_study

WEB = Path(steelyard.web.__file__).parent
LANGUAGES = sorted(path.stem for path in (WEB / "locales").glob("*.po") if path.stem != "en")
SAME_EVERYWHERE = {"{thing}: {criterion}", "Text"}
CLDR = {
    # Which of the forms of whole numbers, in the order zero, one, two, few, many, other, the numbers below have.
    "ar": [0, 1, 2, 3, 4, 4, 4, 5, 5],
    "de": [1, 0, 1, 1, 1, 1, 1, 1, 1],
    "en": [1, 0, 1, 1, 1, 1, 1, 1, 1],
    "es": [1, 0, 1, 1, 1, 1, 1, 1, 1],
    "fr": [0, 0, 1, 1, 1, 1, 1, 1, 1],
    "hi": [0, 0, 1, 1, 1, 1, 1, 1, 1],
    "ja": [0, 0, 0, 0, 0, 0, 0, 0, 0],
    "pt": [0, 0, 1, 1, 1, 1, 1, 1, 1],
    "ru": [2, 0, 1, 1, 2, 0, 1, 2, 0],
    "zh": [0, 0, 0, 0, 0, 0, 0, 0, 0],
}
"""Forms of 0, 1, 2, 3, 11, 21, 22, 100 and 101 by CLDR's plural rules."""


def said_on_the_page() -> set[str]:
    """Every message in the templates and scripts of the annotators' page."""
    messages = set()
    for path in (WEB / "templates").glob("*.html"):
        text = path.read_text(encoding="utf-8")
        messages |= set(re.findall(r'_\("([^"]+)"\)', text)) | set(re.findall(r'data-text="([^"]+)"', text))
    for path in (WEB / "static" / "annotate").glob("*.js"):
        messages |= set(re.findall(r'\bt\(\s*"([^"]+)"', path.read_text(encoding="utf-8")))
    return messages


def test_english_lists_every_message_of_the_page():
    messages = said_on_the_page()
    assert len(messages) > 100
    assert messages - set(read_po(WEB / "locales" / "en.po").messages) == set()


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_language_is_complete_and_translated(language):
    english = read_po(WEB / "locales" / "en.po").messages
    catalogue = read_po(WEB / "locales" / f"{language}.po")
    assert catalogue.own_name != language
    assert set(catalogue.messages) == set(english)
    n_forms = max(CLDR[language]) + 1
    for message, forms in catalogue.messages.items():
        assert len(forms) == (n_forms if len(english[message]) > 1 else 1), message
        for words in forms:
            assert message in SAME_EVERYWHERE or words != message, message
            assert words == words.strip()
            assert sorted(re.findall(r"\{\w+\}", words)) == sorted(re.findall(r"\{\w+\}", message)), message


@pytest.mark.parametrize("language", ["en", *LANGUAGES])
def test_plural_forms_are_those_of_cldr(language):
    catalogue = read_po(WEB / "locales" / f"{language}.po")
    catalogue.messages["{n}"] = tuple(map(str, range(max(CLDR[language]) + 1)))
    forms = [int(catalogue.ngettext("{n}", "{n}", n)) for n in (0, 1, 2, 3, 11, 21, 22, 100, 101)]
    assert forms == CLDR[language]


def test_what_people_are_told_when_their_part_has_ended_is_in_the_catalogue(tmp_path):
    """The reasons come from the server, as they stand."""
    test = {"quality": 'qualification = { file = "test.csv" }', "files": {"test.csv": "items,answer\nsun | mud,sun\n"}}
    reasons = []
    with Study.open(write_study(tmp_path / "study", **test)) as study:
        study.offer_many("ann", 1)
        study.annotators.exclude("ann", "random answers")
        study.annotators.answer_test("ben", 1, {"winner": "mud"})
        for name in ("ann", "ben"):
            _, nothing = study.offer_many(name, 1)
            reasons.append(nothing.reason)
    assert len(set(reasons)) == 2
    assert set(reasons) <= set(read_po(WEB / "locales" / "en.po").messages)


def test_scripts_say_nothing_but_through_the_catalogue():
    """No English sentence stands in an element that the scripts make."""
    for path in (WEB / "static" / "annotate").glob("*.js"):
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.lstrip().startswith(("/", "*")):
                continue
            children = re.findall(r'h\("\w+", \{[^}]*\}, "([^"]+)"', line)
            assert not [words for words in children if re.search(r"[A-Za-z]{3}", words) and words != "Esc"], line
