"""Item content for display: sanitised text, Markdown and HTML, and media from one folder."""

from __future__ import annotations

import html
import logging
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import quote, urlsplit

import nh3
from markdown_it import MarkdownIt

from steelyard.errors import DataError
from steelyard.formats.conversations import ROLES, parse_conversation
from steelyard.records import Item
from steelyard.study.config.tables import Page
from steelyard.study.display import item_parts
from steelyard.web.code_colours import COLOUR_CLASSES, code_html

log = logging.getLogger("steelyard.web")

Kind: TypeAlias = Literal["text", "markdown", "html", "code", "conversation"]
Direction: TypeAlias = Literal["ltr", "rtl", "auto"]

_TAGS = {
    *("a", "abbr", "audio", "b", "bdi", "bdo", "blockquote", "br", "caption", "cite", "code", "col", "colgroup", "dd"),
    *("del", "details", "dfn", "div", "dl", "dt", "em", "figcaption", "figure", "h1", "h2", "h3", "h4", "h5", "h6"),
    *("hr", "i", "img", "ins", "kbd", "li", "mark", "ol", "p", "pre", "q", "rp", "rt", "ruby", "s", "samp", "small"),
    *("source", "span", "strong", "sub", "summary", "sup", "table", "tbody", "td", "tfoot", "th", "thead", "time"),
    *("tr", "u", "ul", "var", "video", "wbr"),
}
# No id, name, class or style: they could imitate elements of the page.
_ATTRIBUTES = {
    "*": {"dir", "lang", "title"},
    "a": {"href"},
    "bdo": {"dir"},
    "col": {"span"},
    "colgroup": {"span"},
    "img": {"src", "alt", "width", "height"},
    "audio": {"src", "controls"},
    "video": {"src", "controls", "width", "height"},
    "source": {"src"},
    "ol": {"start"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan", "scope"},
    "time": {"datetime"},
}
_DROPPED_WITH_CONTENT = {"script", "style", "svg", "math", "template", "iframe", "object", "noscript", "title"}
_SET_ATTRIBUTES = {
    "audio": {"controls": ""},
    "video": {"controls": ""},
    "a": {"target": "_blank"},
    # Code runs from left to right, also within a text that does not.
    "pre": {"dir": "ltr"},
}

MediaKind: TypeAlias = Literal["image", "audio", "video", "pdf"]

_TYPES: dict[str, tuple[MediaKind, str]] = {
    ".png": ("image", "image/png"),
    ".jpg": ("image", "image/jpeg"),
    ".jpeg": ("image", "image/jpeg"),
    ".gif": ("image", "image/gif"),
    ".webp": ("image", "image/webp"),
    ".avif": ("image", "image/avif"),
    ".mp3": ("audio", "audio/mpeg"),
    ".wav": ("audio", "audio/wav"),
    ".ogg": ("audio", "audio/ogg"),
    ".oga": ("audio", "audio/ogg"),
    ".opus": ("audio", "audio/ogg"),
    ".flac": ("audio", "audio/flac"),
    ".m4a": ("audio", "audio/mp4"),
    ".aac": ("audio", "audio/aac"),
    ".mp4": ("video", "video/mp4"),
    ".m4v": ("video", "video/mp4"),
    ".webm": ("video", "video/webm"),
    ".ogv": ("video", "video/ogg"),
    ".pdf": ("pdf", "application/pdf"),
}
_BEGINS: dict[str, re.Pattern[bytes]] = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF....WEBP", re.S),
    "image/avif": re.compile(rb"....ftyp", re.S),
    "audio/mpeg": re.compile(rb"ID3|\xff[\xe0-\xff]"),
    "audio/wav": re.compile(rb"RIFF....WAVE", re.S),
    "audio/ogg": re.compile(rb"OggS"),
    "audio/flac": re.compile(rb"fLaC"),
    "audio/mp4": re.compile(rb"....ftyp", re.S),
    "audio/aac": re.compile(rb"\xff[\xf0-\xff]|ADIF"),
    "video/mp4": re.compile(rb"....ftyp", re.S),
    "video/webm": re.compile(rb"\x1a\x45\xdf\xa3"),
    "video/ogg": re.compile(rb"OggS"),
    "application/pdf": re.compile(rb"%PDF-"),
}

MEDIA_ENDINGS = frozenset(_TYPES)
"""Endings of the media files that can be shown."""

_markdown = MarkdownIt("commonmark", {"html": False, "highlight": lambda code, name, _: code_html(code, name)}).enable(
    ["table", "strikethrough"]
)


@dataclass(frozen=True, slots=True)
class Rendered:
    """Sanitised HTML and its text direction."""

    html: str
    direction: Direction


@lru_cache(maxsize=20_000)
def render(text: str, kind: Kind, media_url: str, language: str | None = None) -> Rendered:
    """Turn an item's text into sanitised HTML.

    Images and sounds must be in the study's media folder, served at `media_url`; others are removed. `language` is the
    programming language of code.
    """
    if kind == "text":
        return Rendered(html.escape(text).replace("\n", "<br>"), direction_of(text))
    if kind == "code":
        return Rendered(f'<pre dir="ltr"><code>{code_html(text, language or "")}</code></pre>', "ltr")
    if kind == "conversation":
        return _conversation(text, media_url)
    source = _markdown.render(text) if kind == "markdown" else text
    safe = _sanitised(source, media_url)
    return Rendered(safe, direction_of(html.unescape(nh3.clean(safe, tags=set()))))


def _conversation(text: str, media_url: str) -> Rendered:
    """Show each turn under its role, as Markdown; pages name the usual roles in the annotator's language."""
    try:
        turns = parse_conversation(text)
    except DataError:
        # Items of a study were checked when it was opened; a draft may not be valid yet.
        return render(text, "text", media_url)
    parts = []
    for turn in turns:
        kind = turn.role if turn.role in ROLES else "other"
        role = f'<p class="turn-role" data-role="{kind}" dir="auto">{html.escape(turn.role)}</p>'
        body = render(turn.text, "markdown", media_url)
        parts.append(
            f'<div class="turn turn-{kind}">{role}<div class="turn-text" dir="{body.direction}">{body.html}</div></div>'
        )
    return Rendered("".join(parts), direction_of(turns[0].text))


def _sanitised(source: str, media_url: str) -> str:
    def keep(tag: str, attribute: str, value: str) -> str | None:
        if attribute != "src":
            return value
        try:
            parts = urlsplit(value)
        except ValueError:
            return None
        if parts.scheme or parts.netloc or value.startswith(("/", "\\")) or ".." in parts.path:
            return None
        return media_url + parts.path.removeprefix("./")

    return nh3.clean(
        source,
        tags=_TAGS,
        clean_content_tags=_DROPPED_WITH_CONTENT,
        attributes=_ATTRIBUTES,
        attribute_filter=keep,
        url_schemes={"http", "https", "mailto"},
        allowed_classes={"span": set(COLOUR_CLASSES)},
        link_rel="noopener noreferrer nofollow",
        set_tag_attribute_values=_SET_ATTRIBUTES,
    )


def render_page_text(text: str, media_url: str) -> str:
    """Render a Markdown text of the researcher: consent, instructions, feedback."""
    return block(render(text, "markdown", media_url))


def block(rendered: Rendered) -> str:
    """Wrap HTML in an element with its text direction."""
    return f'<div dir="{rendered.direction}">{rendered.html}</div>'


def direction_of(text: str) -> Direction:
    """Return the direction of a text, by its first strong character (rules P2 and P3 of Unicode's UAX 9)."""
    for sign in text:
        strength = unicodedata.bidirectional(sign)
        if strength == "L":
            return "ltr"
        if strength in {"R", "AL"}:
            return "rtl"
    return "auto"


@dataclass(frozen=True, slots=True)
class Media:
    """An image, sound, video or PDF."""

    kind: MediaKind
    url: str


class MediaFolder:
    """The folder of a study from which media files are served."""

    def __init__(self, folder: Path, url: str) -> None:
        self._folder = folder.resolve()
        self.url = url

    def find(self, name: str) -> tuple[Path, str] | None:
        """Return a file's path and type; None if there is none, or its content does not match its suffix."""
        media_type = _TYPES.get(Path(name).suffix.lower())
        if media_type is None or "\0" in name:
            return None
        path = (self._folder / name).resolve()
        if not path.is_relative_to(self._folder) or not path.is_file():
            return None
        kind = media_type[1]
        return (path, kind) if _begins_right(path, kind, path.stat().st_mtime_ns) else None

    def media(self, name: str) -> Media | None:
        """Return an item's media; None, with a line in the log, if it cannot be shown.

        A PDF may be named with the page to open: `report.pdf#page=3`.
        """
        file, page = media_file(name)
        if self.find(file) is None:
            log.warning(
                "media %r cannot be shown: it must be an image, audio, video or PDF file in %s (%s) whose content "
                "matches its suffix",
                name,
                self._folder,
                " ".join(sorted(_TYPES)),
            )
            return None
        return Media(_TYPES[Path(file).suffix.lower()][0], self.url + quote(file) + page)


def media_kind(name: str) -> MediaKind | None:
    """Return the kind of media that an item names, by its ending."""
    media_type = _TYPES.get(Path(media_file(name)[0]).suffix.lower())
    return None if media_type is None else media_type[0]


_PDF_PAGE = re.compile(r"(?i)(.+\.pdf)(#page=\d{1,5})")


def media_file(name: str) -> tuple[str, str]:
    """Return the file that an item's media names, and the page of a PDF as the end of its address."""
    match = _PDF_PAGE.fullmatch(name)
    return (match[1], match[2].lower()) if match else (name, "")


def media_policy(kind: str, origins: Sequence[str] = ()) -> dict[str, str]:
    """Return the headers with which a media file of a type is sent: it can do nothing, wherever it is opened.

    `origins` are those of the sites that may show the study's page in a frame.
    """
    if kind == "application/pdf":
        # The browser's viewer does not open a PDF in a sandbox. Pages of this server may show it within a frame.
        frames = " ".join(("'self'", *origins))
        policy = f"default-src 'none'; style-src 'unsafe-inline'; object-src 'self'; frame-ancestors {frames}"
        # X-Frame-Options cannot name origins; browsers prefer frame-ancestors.
        return {"Content-Security-Policy": policy, **({} if origins else {"X-Frame-Options": "SAMEORIGIN"})}
    return {"Content-Security-Policy": "default-src 'none'; sandbox"}


def begins_as_named(path: Path, name: str) -> bool:
    """Whether the first bytes of a file are those of the media type that a name's ending stands for."""
    media_type = _TYPES.get(Path(name).suffix.lower())
    return media_type is not None and _begins_right(path, media_type[1], path.stat().st_mtime_ns)


@lru_cache(maxsize=20_000)
def _begins_right(path: Path, kind: str, _changed: int) -> bool:
    with path.open("rb") as file:
        return _BEGINS[kind].match(file.read(16)) is not None


@dataclass(frozen=True, slots=True)
class Contents:
    """What a study's items contain: kinds of media, formatted texts, and texts for reading at length."""

    media: frozenset[MediaKind]
    is_formatted: bool
    """Whether texts have headings, turns or code."""
    for_reading: bool
    """Whether items are too long, or too much to be used, for a card that is one button."""


LONG_TEXT = 1200
"""Characters from which a text is for reading at length: about half a screen beside another one."""
_FORMATTED = {"markdown", "html", "code", "conversation"}


def contents_of(items: Iterable[Item], page: Page) -> Contents:
    """Return what the items of a study contain."""
    kinds: set[MediaKind] = set()
    longest = 0
    for item in items:
        if item.media and (kind := media_kind(item.media)):
            kinds.add(kind)
        if longest <= LONG_TEXT:
            longest = max(longest, sum(len(part.text) for part in item_parts(item, page)))
    formats = {page.content, *(field.format for field in page.fields)}
    return Contents(
        media=frozenset(kinds),
        is_formatted=bool(page.fields) or bool(formats & _FORMATTED),
        for_reading=longest > LONG_TEXT or "conversation" in formats or bool(kinds & {"audio", "video", "pdf"}),
    )
