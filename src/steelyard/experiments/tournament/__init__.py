"""Pighin, Formiga and Màrquez (2012): A Graph-based Strategy to Streamline Translation Quality Assessments."""

from steelyard.experiments.base import Experiment
from steelyard.experiments.tournament.agreement_by_overlap import AgreementByOverlap
from steelyard.experiments.tournament.average_dominance import AverageDominance
from steelyard.experiments.tournament.cycles import TournamentCycles
from steelyard.experiments.tournament.effort import TournamentEffort
from steelyard.experiments.tournament.follow_up import FollowUp
from steelyard.experiments.tournament.harmonization import Harmonization
from steelyard.experiments.tournament.propagation_effort import PropagationEffort
from steelyard.experiments.tournament.reconstruction import Reconstruction

EXPERIMENTS: tuple[type[Experiment], ...] = (
    TournamentEffort,
    Reconstruction,
    AgreementByOverlap,
    TournamentCycles,
    AverageDominance,
    PropagationEffort,
    Harmonization,
    FollowUp,
)
