"""Look for security failures: in our own code (bandit), and in what we depend on (pip-audit).

`make check` runs it. What could not be looked at is said loudly; with STEELYARD_REQUIRE_ALL=1 it is a failure.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CANARY = "jinja2==2.10"
"""A version with known holes: a service that finds none in it knows nothing, and its silence says nothing."""


def main() -> int:
    """Run every check; return how many found something."""
    failures = _bandit() + _requirements()
    audited = _audit()
    if audited is None:
        failures += _loudly("DEPENDENCIES WERE NOT AUDITED: no vulnerability service could be reached from here.")
    else:
        failures += audited
    where = "in what could be looked at" if audited is None else "anywhere"
    print(f"make check: nothing found {where}" if not failures else f"make check: {failures} checks found something")
    return failures


def _bandit() -> int:
    print("bandit: our own code")
    command = [sys.executable, "-m", "bandit", "--quiet", "--recursive", "src", "-c", "pyproject.toml"]
    return int(subprocess.run(command, cwd=ROOT, check=False).returncode != 0)


def _requirements() -> int:
    print("pip check: do the installed packages fit together?")
    return int(subprocess.run([sys.executable, "-m", "pip", "check"], cwd=ROOT, check=False).returncode != 0)


def _audit() -> int | None:
    """Audit what is installed; return 1 if something is found, None if nothing could be looked up."""
    print("pip-audit: what we depend on")
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as canary:
        canary.write(CANARY + "\n")
        canary.flush()
        vulnerabilities = _pip_audit("--requirement", canary.name, "--no-deps", "--disable-pip")
    if not any(package.get("vulns") for package in vulnerabilities):
        return None
    packages = _pip_audit()
    holes = [(package, hole) for package in packages for hole in package.get("vulns", ())]
    for package, hole in holes:
        print(f"  {package['name']} {package['version']}: {hole['id']}, mended in {', '.join(hole['fix_versions'])}")
    skipped = [package["name"] for package in packages if "skip_reason" in package and package["name"] != "steelyard"]
    if skipped:
        return int(bool(holes)) + _loudly(f"NOT AUDITED: {', '.join(skipped)}")
    print(f"  {len(packages)} packages looked up")
    return int(bool(holes))


def _pip_audit(*options: str) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "pip_audit", "--format", "json", "--progress-spinner", "off", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    try:
        packages: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        return []
    return packages


def _loudly(words: str) -> int:
    """Say it so that nobody misses it; where everything must be there (CI), count it as found."""
    print(f"\n{'!' * 100}\n!! {words}\n{'!' * 100}\n", file=sys.stderr)
    return int(os.environ.get("STEELYARD_REQUIRE_ALL") == "1")


if __name__ == "__main__":
    sys.exit(main())
