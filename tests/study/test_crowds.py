"""Two hundred annotators at once: nothing is over-assigned, lost or shown twice.

The full form, with more tasks for everybody, is benchmarks/crowds.py (make crowds).
"""

from __future__ import annotations

import pytest

from steelyard import Study
from tests.study.crowds import MODES, SETUPS, check, write_items

pytestmark = pytest.mark.filterwarnings("ignore::steelyard.errors.SteelyardWarning")

# Each design once on each engine, once in threads and once in processes, rather than all combinations.
CASES = [(design, "threads" if number % 2 else "processes") for number, design in enumerate(SETUPS)]


@pytest.mark.parametrize(("design", "mode"), CASES)
def test_two_hundred_annotators_at_once(make_study, database_url, design, mode):
    protocol, settings = SETUPS[design]
    if database_url.startswith("sqlite"):
        mode = next(other for other in MODES if other != mode)
    folder = make_study(protocol, settings.format(each=3), name="crowd")
    write_items(folder, design, 150)
    names = [f"ann-{number}" for number in range(200)]
    told = MODES[mode](folder, database_url, names, most=2)
    with Study.open(folder, database=database_url) as study:
        check(study, told)
        assert len(told) > 50
