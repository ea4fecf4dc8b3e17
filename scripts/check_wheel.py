"""Build the wheel and the sdist, and try the wheel in a clean environment for each Python that is installed.

    python -m scripts.check_wheel                 # every Python from 3.11 to 3.14 on the PATH
    python -m scripts.check_wheel python3.13      # this one, by name or path

The sdist is built first and the wheel from it, so that neither depends on files that only the repository has.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INTERPRETERS = ("python3.11", "python3.12", "python3.13", "python3.14")
RATINGS = "annotator,item,value\n" + "".join(
    f"{name},{item},{10 * place + shift}\n"
    for shift, name in enumerate(("ann", "bob", "cleo"))
    for place, item in enumerate(("a", "b", "c", "d", "e"))
)
_BUILD = "import hatchling.build as b, sys; b.build_{kind}(sys.argv[1])"


def build(folder: Path) -> Path:
    """Build the sdist, and from it the wheel; return the wheel's path."""
    subprocess.run([sys.executable, "-c", _BUILD.format(kind="sdist"), str(folder)], cwd=ROOT, check=True)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(folder / "source", filter="data")
    (source,) = (folder / "source").iterdir()
    subprocess.run([sys.executable, "-c", _BUILD.format(kind="wheel"), str(folder)], cwd=source, check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def try_commands(steelyard: str, folder: Path) -> None:
    """Go from nothing to scores, a report and a served study, in an empty folder."""

    def run(*arguments: str, text: str = "") -> str:
        command = [steelyard, *arguments]
        done = subprocess.run(command, cwd=folder, input=text, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{arguments}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    assert run("--version").startswith("steelyard ")
    run("new", "words")
    run("check", "words")
    run("judge", "words", "--annotator", "ann", "--max-tasks", "3", text="10\n50\n90\n")
    assert "3 judgments" in run("status", "words")
    (folder / "ratings.csv").write_text(RATINGS, encoding="utf-8")
    scores = json.loads(run("fit", "ratings.csv", "--scale", "0", "100", "--format", "json"))
    assert [row["item"] for row in scores] == ["e", "d", "c", "b", "a"]
    run("report", "words", "-o", "report.html")
    assert (folder / "report.html").stat().st_size > 10_000
    assert "# " in run("docs", "files")
    assert json.loads(run("schema"))["title"] == "study.toml"
    serve(steelyard, folder)


def serve(steelyard: str, folder: Path) -> None:
    """Serve the study, and fetch its page and its health."""
    command = [steelyard, "serve", "words", "--port", "0"]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = next(m[1] for line in process.stdout if (m := re.search(r"(http://\S+)/s/words/", line)))
        for path in ("/s/words/", "/api/v1/health"):
            with urllib.request.urlopen(address + path, timeout=30) as response:
                assert response.status == 200, path
    finally:
        process.terminate()
        process.wait(timeout=30)


def main() -> None:
    """Try the wheel with each interpreter; exit 1 if none is installed."""
    names = sys.argv[1:] or [name for name in INTERPRETERS if _works(name)]
    missing = [name for name in INTERPRETERS if name not in names]
    with tempfile.TemporaryDirectory(prefix="steelyard-wheel-") as scratch:
        wheel = build(Path(scratch))
        print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB")
        for name in names:
            started = time.perf_counter()
            place = Path(scratch) / Path(name).name
            subprocess.run([name, "-m", "venv", str(place / "venv")], check=True)
            binaries = place / "venv" / ("Scripts" if os.name == "nt" else "bin")
            install = [str(binaries / "python"), "-m", "pip", "install", "--quiet", str(wheel)]
            subprocess.run(install, check=True)
            (place / "work").mkdir()
            try_commands(str(binaries / "steelyard"), place / "work")
            print(f"{name}: installed and tried in {time.perf_counter() - started:.0f} s")
    if missing and not sys.argv[1:]:
        print(f"not installed, so not tried: {', '.join(missing)}")
    sys.exit(0 if names else 1)


def _works(name: str) -> bool:
    """Whether an interpreter can be run; pyenv has commands for versions that are not selected."""
    if shutil.which(name) is None:
        return False
    return subprocess.run([name, "-c", ""], capture_output=True, check=False).returncode == 0


if __name__ == "__main__":
    main()
