"""The typeface of pages, reports and charts: IBM Plex Sans, which is shipped with the package.

Charts are laid out with it on every machine, so texts fit. Files that travel alone, such as a report, carry it inside.
"""

from __future__ import annotations

import base64
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "fonts"
FAMILY = "'IBM Plex Sans', Arial, 'Liberation Sans', Helvetica, sans-serif"

_WEIGHTS = {"Regular": 400, "SemiBold": 600}
_EMBEDDED = "Latin1"
"""The part with western European letters, digits and punctuation; other characters come from the reader's fonts."""


@cache
def renderer() -> Any:
    """Return the module vl_convert, which knows the typeface from then on."""
    import vl_convert

    vl_convert.register_font_directory(str(FOLDER))
    return vl_convert


@cache
def embedded_faces() -> str:
    """Return CSS rules that hold the typeface itself, for a file that is read without a server."""
    return "\n".join(_embedded_face(name, weight) for name, weight in _WEIGHTS.items())


def embed_in_svg(svg: str) -> str:
    """Add the typeface to an SVG that is shown as an image or opened by itself."""
    start = svg.index(">", svg.index("<svg")) + 1
    return f"{svg[:start]}<style>{embedded_faces()}</style>{svg[start:]}"


def _embedded_face(name: str, weight: int) -> str:
    content = base64.b64encode((FOLDER / f"IBMPlexSans-{name}-{_EMBEDDED}.woff2").read_bytes()).decode("ascii")
    source = f"url(data:font/woff2;base64,{content}) format('woff2')"
    return f"@font-face{{font-family:'IBM Plex Sans';font-weight:{weight};src:{source}}}"
