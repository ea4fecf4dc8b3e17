"""Draw the README's picture: what `steelyard demo` prints, as an SVG made of the real output."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "images" / "demo.svg"

LIGHT = TerminalTheme(
    (255, 255, 255),
    (38, 50, 56),
    [
        (38, 50, 56),
        (176, 58, 46),
        (30, 120, 80),
        (150, 110, 0),
        (44, 94, 138),
        (120, 70, 140),
        (20, 120, 130),
        (90, 100, 105),
    ],
    [
        (90, 100, 105),
        (200, 70, 60),
        (40, 140, 95),
        (170, 125, 0),
        (60, 115, 165),
        (140, 85, 160),
        (30, 140, 150),
        (0, 0, 0),
    ],
)

# Rich's own template points at fonts on the web; the pages of this project work offline.
TEMPLATE = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace;
  font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g></g></svg>
"""


def main() -> None:
    """Run the demo and keep its output as a picture."""
    done = subprocess.run(
        [sys.executable, "-m", "steelyard", "demo", "--terminal"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "100", "FORCE_COLOR": "1"},
    )
    console = Console(record=True, width=88, file=io.StringIO(), force_terminal=True)
    console.print(Text("$ steelyard demo --terminal", style="bold"))
    console.print(Text.from_ansi(done.stdout.rstrip()))
    note = done.stderr.strip().splitlines()[-2]
    console.print(Text.from_ansi(note))
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(
        console.export_svg(title="steelyard demo --terminal", theme=LIGHT, code_format=TEMPLATE, unique_id="steelyard"),
        encoding="utf-8",
    )
    print(f"{TARGET.relative_to(ROOT)} written")


if __name__ == "__main__":
    main()
