"""Translations of the pages: gettext catalogues, read from .po files when the server starts."""

from __future__ import annotations

import gettext
import re
from collections.abc import Iterable, Mapping, Set
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

import polib

from steelyard.errors import DataError
from steelyard.web.content import direction_of

FOLDER = Path(__file__).parent / "locales"
ENGLISH = "en"
_RIGHT_TO_LEFT = {"ar", "dv", "fa", "he", "ps", "ur", "yi"}

Forms: TypeAlias = "tuple[str, ...]"


class Catalogue(gettext.NullTranslations):
    """The messages of one language; missing ones are in English."""

    def __init__(
        self, language: str, messages: Mapping[str, Forms], plural_rule: str = "n != 1", own_name: str = ""
    ) -> None:
        super().__init__()
        self.language = language
        self.own_name = own_name or language
        self.direction: Literal["ltr", "rtl"] = "rtl" if language.partition("-")[0] in _RIGHT_TO_LEFT else "ltr"
        self.messages = dict(messages)
        self._form_for = gettext.c2py(plural_rule)

    def gettext(self, message: str) -> str:
        """Translate a message."""
        return self.messages.get(message, (message,))[0]

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        """Translate a message with a number, in its plural form."""
        forms = self.messages.get(msgid1)
        if forms is None:
            return msgid1 if n == 1 else msgid2
        return forms[min(self._form_for(n), len(forms) - 1)]

    def as_json(self, scripts: Iterable[str] | None = None) -> dict[str, str | list[str]]:
        """The messages for the page: a text, or its plural forms in the order of CLDR's categories.

        `scripts` are those of the optional scripts that the page loads; what only others say is left out.
        """
        unused = set() if scripts is None else _said_only_by(OPTIONAL_SCRIPTS - set(scripts))
        return {
            name: forms[0] if len(forms) == 1 else list(forms)
            for name, forms in self.messages.items()
            if name not in unused
        }


OPTIONAL_SCRIPTS = frozenset(
    {
        *("best_worst", "criteria", "error_spans", "graded", "media", "pairwise", "ranking", "rated", "reading"),
        *("questionnaire", "unjudged"),
    }
)
"""Scripts of the annotators' page that only some studies load."""
_SCRIPTS = Path(__file__).parent / "static" / "annotate"


def _said_only_by(scripts: Set[str]) -> Set[str]:
    """Return the messages that none but these optional scripts say."""
    by_script = _messages_by_script()
    others = set().union(*(messages for name, messages in by_script.items() if name not in scripts))
    return set().union(*(by_script[name] for name in scripts & set(by_script))) - others


@cache
def _messages_by_script() -> Mapping[str, Set[str]]:
    return {
        path.stem: frozenset(re.findall(r'\bt\(\s*"([^"]+)"', path.read_text(encoding="utf-8")))
        for path in _SCRIPTS.glob("*.js")
    }


def read_po(path: Path) -> Catalogue:
    """Read a .po file; fuzzy and empty entries count as missing."""
    text = path.read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(), 1):
        # polib accepts keywords whose text is not quoted, and drops its first and last character.
        if line.strip() and not line.startswith("#") and not line.rstrip().endswith('"'):
            raise _broken(path, number)
    try:
        entries = polib.pofile(text)
    except OSError as error:
        # polib's message ends in the line: "Syntax error in po file (line 2)".
        match = re.search(r"line (\d+)", str(error))
        raise _broken(path, int(match[1]) if match else None) from None
    plural_rule = re.search(r"plural=(.+?);", entries.metadata.get("Plural-Forms", ""))
    messages: dict[str, Forms] = {}
    for entry in entries:
        forms = tuple(form for _, form in sorted(entry.msgstr_plural.items())) or (entry.msgstr,)
        if entry.obsolete:
            continue
        if not entry.fuzzy and all(forms):
            messages[entry.msgid] = forms
        elif path.stem == ENGLISH:
            messages[entry.msgid] = (entry.msgid, entry.msgid_plural) if entry.msgid_plural else (entry.msgid,)
    own_name = entries.metadata.get("X-Language-Name", "").strip()
    return Catalogue(path.stem, messages, plural_rule[1] if plural_rule else "n != 1", own_name)


def _broken(path: Path, line: int | None) -> DataError:
    return DataError(
        "this is not a line of a .po file.",
        'Write a keyword and a text in quotes: msgstr "…".',
        file=path.name,
        line=line,
    )


@cache
def catalogues() -> Mapping[str, Catalogue]:
    """All languages by code; English is always included."""
    by_language = {path.stem: read_po(path) for path in sorted(FOLDER.glob("*.po"))}
    return {ENGLISH: Catalogue(ENGLISH, {}, own_name="English"), **by_language}


def catalogue_for(*wanted: str | None) -> Catalogue:
    """Return the first available language; each of `wanted` is a code or an Accept-Language header."""
    available = catalogues()
    for text in wanted:
        for code in _by_preference(text or ""):
            for candidate in (code, code.partition("-")[0]):
                if candidate in available:
                    return available[candidate]
    return available[ENGLISH]


def study_direction(question: str, language: str | None) -> Literal["ltr", "rtl"]:
    """Return the direction of a study's scales: that of its question or, if it has no letters, of its language."""
    direction = direction_of(question)
    if direction == "auto":
        return catalogue_for(language).direction
    return direction


def _by_preference(header: str) -> list[str]:
    weighed = []
    for place, part in enumerate(header[:1000].split(",")):
        code, _, weight = part.strip().partition(";q=")
        try:
            quality = float(weight or 1)
        except ValueError:
            quality = 0.0
        if code and quality > 0:
            weighed.append((-quality, place, code.lower()))
    return [code for _, _, code in sorted(weighed)]
