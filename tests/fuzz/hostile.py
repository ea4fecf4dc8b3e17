"""Hostile contents: known ways to smuggle a script in, in many contexts and encodings, and mutated.

Whatever runs calls `hit`, which the pages of the tests listen to.
"""

from __future__ import annotations

import html
import random
from urllib.parse import quote

JS = "hit(1)"
LINK = "javascript:hit(1)"
# Each of these runs in Chromium when a page holds it unsanitised (a test sees to it), by itself or when it is used.
RUNNING = [
    f"<script>{JS}</script>",
    f"<script >{JS}</script >",
    f"<script/x>{JS}</script>",
    f"<script type=module>top.{JS}</script>",
    f'<script src="data:text/javascript,{JS}"></script>',
    f"<img src=x onerror={JS}>",
    f"<img/src/onerror={JS}>",
    f'<img src=x onerror\n=\n"{JS}">',
    f"<image src=x onerror={JS}>",
    f"<svg onload={JS}>",
    f"<svg/onload={JS}>",
    f"<svg><script>{JS}</script></svg>",
    f"<svg><script href=data:,{JS} /></svg>",
    f"<svg><animate onbegin={JS} attributeName=x dur=1s>",
    f"<svg><set onbegin={JS} attributename=x></svg>",
    f'<svg><a xlink:href="{LINK}"><text x=9 y=9>x</text></a></svg>',
    f"<svg><style><img src=x onerror={JS}></style></svg>",
    f'<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror={JS}&gt;">',
    f"<form><math><mtext></form><form><mglyph><style></math><img src onerror={JS}>",
    f"<body onload={JS}>",
    f"<body onpageshow={JS}>",
    f"<details open ontoggle={JS}>x</details>",
    f"<video src=x onerror={JS}></video>",
    f"<video><source onerror={JS}></video>",
    f"<audio src=x onerror={JS}></audio>",
    f"<input autofocus onfocus={JS}>",
    f"<select autofocus onfocus={JS}></select>",
    f"<textarea autofocus onfocus={JS}></textarea>",
    f"<div onclick={JS}>x</div>",
    f"<p onmouseover={JS}>x</p>",
    f"<b tabindex=1 onfocus={JS} autofocus>x</b>",
    f'<a href="{LINK}">x</a>',
    f"<a href=' \n{LINK}'>x</a>",
    f'<a href="java\tscript:{JS}">x</a>',
    f'<a href="\x01{LINK}">x</a>',
    f'<a href="{"".join(f"&#{ord(c)};" for c in LINK)}">x</a>',
    f'<a href="{"".join(f"&#x{ord(c):x};" for c in LINK)}">x</a>',
    f'<a href="jav&Tab;ascript&colon;{JS}">x</a>',
    f'<a href="JaVaScRiPt:{JS}">x</a>',
    f"<form action='{LINK}'><button>x</button></form>",
    f"<button form=f formaction='{LINK}'>x</button><form id=f></form>",
    f'<iframe src="{LINK.replace("hit", "parent.hit")}"></iframe>',
    f'<iframe srcdoc="<script>parent.{JS}</script>"></iframe>',
    f"<object data='data:text/html,<script>parent.{JS}</script>' onload={JS}></object>",
    f"<embed src=x onload={JS}>",
    f"<style onload={JS}>x</style>",
    f"<link rel=stylesheet href=x onerror={JS}>",
    f"<marquee onstart={JS}>x</marquee>",
    f'<noscript><p title="</noscript><img src=x onerror={JS}>"></noscript>',
    f"<template><script>{JS}</script></template><img src=x onerror={JS}>",
    f"<!--><img src=x onerror={JS}>-->",
    f"<!--x--!><img src=x onerror={JS}>",
    f"<![CDATA[><img src=x onerror={JS}>]]>",
    f"<?xml ><img src=x onerror={JS}>",
    f"</p><img src=x onerror={JS}>",
    f"</title><script>{JS}</script>",
    f"</textarea><script>{JS}</script>",
    f'"><script>{JS}</script>',
    f"'><img src=x onerror={JS}>",
    f"<x contenteditable onfocus={JS} tabindex=1 autofocus>x</x>",
    f"<img src=x onerror=\"eval(atob('{'aGl0KDEp'}'))\">",
    '<img src=x onerror="&#104;it(1)">',
    "<IMG SRC=x OnErRoR=\\u0068it(1)>",
    f"<table background='{LINK}'><tr><td onclick={JS}>x</table>",
]
# These do nothing by themselves in a browser of today, but did once, or need Markdown, or another page.
OTHERS = [
    f"[x]({LINK})",
    f"[x](<{LINK}>)",
    f"[x]: {LINK}\n\n[x]",
    f"![x]({LINK})",
    f'![x](x"onerror="{JS})',
    f"![x]('onerror='{JS})",
    f"<{LINK}>",
    "[x](data:text/html;base64,PHNjcmlwdD5oaXQoMSk8L3NjcmlwdD4=)",
    f"[x](vbscript:{JS})",
    f"[x](\x00{LINK})",
    f"[<img src=x onerror={JS}>](http://a.example)",
    f'[x](http://a.example "\'><img src=x onerror={JS}>")',
    f"`<img src=x onerror={JS}>`",
    f'```{JS}"><script>{JS}</script>\nx\n```',
    f"| <img src=x onerror={JS}> | b |\n|---|---|\n| [x]({LINK}) | 2 |",
    f"- <svg onload={JS}>\n  > [x]({LINK})",
    f'<a href="data:text/html,<script>{JS}</script>">x</a>',
    "<meta http-equiv=refresh content='0;url=http://evil.example/'>",
    "<base href=//evil.example/>",
    "<link rel=import href=//evil.example/x>",
    "<img src=//evil.example/pixel.png>",
    "<img srcset='//evil.example/pixel.png 1x'>",
    "<video poster=//evil.example/pixel.png></video>",
    "<p style='background:url(//evil.example/x)'>x</p>",
    "<style>@import url(//evil.example/x);</style>",
    "<div id=task class=hidden name=csrf>x</div>",
    "<form id=x><input name=attributes></form>",
    f'<p style="x:expression({JS})">x</p>',
    "{{ 7*7 }} {% raw %} ${7*7} #{7*7}",
    "</script><script>hit(1)//",
    "\u2028hit(1)\u2029",
    "+ADw-script+AD4-hit(1)+ADw-/script+AD4-",
    "\ufffe<script>hit(1)</script>",
]
CLASSES = [*RUNNING, *OTHERS]
WRAPS = [
    "{}", "{}", "{}", "<b>{}</b>", "<p title=\"{}\">x</p>", "<p title='{}'>x</p>", "<a href=\"{}\">x</a>",
    "<!-- {} -->",
    "<svg>{}</svg>", "<math>{}</math>", "<table><tr><td>{}</td></tr></table>", "<select><option>{}</option></select>",
    "<textarea>{}</textarea>", "<title>{}</title>", "<style>{}</style>", "<xmp>{}</xmp>", "<noscript>{}</noscript>",
    "<template>{}</template>", "<svg><foreignObject>{}</foreignObject></svg>", "<svg><desc>{}</desc></svg>",
    "<math><annotation-xml encoding=text/html>{}</annotation-xml></math>", "<img alt=\"{}\" src=x>", "<details>{}",
    "**{}**", "[{}](http://a.example)", "[x]({})", "![{}](x.png)", "`{}`", "> {}", "- {}", "| {} |\n|---|\n| {} |",
    "# {}",
    "<ruby>{}<rt>{}</ruby>", "x{}y", "\n\n{}\n\n", "مرحبا {}",
]  # fmt: skip
_SIGNS = [
    *("<", ">", '"', "'", "=", "/", "&", ";", "\0", "\t", "\n", " ", "`", "--", "<!--", "-->", "]]>", "\\", "&lt;"),
    *("%3C", "\ufeff", "\u200b"),
]


def contents(count: int, seed: int) -> list[str]:
    """Make so many hostile contents: every class as it is first, then in other contexts, encodings and mutations."""
    rng = random.Random(seed)
    texts = list(CLASSES[:count])
    while len(texts) < count:
        text = rng.choice(CLASSES)
        for _ in range(rng.randrange(3)):
            text = rng.choice(_CHANGES)(text, rng)
        text = rng.choice(WRAPS).replace("{}", text)
        if rng.random() < 0.3:
            text = _spliced(text, rng)
        texts.append(text)
    return texts


def _any_case(text: str, rng: random.Random) -> str:
    return "".join(rng.choice((sign.upper(), sign.lower())) if rng.random() < 0.5 else sign for sign in text).replace(
        "HIT", "hit"
    )


def _some_entities(text: str, rng: random.Random) -> str:
    forms = ("&#{};", "&#x{:x};", "&#{}", "&#0000{};")
    return "".join(rng.choice(forms).format(ord(sign)) if rng.random() < 0.15 else sign for sign in text)


def _spliced(text: str, rng: random.Random) -> str:
    for _ in range(rng.randrange(1, 4)):
        place = rng.randrange(len(text) + 1)
        text = text[:place] + rng.choice(_SIGNS) + text[place + rng.randrange(2) :]
    return text


_CHANGES = [
    _any_case,
    _some_entities,
    _spliced,
    lambda text, rng: html.escape(text),
    lambda text, rng: quote(text),
    lambda text, rng: text * 2,
    lambda text, rng: text.replace("<", "<<").replace("script", "scr<script>ipt"),
    lambda text, rng: text.replace(" ", rng.choice(["/", "\f", "\n", "\t", "\r"])),
    lambda text, rng: text.replace("=", rng.choice([" = ", "\n=\n", "=\x0b", "=`"])),
    lambda text, rng: text + rng.choice(CLASSES),
    lambda text, rng: text[: rng.randrange(1, len(text) + 1)] + rng.choice(CLASSES),
]
