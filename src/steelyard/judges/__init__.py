"""Models as annotators: run them over a study, from a prompt to recorded judgments."""

from steelyard.judges.cache import ReplyCache
from steelyard.judges.endpoint import CallError, Endpoint, EndpointError, Settings
from steelyard.judges.prompts import Prompt
from steelyard.judges.questions import Question, QuestionPlan, QuestionsByGain, plan_questions
from steelyard.judges.running import (
    Estimate,
    FunctionJudge,
    ModelJudge,
    Prices,
    Progress,
    RunResult,
    estimate,
    run_judge,
)

__all__ = [
    "CallError",
    "Endpoint",
    "EndpointError",
    "Estimate",
    "FunctionJudge",
    "ModelJudge",
    "Prices",
    "Progress",
    "Prompt",
    "Question",
    "QuestionPlan",
    "QuestionsByGain",
    "ReplyCache",
    "RunResult",
    "Settings",
    "estimate",
    "plan_questions",
    "run_judge",
]
