"""Run every benchmark: python -m benchmarks [NAME…]."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    """Run the benchmarks named, or all of them, one after the other."""
    names = sys.argv[1:]
    for path in sorted(HERE.glob("bench_*.py")):
        name = path.stem.removeprefix("bench_")
        if not names or name in names:
            print(f"\n== {name}")
            sys.argv = [str(path)]
            runpy.run_path(str(path), run_name="__main__")


if __name__ == "__main__":
    main()
