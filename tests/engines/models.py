"""Every model that engines support, with each of its interval methods."""

from __future__ import annotations

from steelyard.models.choices.counting import Counting
from steelyard.models.comparisons.bradley_terry import BradleyTerry
from steelyard.models.comparisons.thurstone import Thurstone
from steelyard.models.comparisons.win_rate import WinRate
from steelyard.models.fit import Model
from steelyard.models.labels.dawid_skene import DawidSkene
from steelyard.models.labels.gold_calibrated import GoldCalibrated
from steelyard.models.labels.majority import Majority
from steelyard.models.ratings.easl import EASL
from steelyard.models.ratings.mean import Mean

CASES: list[tuple[str, Model]] = [
    ("ratings", Mean()),
    ("ratings", EASL()),
    ("ratings", EASL(interval="bootstrap", draws=40)),
    ("ratings", EASL(interval="model", alpha=2.0, estimate="mean")),
    ("comparisons", Counting()),
    ("comparisons", Counting(interval="bootstrap", draws=40)),
    ("comparisons", WinRate(draws=40)),
    ("comparisons", BradleyTerry()),
    ("comparisons", BradleyTerry(ties="rao_kupper")),
    ("comparisons", BradleyTerry(ties="half", interval="sandwich")),
    ("comparisons", BradleyTerry(ties="drop", interval="sandwich")),
    ("comparisons", BradleyTerry(interval="sandwich")),
    ("comparisons", BradleyTerry(interval="bootstrap", draws=25)),
    ("comparisons", BradleyTerry(ties="drop", interval="bootstrap", draws=25)),
    ("comparisons", Thurstone()),
    ("comparisons", Thurstone(interval="sandwich")),
    ("choices", Counting()),
    ("choices", Counting(interval="bootstrap", draws=40)),
    ("choices", WinRate(draws=40)),
    ("choices", BradleyTerry()),
    ("choices", Thurstone(interval="bootstrap", draws=25)),
    ("labels", Majority()),
    ("labels", GoldCalibrated()),
    ("labels", GoldCalibrated(prior="gold", folds=3)),
    ("labels", DawidSkene(interval="model")),
    ("labels", DawidSkene(interval="bootstrap", draws=20)),
]


def called(case: object) -> str:
    """Name a case for the test's report."""
    if not isinstance(case, Model):
        return str(case)
    plain = type(case)()
    changed = [f"{key}={value}" for key, value in case.settings().items() if value != plain.settings()[key]]
    return f"{case.name}({', '.join(changed)})"
