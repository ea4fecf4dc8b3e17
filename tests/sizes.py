"""Short and full forms of slow tests: `make test` runs the short form, `make full` the full one.

Tests that have no short form carry the marker `full`.
"""

from __future__ import annotations

import os

FULL = os.environ.get("STEELYARD_FULL") == "1"
