"""A report as PDF, printed by a Chromium installed on the machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from steelyard.errors import ConfigError

_NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
    "msedge",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
_SECONDS = 120


def find_chromium() -> str | None:
    """Return the path of Chromium or a browser based on it; None if there is none."""
    return next((found for name in _NAMES if (found := shutil.which(name))), None)


def print_pdf(page: Path, target: Path) -> None:
    """Print an HTML file as PDF."""
    browser = find_chromium()
    if browser is None:
        raise ConfigError(
            "writing a PDF needs Chromium, which is not installed.",
            "Install Chromium or Chrome, or open the HTML file in a browser and print it from there.",
        )
    with tempfile.TemporaryDirectory(prefix="steelyard-pdf-") as scratch:
        pdf = Path(scratch) / "report.pdf"
        command = [browser, "--headless", "--disable-gpu", "--no-first-run", f"--user-data-dir={scratch}/profile"]
        # Chromium's sandbox refuses to start as root, as in containers; the page is our own and has no scripts.
        command += ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        command += ["--no-pdf-header-footer", f"--print-to-pdf={pdf}", page.resolve().as_uri()]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ConfigError(f"{browser} did not print the report: {error}.", _REMEDY) from None
        if not pdf.exists():
            last = (done.stderr.strip().splitlines() or ["no error message"])[-1]
            raise ConfigError(f"{browser} did not print the report: {last}", _REMEDY)
        try:
            shutil.move(pdf, target)
        except OSError as error:
            raise ConfigError(f"{target} cannot be written: {error.strerror}.", "Choose another place.") from None


_REMEDY = "Open the HTML file in a browser and print it from there."
