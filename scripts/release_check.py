"""Check that the repository is ready for a release: one version, a section in the changelog, real addresses."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def problems(tag: str | None = None, root: Path = ROOT) -> list[str]:
    """List the problems that prevent a release; a tag adds the checks of the release itself."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = project["version"]
    citation = (root / "CITATION.cff").read_text(encoding="utf-8")
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    result = []
    if not re.search(rf"^version: {re.escape(version)}$", citation, re.M):
        result.append(f"CITATION.cff does not have version {version}.")
    if not re.search(rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$", changelog, re.M):
        result.append(f"CHANGELOG.md has no section '## {version} (YYYY-MM-DD)'.")
    if tag is not None and re.search(r"^## Unreleased\n+(?!## )\S", changelog, re.M):
        result.append(f"CHANGELOG.md has unreleased entries; move them to the section of {version}.")
    if tag is not None and tag != f"v{version}":
        result.append(f"the tag is {tag}, but the version is {version}.")
    result += [
        f"[project.urls] {name} is still a placeholder: {url}."
        for name, url in project["urls"].items()
        if re.search(r"//([^/]+\.)?example([./]|$)", url)
    ]
    return result


def main() -> None:
    """Print the problems; exit 1 if there are any."""
    result = problems(sys.argv[1] if len(sys.argv) > 1 else None)
    print("\n".join(result) or "ready for release")
    sys.exit(1 if result else 0)


if __name__ == "__main__":
    main()
