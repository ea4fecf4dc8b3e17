"""Simulated annotators: they drive a Study as a person does."""

from steelyard.simulate.answers import answer_for
from steelyard.simulate.crowd import SimulatedAnnotator, make_crowd, work_through

__all__ = ["SimulatedAnnotator", "answer_for", "make_crowd", "work_through"]
