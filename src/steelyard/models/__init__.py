"""From observations to scores: one frozen dataclass of settings per model, `fit(observations) -> Fit`."""

from steelyard.models.counting import Counting
from steelyard.models.easl import EASL
from steelyard.models.fit import Fit, Model
from steelyard.models.majority import Majority
from steelyard.models.mean import Mean

__all__ = ["EASL", "Counting", "Fit", "Majority", "Mean", "Model"]
