"""Run a model over a study: concurrently, within a budget, resumable; every answer is on disk when it is counted."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from typing import Protocol as Interface

from steelyard.errors import AnswerError, ConfigError, SteelyardError
from steelyard.judges.cache import ReplyCache, request_key
from steelyard.judges.endpoint import CallError, Endpoint, EndpointError, Reply, estimated_tokens
from steelyard.judges.prompts import Prompt, answer_schema, letters_for, parse_reply, with_offsets
from steelyard.judges.questions import Question, QuestionsByGain
from steelyard.protocols.base import Protocol
from steelyard.records import Item
from steelyard.storage.events import to_json
from steelyard.study import Study
from steelyard.study import events as ev
from steelyard.study.judges import ModelAnswer

MOST_FAILURES_IN_A_ROW = 10
"""A run stops after this many failures without a success between them."""
_LONGEST_ANSWER = 4000
"""Maximum number of tokens to allow a model whose answer was cut off."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices per million tokens; 0 for local models."""

    input: float = 0.0
    output: float = 0.0

    def cost(self, input_tokens: float, output_tokens: float) -> float:
        """Return the price of these numbers of tokens."""
        return (self.input * input_tokens + self.output * output_tokens) / 1e6


@dataclass(slots=True)
class Meter:
    """What a run has used: calls, tokens and money; `cached` answers cost nothing."""

    calls: int = 0
    cached: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a run."""

    done: int
    total: int
    failed: int
    meter: Meter


@dataclass(frozen=True, slots=True)
class Failure:
    """A question that has no answer, and why."""

    question: Question
    kind: str
    reason: str


@dataclass(slots=True)
class RunResult:
    """The result of a run; `stopped` says why it ended early, `ending` why a run by gain asked no further."""

    answered: int = 0
    already: int = 0
    failures: list[Failure] = field(default_factory=list)
    meter: Meter = field(default_factory=Meter)
    retries: Counter[str] = field(default_factory=Counter)
    stopped: str = ""
    ending: str = ""


class Judge(Interface):
    """What can answer questions: a model behind an endpoint, or a function."""

    source: str
    model: str

    def version(self, study: Study) -> str:
        """Return a digest of the prompt and the settings."""

    def registration(self, study: Study) -> ev.JudgeRegistered:
        """Return what the log keeps about the judge."""

    async def answer(self, items: Sequence[Item], protocol: Protocol, number: int, meter: Meter) -> tuple[Any, float]:
        """Answer a question about items; return the answer by item ids, and its cost."""

    async def __aenter__(self) -> Any: ...
    async def __aexit__(self, *_: object) -> None: ...


class FunctionJudge:
    """A Python function as judge: it gets the items and the protocol and returns an answer by item ids.

    For a question about one item with one criterion a bare value is enough. The function may be asynchronous.
    """

    source = "function"

    def __init__(self, function: Callable[[Sequence[Item], Protocol], Any], name: str | None = None) -> None:
        self.function = function
        self.model = name or str(getattr(function, "__name__", "function"))

    def version(self, study: Study) -> str:
        """Return a digest of the function's source, or of its name where there is none."""
        try:
            text = inspect.getsource(self.function)
        except (OSError, TypeError):
            text = self.model
        return _digest([text])

    def registration(self, study: Study) -> ev.JudgeRegistered:
        """Return the function's name; its source is not kept."""
        return ev.JudgeRegistered(source="function", version=self.version(study), model=self.model)

    async def answer(self, items: Sequence[Item], protocol: Protocol, number: int, meter: Meter) -> tuple[Any, float]:
        """Call the function."""
        meter.calls += 1
        try:
            value = self.function(items, protocol)
            if inspect.isawaitable(value):
                value = await value
        except Exception as error:
            raise CallError("function", f"{self.model} raised {type(error).__name__}: {error}") from error
        is_bare = not isinstance(value, dict | list) and len(items) == 1
        return ({items[0].id: value} if is_bare else value), 0.0

    async def __aenter__(self) -> FunctionJudge:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None


class ModelJudge:
    """A chat model as judge: prompts, validates, sends invalid answers back, counts tokens and money."""

    source = "endpoint"

    def __init__(
        self, endpoint: Endpoint, prompt: Prompt, *, prices: Prices, cache: ReplyCache | None = None, tries: int = 3
    ) -> None:
        self.endpoint = endpoint
        self.prompt = prompt
        self.prices = prices
        self.cache = ReplyCache(None) if cache is None else cache
        self.tries = tries
        self.model = endpoint.model

    def version(self, study: Study) -> str:
        """Return a digest of prompt, model and temperature."""
        return _digest([self.prompt.digest, self.model, self.endpoint.settings.temperature])

    def registration(self, study: Study) -> ev.JudgeRegistered:
        """Return the prompt and the settings, without the key."""
        prompt = "\n\n".join((self.prompt.system, self.prompt.template))
        settings = {"temperature": self.endpoint.settings.temperature, "structure": self.endpoint.settings.structure}
        version = self.version(study)
        return ev.JudgeRegistered(
            source="endpoint", version=version, model=self.model, prompt=prompt, settings=settings
        )

    async def answer(self, items: Sequence[Item], protocol: Protocol, number: int, meter: Meter) -> tuple[Any, float]:
        """Ask until the answer is valid; an invalid answer is sent back to the model with the reason."""
        if any(item.media for item in items):
            raise CallError("media", "the item is an image, audio or video, and models accept text only.")
        names = [item.id for item in items]
        messages = self.prompt.messages(items, protocol)
        schema = answer_schema(protocol, letters_for(len(items)))
        limit, cost, problem = self.endpoint.settings.max_tokens, 0.0, ""
        for _ in range(self.tries):
            reply, price = await self._reply(messages, schema, limit, number, meter)
            cost += price
            if reply.is_refusal:
                raise CallError("refused", f"the model refused: {_short(reply.text)}")
            if reply.finish_reason == "length" and limit < _LONGEST_ANSWER:
                limit, problem = min(2 * limit, _LONGEST_ANSWER), "the answer was cut off"
                continue
            try:
                answer = with_offsets(parse_reply(reply.text, names), items)
                return protocol.validate(names, answer), cost
            except AnswerError as error:
                problem = f"{error} (the reply was: {_short(reply.text)})"
                messages = [
                    *messages,
                    {"role": "assistant", "content": reply.text},
                    {"role": "user", "content": f"This answer is not valid: {error} Answer again, with JSON only."},
                ]
        raise CallError("invalid answer", f"no valid answer in {self.tries} tries: {problem}")

    async def _reply(
        self, messages: list[dict[str, str]], schema: dict[str, Any], limit: int, number: int, meter: Meter
    ) -> tuple[Reply, float]:
        settings = self.endpoint.settings
        key = request_key(
            {
                "url": self.endpoint.base_url,
                "model": self.model,
                "messages": messages,
                "schema": schema,
                "temperature": settings.temperature,
                "limit": limit,
                "number": number,
            }
        )
        if (reply := self.cache.get(key)) is not None:
            meter.cached += 1
            return reply, 0.0
        reply = await self.endpoint.reply(messages, schema, limit)
        self.cache.add(key, reply)
        cost = self.prices.cost(reply.input_tokens, reply.output_tokens)
        meter.calls += 1
        meter.input_tokens += reply.input_tokens
        meter.output_tokens += reply.output_tokens
        meter.cost += cost
        return reply, cost

    async def __aenter__(self) -> ModelJudge:
        await self.endpoint.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.endpoint.__aexit__()


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 200 else f"{line[:200]}…"


def _digest(parts: Sequence[object]) -> str:
    return hashlib.blake2b(to_json(list(parts)).encode(), digest_size=6).hexdigest()


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run would take: questions, calls, tokens, and cost."""

    questions: int
    already: int
    cached: int
    calls: int
    input_tokens: int
    output_tokens: int
    cost: float


def estimate(study: Study, judge: ModelJudge, name: str, questions: Sequence[Question]) -> Estimate:
    """Estimate a run without sending anything: prompts as they would be sent, some 30 tokens per item answered."""
    open_questions = unanswered(study, judge, name, questions)
    items = {item.id: item for item in study.items}
    sent = received = 0
    for question in open_questions:
        protocol = study.config.stages[question.stage].protocol
        question_items = [items[one] for one in question.items]
        sent += sum(estimated_tokens(message["content"]) for message in judge.prompt.messages(question_items, protocol))
        received += 10 + 10 * len(question_items) * max(1, len(protocol.scales()) or len(protocol.classes()))
    cost = judge.prices.cost(sent, received)
    calls = len(open_questions)
    return Estimate(len(questions), len(questions) - calls, len(judge.cache), calls, sent, received, cost)


def unanswered(study: Study, judge: Judge, name: str, questions: Sequence[Question]) -> list[Question]:
    """Return the questions that this version of a model has not answered in the study."""
    version = judge.version(study)
    ids = {judgment.judgment_id for judgment in study.judges.judgments() if judgment.annotator == name}
    stages = [stage.name for stage in study.config.stages]
    return [one for one in questions if one.id_for(name, version, stages[one.stage]) not in ids]


def run_judge(
    study: Study,
    judge: Judge,
    questions: Sequence[Question] | QuestionsByGain,
    *,
    name: str | None = None,
    concurrency: int = 4,
    max_cost: float | None = None,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> RunResult:
    """Let a judge answer questions about a study, and record the answers as they come.

    What was answered before is not asked again. `max_cost` ends the run when the meter reaches it; answers on their
    way are still recorded. Questions that cannot be answered are listed in the result. With `QuestionsByGain`, each
    question is chosen when the judge is ready for it, from all answers so far.
    """
    if concurrency < 1:
        raise ConfigError(f"{concurrency} parallel requests are not possible.", "Use 1 or more.")
    chosen = name or judge.model
    result, open_questions = RunResult(), questions
    total = len(study.items)
    if not isinstance(questions, QuestionsByGain):
        open_questions = unanswered(study, judge, chosen, questions)
        total = len(open_questions)
        result.already = len(questions) - total
        if not open_questions:
            return result
    if isinstance(judge, ModelJudge):
        judge.endpoint.on_retry = lambda kind: result.retries.update([kind])
    run = _Run(study, judge, chosen, result, max_cost, on_progress, total)
    asyncio.run(run.answer_all(open_questions, concurrency))
    if isinstance(questions, QuestionsByGain):
        result.ending = questions.ending
    return result


class _Run:
    """One run of one judge."""

    def __init__(
        self,
        study: Study,
        judge: Judge,
        name: str,
        result: RunResult,
        max_cost: float | None,
        on_progress: Callable[[Progress], None],
        total: int,
    ) -> None:
        self.study, self.judge, self.name, self.result = study, judge, name, result
        self.max_cost, self.on_progress, self.total = max_cost, on_progress, total
        self.items = {item.id: item for item in study.items}
        self.version = judge.version(study)
        self.failures_in_a_row = 0
        self.is_registered = False
        self.fatal: SteelyardError | None = None

    async def answer_all(self, questions: Iterable[Question], concurrency: int) -> None:
        """Answer all questions, some at a time."""
        remaining = iter(questions)

        async def work() -> None:
            for question in remaining:
                if self.result.stopped or self.fatal is not None:
                    return
                await self.answer(question)

        async with self.judge:
            await asyncio.gather(*(work() for _ in range(concurrency)))
        if self.fatal is not None:
            raise self.fatal

    async def answer(self, question: Question) -> None:
        """Answer one question and record it."""
        stage = self.study.config.stages[question.stage]
        meter = self.result.meter
        start = time.monotonic()
        question_items = [self.items[one] for one in question.items]
        try:
            answer, cost = await self.judge.answer(question_items, stage.protocol, question.repeat, meter)
            self._record(question, stage.name, answer, cost, time.monotonic() - start)
        except EndpointError as error:
            self.fatal = error
            return
        except (CallError, AnswerError) as error:
            self._fail(question, error)
        else:
            self.failures_in_a_row = 0
            self.result.answered += 1
        if self.max_cost is not None and meter.cost >= self.max_cost and not self.result.stopped:
            self.result.stopped = f"the cost reached its limit of {self.max_cost:g}"
        done = self.result.answered + len(self.result.failures)
        self.on_progress(Progress(done, self.total, len(self.result.failures), meter))

    def _record(self, question: Question, stage: str, answer: Any, cost: float, seconds: float) -> None:
        first = question.id_for(self.name, self.version, stage, repeat=0)
        if not self.is_registered:
            self.study.judges.register(self.name, self.judge.registration(self.study))
            self.is_registered = True
        self.study.judges.record(
            [
                ModelAnswer(
                    judgment_id=question.id_for(self.name, self.version, stage),
                    annotator=self.name,
                    stage=question.stage,
                    items=question.items,
                    answer=answer,
                    version=self.version,
                    cost=cost or None,
                    seconds=round(seconds, 3),
                    repeat_of=first if question.repeat else "",
                    reason=question.reason,
                )
            ]
        )

    def _fail(self, question: Question, error: SteelyardError) -> None:
        kind = error.kind if isinstance(error, CallError) else "invalid answer"
        self.result.failures.append(Failure(question, kind, str(error)))
        self.failures_in_a_row += 1
        if self.failures_in_a_row >= MOST_FAILURES_IN_A_ROW and not self.result.stopped:
            self.result.stopped = f"{self.failures_in_a_row} failures in a row, the last: {error}"
