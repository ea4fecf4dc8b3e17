"""Whether answers are good: questions with known answers, and grading."""

from steelyard.quality.questions import Question, read_questions

__all__ = ["Question", "read_questions"]
