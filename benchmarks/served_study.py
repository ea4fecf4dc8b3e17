"""A study with imported ratings and a server for it, which several benchmarks of the pages use."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np

from steelyard.study import Study
from steelyard.study.study import ImportedAnswer

CHROMIUM = "/usr/bin/chromium"
TOKEN = "a-token-of-the-benchmark"
NAME = "bench"
_PER_IMPORT = 10_000


def make_study(folder: Path, *, items: int, judgments: int, annotators: int, model: str | None = None) -> Path:
    """Write a study of ratings, and import ratings by simulated annotators: `judgments / items` of each item."""
    folder.mkdir()
    rows = "".join(f"i{n},This is the text of item number {n}\n" for n in range(items))
    (folder / "items.csv").write_text("id,text\n" + rows, encoding="utf-8")
    lines = [f'name = "{NAME}"', 'title = "Bench"', 'question = "How good?"', 'items = "items.csv"', "[protocol]"]
    lines += ['name = "direct"', "[design]", 'name = "per_item"', f"judgments = {judgments // items + 2}"]
    lines += ["[model]", f'name = "{model}"'] if model else []
    (folder / "study.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with Study.open(folder) as study:
        answers: list[ImportedAnswer] = []
        for answer in _answers(items, judgments // items, annotators):
            answers.append(answer)
            if len(answers) == _PER_IMPORT:
                study.import_answers(0, answers)
                answers = []
        study.import_answers(0, answers)
    return folder


def _answers(items: int, rounds: int, annotators: int) -> Iterator[ImportedAnswer]:
    rng = np.random.default_rng(0)
    truth, bias = rng.random(items) * 100, rng.normal(0, 8, annotators)
    for number in range(rounds):
        for item in rng.permutation(items).tolist():
            # In each round, another annotator judges an item.
            annotator = (item + number) % annotators
            value = float(np.clip(truth[item] + bias[annotator] + rng.normal(0, 12), 0, 100).round())
            name, seconds = f"i{item}", 4.0 + item % 7
            yield ImportedAnswer(f"{number}-{item}", f"annotator-{annotator}", (name,), {name: value}, seconds)


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve a study with `steelyard serve` as a process of its own; give its address as soon as it answers."""
    environment = {**os.environ, "STEELYARD_TOKEN": TOKEN, "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "steelyard", "serve", str(folder), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stdout is not None
        url = next(match[1] for line in process.stdout if (match := re.search(r"(http://[^/\s]+)", line)))
        while True:
            try:
                httpx.get(f"{url}/static/icon.svg", timeout=60)
                break
            except httpx.TransportError:
                time.sleep(0.02)
        yield url
    finally:
        process.terminate()
        process.wait()
