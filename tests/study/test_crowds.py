"""Two hundred annotators at once: nothing is over-assigned, lost or shown twice.

The full form, with more tasks for everybody, is benchmarks/crowds.py (make crowds).
"""

from __future__ import annotations

import pytest

from steelyard import Study
from tests.sizes import FULL
from tests.study.crowds import MODES, SETUPS, check, write_items

pytestmark = pytest.mark.filterwarnings("ignore::steelyard.errors.SteelyardWarning")

# Designs alternate between threads and processes, and the engines get opposite modes. The short form runs every
# other design, on one engine, alternately.
CASES = [
    pytest.param(design, mode, engine, marks=marks, id=f"{engine}-{design}-{mode}")
    for number, design in enumerate(SETUPS)
    for engine, mode, marks in (
        ("sqlite", "processes" if number % 2 else "threads", ()),
        ("postgresql", "threads" if number % 2 else "processes", pytest.mark.postgres),
    )
    if FULL or (number % 2 == 0 and (engine == "sqlite") == (number % 4 < 2))
]


@pytest.mark.slow
@pytest.mark.parametrize(("design", "mode", "database_url"), CASES, indirect=["database_url"])
def test_two_hundred_annotators_at_once(make_study, database_url, design, mode):
    protocol, settings = SETUPS[design]
    folder = make_study(protocol, settings.format(each=3), name="crowd")
    write_items(folder, design, 150)
    names = [f"ann-{number}" for number in range(200)]
    answers = MODES[mode](folder, database_url, names, most=2)
    with Study.open(folder, database=database_url) as study:
        check(study, answers)
        assert len(answers) > 50
