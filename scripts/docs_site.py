"""Hooks of the documentation site: pages and files that come from elsewhere in the repository.

MkDocs reads the folder docs. These hooks add the contributing guide, the changelog, the reference of the REST API, the
notebooks (as pages) and the typeface, and make links that lead out of docs point to where their
targets are on the site.
"""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts import rest_reference  # noqa: E402
from scripts.notebooks import markdown_of  # noqa: E402

# Files outside docs, by the address they have on the site.
MOVED = {
    "CONTRIBUTING.md": "about/contributing.md",
    "CHANGELOG.md": "about/changelog.md",
    "SECURITY.md": "about/security-policy.md",
    "CODE_OF_CONDUCT.md": "about/code-of-conduct.md",
}
FONTS = ROOT / "src" / "steelyard" / "report" / "fonts"
LINK = re.compile(r"(\]\(|<img src=\"|srcset=\")([^)#\"\s]+)([^)\"]*)")


def on_files(files: Files, config: Any) -> Files:
    """Add pages and files from outside docs."""
    for name, address in MOVED.items():
        text = relocate_links((ROOT / name).read_text(encoding="utf-8"), name, address)
        files.append(File.generated(config, address, content=text))
    files.append(File.generated(config, "reference/rest.md", content=rest_reference.page()))
    for path in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=markdown_of(path)))
    for path in sorted(FONTS.glob("*.ttf")):
        files.append(File.generated(config, f"assets/fonts/{path.name}", abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Point links that leave docs to the place of their target on the site."""
    source = f"docs/{page.file.src_uri}"
    if not (ROOT / source).exists():
        return markdown
    return relocate_links(markdown, source, page.file.src_uri)


def relocate_links(text: str, source: str, address: str) -> str:
    """Rewrite relative links of a file of the repository for the page at an address of the site."""

    def replace(match: re.Match[str]) -> str:
        before, target, after = match.groups()
        if "://" in target or target.startswith("mailto:"):
            return match[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        return f"{before}{posixpath.relpath(_site_address(path), posixpath.dirname(address) or '.')}{after}"

    return LINK.sub(replace, text)


def _site_address(path: str) -> str:
    """Return the address of a file of the repository on the site."""
    if path in MOVED:
        return MOVED[path]
    if path == "README.md":
        return "index.md"
    if path.endswith(".ipynb"):
        path = path.removesuffix(".ipynb") + ".md"
    return path.removeprefix("docs/")
