"""How many judgments a target needs, for the plan of a draft: simulated while the page shows the progress."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from steelyard.errors import SteelyardError
from steelyard.records import Item
from steelyard.simulate import IntervalWidth, Plan, PlanOption, Reliability, SystemDifference, TopItems
from steelyard.simulate import plan as simulate_plan
from steelyard.simulate.plan_layout import layout_of_items
from steelyard.simulate.plan_targets import Target
from steelyard.simulate.planner import REPLICATES
from steelyard.study import StudyConfig
from steelyard.web.study_plan import planned_tasks, simulating

_PAGE_WIDTH = 640
_USUAL_RELIABILITY = 0.9


class TargetRequest(BaseModel):
    """What the study must reach, or what it may take."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    measure: Literal["reliability", "interval_width", "top_items", "difference", "hours", "cost"]
    goal: Annotated[
        float,
        Field(gt=0, description="reliability, width or difference (fractions of the scale), number k, hours, or cost"),
    ]
    probability: Annotated[
        float, Field(gt=0, lt=1, description="that the top items are right, or the difference is significant (power)")
    ] = 0.8
    theme: Literal["light", "dark"] = "light"
    width: Annotated[int, Field(ge=200, le=2000, description="width of the chart")] = _PAGE_WIDTH

    def target(self) -> Target:
        """Return the planner's target."""
        if self.measure == "interval_width":
            return IntervalWidth(self.goal)
        if self.measure == "top_items":
            return TopItems(max(1, round(self.goal)), self.probability)
        if self.measure == "difference":
            return SystemDifference(self.goal, self.probability)
        return Reliability(self.goal if self.measure == "reliability" else _USUAL_RELIABILITY)


class TargetPlanOut(BaseModel):
    """What a target needs; ranges are those of 90 % of the simulated studies."""

    judgments: int
    lower: int
    upper: int
    per_item: Annotated[float, Field(description="in how many answers each item appears")]
    annotators: int
    hours: float
    hours_lower: float
    hours_upper: float
    cost: float | None
    cost_lower: float | None
    cost_upper: float | None
    currency: str
    measure: str
    reached: Annotated[
        tuple[float, float, float] | None, Field(description="what given hours or a given cost reach, with its range")
    ]
    sentence: Annotated[str, Field(description="for a preregistration")]
    notes: list[str]
    chart: Annotated[str, Field(description="a drawing (SVG)")]


def stream_target_plan(
    config: StudyConfig, items: Sequence[Item], request: TargetRequest, annotators: int, seconds: float
) -> Iterator[str]:
    """Yield lines of JSON: {"done", "of"} as the simulation proceeds, then {"result"} or {"error"}.

    The simulation ends early if nobody reads the lines any more.
    """
    lines: queue.Queue[dict[str, Any]] = queue.Queue()
    stop = threading.Event()
    done = 0

    def on_progress(steps: int) -> None:
        nonlocal done
        if stop.is_set():
            raise _StoppedError
        done += steps
        lines.put({"done": min(done, REPLICATES), "of": REPLICATES})

    def work() -> None:
        try:
            with simulating:
                result = _target_plan(config, items, request, annotators, seconds, on_progress)
            lines.put({"result": result.model_dump()})
        except SteelyardError as error:
            problem = error.problems[0]
            lines.put({"error": {"what": problem.what, "remedy": problem.remedy}})
        except _StoppedError:
            pass
        except Exception as error:
            lines.put({"error": {"what": "The simulation failed.", "remedy": "Please report this error."}})
            raise error from None

    threading.Thread(target=work, daemon=True).start()
    try:
        yield json.dumps({"done": 0, "of": REPLICATES}) + "\n"
        while True:
            line = lines.get()
            yield json.dumps(line) + "\n"
            if "done" not in line:
                return
    finally:
        stop.set()


class _StoppedError(Exception):
    """Nobody waits for the simulation any more."""


def _target_plan(
    config: StudyConfig,
    items: Sequence[Item],
    request: TargetRequest,
    annotators: int,
    seconds: float,
    on_progress: Callable[[int], None],
) -> TargetPlanOut:
    from steelyard.report.charts import svg
    from steelyard.report.plan_chart import plan_chart

    target = request.target()
    option = PlanOption.of_study(config)
    result = simulate_plan(layout_of_items(items), target, [option], people=max(2, annotators), on_progress=on_progress)
    table = result.table(seconds={option.protocol: seconds})
    row = table.row(0, named=True)
    amounts, reached = [row["judgments"], row["lower"], row["upper"]], None
    if request.measure in {"hours", "cost"}:
        count = _affordable(config, request, result.people, seconds)
        reached = result.at(option.protocol, option.design, count)
        amounts = [count] * 3
    hours = [planned_tasks(config, count) * seconds / 3600 for count in amounts]
    rates = config.pay.rates
    costs = [
        rates.cost(planned_tasks(config, count), each, result.people) if rates.any else None
        for count, each in zip(amounts, hours, strict=True)
    ]
    measure = {} if isinstance(target, Reliability) else {"measure": target.measure}
    return TargetPlanOut(
        judgments=amounts[0],
        lower=amounts[1],
        upper=amounts[2],
        per_item=round(amounts[0] * row["items_per_judgment"] / len(items), 2),
        annotators=result.people,
        hours=hours[0],
        hours_lower=hours[1],
        hours_upper=hours[2],
        cost=costs[0],
        cost_lower=costs[1],
        cost_upper=costs[2],
        currency=config.pay.currency,
        measure=target.measure,
        reached=reached,
        sentence=_sentence(result, row | {"hours": hours[0], "cost": costs[0]}, config, reached is not None),
        notes=list(result.notes),
        chart=svg(
            plan_chart(result.curve, table, target.goal, **measure),
            request.theme,
            width=request.width,
            embed_font=False,
        ),
    )


def _affordable(config: StudyConfig, request: TargetRequest, people: int, seconds: float) -> int:
    """Return how many judgments the hours or the cost pay for."""
    per_judgment = planned_tasks(config, 1000) / 1000
    hours = per_judgment * seconds / 3600
    if request.measure == "hours":
        return max(1, int(request.goal / hours))
    rates = config.pay.rates
    once = rates.cost(0, 0, people)
    each = rates.cost(per_judgment, hours, 0)
    if not each:
        raise SteelyardError("annotators are not paid by task or hour.", "Fill in the pay below first.")
    return max(1, int((request.goal - once) / each))


def _sentence(result: Plan, row: dict[str, Any], config: StudyConfig, is_budget: bool) -> str:
    """Return the sentence for a preregistration; none where a budget decides and not a target."""
    return "" if is_budget else result.preregistration(row, config.pay.currency)
