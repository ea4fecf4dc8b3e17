"""Simulated annotators, replayed ones, rehearsals in memory, and the planner."""

from steelyard.simulate.annotators import Annotators, SimulatedAnnotators
from steelyard.simulate.answers import answer_for
from steelyard.simulate.dry_run import DryRun, dry_run
from steelyard.simulate.options import Option, choose_options
from steelyard.simulate.pilot import Pilot, read_pilot
from steelyard.simulate.planner import Plan, plan
from steelyard.simulate.population import Population, SimulatedAnnotator, make_crowd
from steelyard.simulate.rehearsal import Rehearsal, rehearse
from steelyard.simulate.replay import RecordedAnnotators
from steelyard.simulate.working import answer_study, work_through

__all__ = [
    "Annotators",
    "answer_for",
    "answer_study",
    "choose_options",
    "dry_run",
    "DryRun",
    "make_crowd",
    "Option",
    "Pilot",
    "plan",
    "Plan",
    "Population",
    "read_pilot",
    "RecordedAnnotators",
    "rehearse",
    "Rehearsal",
    "SimulatedAnnotator",
    "SimulatedAnnotators",
    "work_through",
]
