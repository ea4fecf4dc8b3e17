"""Pseudonyms of annotators, computed with the study's secret; they are the same in every export."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Container, Iterable
from dataclasses import dataclass

import polars as pl

_LENGTH = 10
_TOLD = frozenset({"reason", "excluded", "comment"})
"""Columns in which somebody wrote about people."""


def pseudonym(secret: str, name: str) -> str:
    """Return an annotator's pseudonym; it cannot be reversed without the secret."""
    if not name:
        return name
    mark = hmac.new(secret.encode(), name.encode("utf-8", "surrogatepass"), hashlib.sha256).digest()
    return "A-" + base64.b32encode(mark).decode().lower()[:_LENGTH]


@dataclass(frozen=True, slots=True)
class Names:
    """What each annotator is called in a file or report: by a pseudonym, or by their own names."""

    called: dict[str, str]
    real: bool = False
    """Whether people go by their own names. Comments are left out of tables then."""

    @classmethod
    def of(cls, names: Iterable[str], secret: str | None, *, models: Container[str] = ()) -> Names:
        """Name people by pseudonyms, or, without a secret, by their own names; models always by their own."""
        return cls(
            {name: name if secret is None or name in models else pseudonym(secret, name) for name in names if name},
            real=secret is None,
        )

    def column(self, name: str = "annotator") -> pl.Expr:
        """Rename a column of annotators."""
        return pl.col(name).replace(self.called)

    def within(self, text: str) -> str:
        """Replace annotators' names in a free text."""
        changed = {name: called for name, called in self.called.items() if name != called and name in text}
        if not changed:
            return text
        return _whole_words(changed).sub(lambda found: changed[found[0]], text)

    def frame(self, table: pl.DataFrame) -> pl.DataFrame:
        """Rename annotators wherever a table speaks of them."""
        if self.real and "comment" in table.columns:
            table = table.drop("comment")
        if "annotator" in table.columns:
            table = table.with_columns(self.column())
        columns = [name for name in table.columns if name in _TOLD and table.schema[name] == pl.String]
        return table.with_columns(pl.col(name).map_elements(self.within, pl.String) for name in columns)


def _whole_words(names: Iterable[str]) -> re.Pattern[str]:
    longest_first = sorted(names, key=len, reverse=True)
    return re.compile("|".join(rf"(?<!\w){re.escape(name)}(?!\w)" for name in longest_first))


def without_name(text: str, name: str, instead: str) -> str:
    """Replace a name in a free text, where it occurs as a whole word."""
    return _whole_words([name]).sub(lambda _: instead, text) if name in text else text
