"""How long it takes until something happens: `import steelyard` and `steelyard --help`."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

GOALS = {
    "import steelyard": ([sys.executable, "-c", "import steelyard"], 0.3),
    "steelyard --help": ([sys.executable, "-m", "steelyard", "--help"], 0.5),
    "python (nothing)": ([sys.executable, "-c", "pass"], None),
}


def seconds(command: list[str], times: int = 9) -> float:
    """Return the median time of a command."""
    durations = []
    for _ in range(times):
        began = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        durations.append(time.perf_counter() - began)
    return statistics.median(durations)


def main() -> None:
    """Print the times beside their goals."""
    for name, (command, goal) in GOALS.items():
        print(f"{name:20} {seconds(command):6.3f} s" + (f"   goal {goal} s" if goal else ""))


if __name__ == "__main__":
    main()
