"""Simulated and recorded annotators, studies simulated in memory, and the planner."""

from steelyard.simulate.annotators import Annotators, SimulatedAnnotators
from steelyard.simulate.answers import answer_for
from steelyard.simulate.forecast import StudyForecast, forecast_study
from steelyard.simulate.pilot import Pilot, read_pilot
from steelyard.simulate.plan_layout import ItemLayout, SystemLayout
from steelyard.simulate.plan_options import PlanOption, choose_options
from steelyard.simulate.plan_targets import IntervalWidth, Reliability, SystemDifference, TopItems
from steelyard.simulate.planner import Plan, plan
from steelyard.simulate.population import Population, SimulatedAnnotator, make_crowd
from steelyard.simulate.replay import RecordedAnnotators
from steelyard.simulate.simulated_study import SimulatedStudy, simulate_study
from steelyard.simulate.study_driver import answer_study, answer_study_with_crowd

__all__ = [
    "Annotators",
    "answer_for",
    "answer_study",
    "answer_study_with_crowd",
    "choose_options",
    "forecast_study",
    "IntervalWidth",
    "ItemLayout",
    "make_crowd",
    "PlanOption",
    "Pilot",
    "plan",
    "Plan",
    "Population",
    "read_pilot",
    "Reliability",
    "RecordedAnnotators",
    "SimulatedAnnotator",
    "SimulatedAnnotators",
    "SimulatedStudy",
    "simulate_study",
    "SystemDifference",
    "SystemLayout",
    "StudyForecast",
    "TopItems",
]
