"""Snow, O'Connor, Jurafsky and Ng (2008): Cheap and Fast, But is it Good?"""

from steelyard.experiments.base import Experiment
from steelyard.experiments.cheap_fast.affect_by_annotators import AffectByAnnotators
from steelyard.experiments.cheap_fast.affect_classifier import AffectClassifier
from steelyard.experiments.cheap_fast.costs import Costs
from steelyard.experiments.cheap_fast.disputed_gold import DisputedGold
from steelyard.experiments.cheap_fast.gold_calibration import GoldCalibration
from steelyard.experiments.cheap_fast.majority_by_annotators import MajorityByAnnotators
from steelyard.experiments.cheap_fast.numeric_calibration import NumericCalibration
from steelyard.experiments.cheap_fast.word_similarity import WordSimilarity
from steelyard.experiments.cheap_fast.worker_accuracy import WorkerAccuracy

EXPERIMENTS: tuple[type[Experiment], ...] = (
    AffectByAnnotators,
    WordSimilarity,
    MajorityByAnnotators,
    DisputedGold,
    Costs,
    WorkerAccuracy,
    GoldCalibration,
    NumericCalibration,
    AffectClassifier,
)
