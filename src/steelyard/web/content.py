"""Item content for display: sanitised text, Markdown and HTML, and media from one folder."""

from __future__ import annotations

import html
import logging
import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import quote, urlsplit

import nh3
from markdown_it import MarkdownIt

log = logging.getLogger("steelyard.web")

Kind: TypeAlias = Literal["text", "markdown", "html"]
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
_WITH_CONTROLS = {"audio": {"controls": ""}, "video": {"controls": ""}, "a": {"target": "_blank"}}

_TYPES: dict[str, tuple[Literal["image", "audio", "video"], str]] = {
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
}

MEDIA_ENDINGS = frozenset(_TYPES)
"""Endings of the media files that can be shown."""

_markdown = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


@dataclass(frozen=True, slots=True)
class Rendered:
    """Sanitised HTML and its text direction."""

    html: str
    direction: Direction


@lru_cache(maxsize=20_000)
def render(text: str, kind: Kind, media_url: str) -> Rendered:
    """Turn an item's text into sanitised HTML.

    Images and sounds must be in the study's media folder, served at `media_url`; others are removed.
    """
    if kind == "text":
        return Rendered(html.escape(text).replace("\n", "<br>"), direction_of(text))
    source = _markdown.render(text) if kind == "markdown" else text
    safe = _sanitised(source, media_url)
    return Rendered(safe, direction_of(html.unescape(nh3.clean(safe, tags=set()))))


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
        link_rel="noopener noreferrer nofollow",
        set_tag_attribute_values=_WITH_CONTROLS,
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
    """An image, sound or video."""

    kind: Literal["image", "audio", "video"]
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
        """Return an item's media; None, with a line in the log, if it cannot be shown."""
        if self.find(name) is None:
            log.warning(
                "media %r cannot be shown: it must be an image, audio or video file in %s (%s) whose content "
                "matches its suffix",
                name,
                self._folder,
                " ".join(sorted(_TYPES)),
            )
            return None
        return Media(_TYPES[Path(name).suffix.lower()][0], self.url + quote(name))


def begins_as_named(path: Path, name: str) -> bool:
    """Whether the first bytes of a file are those of the media type that a name's ending stands for."""
    media_type = _TYPES.get(Path(name).suffix.lower())
    return media_type is not None and _begins_right(path, media_type[1], path.stat().st_mtime_ns)


@lru_cache(maxsize=20_000)
def _begins_right(path: Path, kind: str, _changed: int) -> bool:
    with path.open("rb") as file:
        return _BEGINS[kind].match(file.read(16)) is not None
