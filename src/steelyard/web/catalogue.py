"""The pages' languages: gettext catalogues, read from their .po files when the server starts."""

from __future__ import annotations

import ast
import gettext
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TypeAlias

from steelyard.errors import DataError

FOLDER = Path(__file__).parent / "locales"
ENGLISH = "en"
_RIGHT_TO_LEFT = {"ar", "dv", "fa", "he", "ps", "ur", "yi"}
_LINE = re.compile(r'(msgctxt|msgid_plural|msgid|msgstr(?:\[(\d+)\])?)?\s*(".*")$')

Forms: TypeAlias = "tuple[str, ...]"


class Catalogue(gettext.NullTranslations):
    """The messages of one language; one that is missing is said in English."""

    def __init__(
        self, language: str, messages: Mapping[str, Forms], plural_rule: str = "n != 1", own_name: str = ""
    ) -> None:
        super().__init__()
        self.language = language
        self.own_name = own_name or language
        self.direction = "rtl" if language.partition("-")[0] in _RIGHT_TO_LEFT else "ltr"
        self.messages = dict(messages)
        self._form_for = gettext.c2py(plural_rule)

    def gettext(self, message: str) -> str:
        """Say a message."""
        return self.messages.get(message, (message,))[0]

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        """Say a message that counts something."""
        forms = self.messages.get(msgid1)
        if forms is None:
            return msgid1 if n == 1 else msgid2
        return forms[min(self._form_for(n), len(forms) - 1)]

    def as_json(self) -> dict[str, str | list[str]]:
        """The messages for the page: a text each, or its plural forms in the order of CLDR's categories."""
        return {name: forms[0] if len(forms) == 1 else list(forms) for name, forms in self.messages.items()}


def read_po(path: Path) -> Catalogue:
    """Read a .po file; fuzzy and empty entries count as missing."""
    messages: dict[str, Forms] = {}
    rule, own_name = "n != 1", ""
    for name, plural, forms, fuzzy in _entries(path):
        if name == "":
            found = re.search(r"plural=(.+?);", forms.get(0, ""))
            rule = found[1] if found else rule
            named = re.search(r"^X-Language-Name: *(.+)$", forms.get(0, ""), re.M)
            own_name = named[1].strip() if named else own_name
        elif not fuzzy and all(forms.values()):
            messages[name] = tuple(forms[n] for n in sorted(forms))
        elif path.stem == ENGLISH:
            messages[name] = (name,) if plural is None else (name, plural)
    return Catalogue(path.stem, messages, rule, own_name)


def _entries(path: Path) -> Iterator[tuple[str, str | None, dict[int, str], bool]]:
    """Yield msgid, msgid_plural, the translations by number, and whether they are marked fuzzy."""
    for block in re.split(r"\n\s*\n", path.read_text(encoding="utf-8")):
        parts: dict[str, str] = {}
        current, fuzzy = "", False
        for line in block.splitlines():
            text = line.strip()
            if text.startswith("#"):
                fuzzy |= text.startswith("#,") and "fuzzy" in text
                continue
            if not text:
                continue
            match = _LINE.match(text)
            if match is None:
                raise DataError(f"{text!r} is not a line of a .po file.", "Correct it.", file=path.name)
            current = match[1] or current
            parts[current] = parts.get(current, "") + ast.literal_eval(match[3])
        if "msgid" in parts:
            forms = {
                int(key[7:-1] or 0) if "[" in key else 0: v for key, v in parts.items() if key.startswith("msgstr")
            }
            yield parts["msgid"], parts.get("msgid_plural"), forms, fuzzy


@cache
def catalogues() -> Mapping[str, Catalogue]:
    """All languages there are, by code; English is always among them."""
    found = {path.stem: read_po(path) for path in sorted(FOLDER.glob("*.po"))}
    return {ENGLISH: Catalogue(ENGLISH, {}, own_name="English"), **found}


def catalogue_for(*wanted: str | None) -> Catalogue:
    """Return the first language that is there; each of `wanted` is a code or an Accept-Language header."""
    known = catalogues()
    for text in wanted:
        for code in _by_preference(text or ""):
            for candidate in (code, code.partition("-")[0]):
                if candidate in known:
                    return known[candidate]
    return known[ENGLISH]


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
