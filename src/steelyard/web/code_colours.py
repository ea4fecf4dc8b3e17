"""Colours of source code: each token gets one of a few classes, which the page's style sheet colours."""

from __future__ import annotations

import html
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pygments.lexer import Lexer

_LONGEST = 20_000
"""Characters up to which code is coloured; longer code is shown plainly, so that no item can keep the server busy."""
_MOST_DISTINCT = 200
COLOUR_CLASSES = ("code-keyword", "code-name", "code-text", "code-number", "code-comment", "code-added", "code-removed")
_CLASSES = {
    "Keyword": "code-keyword",
    "Operator.Word": "code-keyword",
    "Name.Tag": "code-keyword",
    "Name.Function": "code-name",
    "Name.Class": "code-name",
    "Name.Builtin": "code-name",
    "Name.Decorator": "code-name",
    "Name.Attribute": "code-name",
    "Literal.String": "code-text",
    "Literal.Number": "code-number",
    "Comment": "code-comment",
    "Generic.Inserted": "code-added",
    "Generic.Deleted": "code-removed",
}


def code_html(code: str, language: str) -> str:
    """Return code as HTML; with a known language, its tokens are coloured."""
    lexer = _lexer(language.strip().lower()) if language and len(code) <= _LONGEST else None
    if lexer is None:
        return html.escape(code, quote=False)
    return "".join(_span(kind, value) for kind, value in _joined(lexer.get_tokens(code), code))


def _span(kind: str | None, value: str) -> str:
    text = html.escape(value, quote=False)
    return text if kind is None or not value.strip() else f'<span class="{kind}">{text}</span>'


def _joined(tokens: Any, code: str) -> list[tuple[str | None, str]]:
    """Join neighbours of one colour; if the lexer changed the code, show it plainly."""
    parts: list[tuple[str | None, list[str]]] = []
    for token, value in tokens:
        kind = _class(str(token).removeprefix("Token."))
        if parts and parts[-1][0] == kind:
            parts[-1][1].append(value)
        else:
            parts.append((kind, [value]))
    joined = [(kind, "".join(values)) for kind, values in parts]
    return joined if "".join(value for _, value in joined) == code else [(None, code)]


@lru_cache(maxsize=1000)
def _class(token: str) -> str | None:
    while token:
        if token in _CLASSES:
            return _CLASSES[token]
        token = token.rpartition(".")[0]
    return None


@lru_cache(maxsize=_MOST_DISTINCT)
def _lexer(language: str) -> Lexer | None:
    # Imported where it is needed: most studies show no code.
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        lexer: Lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None
    return lexer
