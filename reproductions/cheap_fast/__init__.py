"""Snow, O'Connor, Jurafsky and Ng (2008): Cheap and Fast, But is it Good?"""

from reproductions.base import Experiment
from reproductions.cheap_fast.affect_agreement import AffectAgreement
from reproductions.cheap_fast.affect_by_annotators import AffectByAnnotators
from reproductions.cheap_fast.affect_classifier import AffectClassifier
from reproductions.cheap_fast.costs import Costs
from reproductions.cheap_fast.disputed_gold import DisputedGold
from reproductions.cheap_fast.gold_calibration import GoldCalibration
from reproductions.cheap_fast.majority_by_annotators import MajorityByAnnotators
from reproductions.cheap_fast.numeric_calibration import NumericCalibration
from reproductions.cheap_fast.word_similarity import WordSimilarity
from reproductions.cheap_fast.worker_accuracy import WorkerAccuracy

EXPERIMENTS: tuple[type[Experiment], ...] = (
    AffectAgreement,
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
