"""Quality of answers: checks with known answers, signals, stopping rules and pay."""

from steelyard.quality.questions import Question, read_questions

__all__ = ["Question", "read_questions"]
