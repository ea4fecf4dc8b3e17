"""Pighin, Formiga and Màrquez (2012): A Graph-based Strategy to Streamline Translation Quality Assessments."""

from reproductions.base import Experiment
from reproductions.tournament.agreement_by_overlap import AgreementByOverlap
from reproductions.tournament.average_dominance import AverageDominance
from reproductions.tournament.cycles import TournamentCycles
from reproductions.tournament.effort import TournamentEffort
from reproductions.tournament.follow_up import FollowUp
from reproductions.tournament.harmonization import Harmonization
from reproductions.tournament.propagation_effort import PropagationEffort
from reproductions.tournament.reconstruction import Reconstruction
from reproductions.tournament.worked_example import WorkedExample

EXPERIMENTS: tuple[type[Experiment], ...] = (
    TournamentEffort,
    WorkedExample,
    Reconstruction,
    AgreementByOverlap,
    TournamentCycles,
    AverageDominance,
    PropagationEffort,
    Harmonization,
    FollowUp,
)
