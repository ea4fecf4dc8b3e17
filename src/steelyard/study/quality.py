"""Quality control of a study: checks, signals of careless work, rules, interim analyses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

import polars as pl

from steelyard.errors import TaskError, did_you_mean
from steelyard.observations import Index
from steelyard.quality.stopping import InterimAnalysis, StopRule, run_interim_analysis
from steelyard.records import ABOUT_ANNOTATORS, AnnotatorKind, Item, Judgment
from steelyard.study import events as ev
from steelyard.study.config import Stage
from steelyard.study.config.tables import Page, Stop
from steelyard.study.core import Core
from steelyard.study.display import reading_length
from steelyard.study.fitting import kind_for
from steelyard.study.judges import people_only
from steelyard.study.judgments import effective_judgments
from steelyard.study.leases import checked_reason
from steelyard.study.observing import ObservationCollector
from steelyard.study.quality_state import CheckStatus
from steelyard.study.state import StudyState
from steelyard.study.status import status_of
from steelyard.study.systems import kind_of_systems
from steelyard.study.unjudged_state import describe

if TYPE_CHECKING:
    from steelyard.study.study import Study


@dataclass(frozen=True, slots=True)
class Feedback:
    """The feedback that an annotator sees after a check, in studies that give feedback."""

    right: bool
    expected: str
    text: str


def annotator_signals(
    stages: Sequence[Stage],
    items: Sequence[Item],
    judgments: Sequence[Judgment],
    excluded: set[str],
    page: Page,
) -> pl.DataFrame:
    """Return signals of careless work, one row per annotator, with their agreement with the other annotators.

    Excluded annotators are compared with the others, but the others are not compared with them.
    """
    reader = SignalReader(stages, page)
    reader.add(judgments, items)
    return reader.table(items, excluded)


class SignalReader:
    """What `annotator_signals` returns, from judgments that arrive little by little: each is read once."""

    def __init__(self, stages: Sequence[Stage], page: Page) -> None:
        # Not at the top: this imports scipy.stats and numba, which take longer than everything else in a study.
        from steelyard.quality.signals import SignalCounts

        protocols = {stage.name: stage.protocol for stage in stages}
        kinds = dict.fromkeys(stage.protocol.kinds[0] for stage in stages)
        self._page = page
        self._collectors = [ObservationCollector(kind, protocols) for kind in kinds]
        self._counts = SignalCounts(protocols)

    def add(self, judgments: Sequence[Judgment], items: Sequence[Item]) -> None:
        """Read more judgments."""
        self._counts.add(judgments, {item.id: reading_length(item, self._page) for item in items})
        about_items = [judgment for judgment in judgments if judgment.purpose not in ABOUT_ANNOTATORS]
        for collector in self._collectors:
            collector.add(about_items)

    def table(self, items: Sequence[Item], excluded: set[str]) -> pl.DataFrame:
        """Return the signals of all judgments so far."""
        from steelyard.reliability.annotators import with_others

        index = Index([item.id for item in items])
        tables = [with_others(collector.observations(index), excluded) for collector in self._collectors]
        others = pl.concat(tables, how="diagonal").unique("annotator", maintain_order=True)
        return self._counts.table().join(others, on="annotator", how="left", maintain_order="left")


class Quality:
    """The quality control of a study, available as `study.quality`."""

    def __init__(self, core: Core, study: Study) -> None:
        self._core = core
        self._log = core.log
        self._study = study

    # Checks

    def checks(self) -> list[CheckStatus]:
        """Return how the checks were answered, and which are disputed."""
        with self._log.read() as state:
            return state.quality.checks()

    def check_results(self) -> dict[str, tuple[int, int]]:
        """Return how many checks each annotator answered correctly, and how many count."""
        with self._log.read() as state:
            return state.quality.results()

    def resolve_check(self, key: str, verdict: Literal["right", "wrong"], *, member: str = "") -> None:
        """Decide whether the known answer of a disputed check is right or wrong."""
        if verdict not in {"right", "wrong"}:
            raise TaskError(f"a check's answer cannot be '{verdict}'.", "Use right or wrong.")
        with self._log.write() as transaction:
            if key not in {check.key for check in transaction.state.quality.checks()}:
                raise TaskError(f"there is no check '{key}'.", "See the list of checks: steelyard quality.")
            now = self._core.clock()
            transaction.append(ev.CheckResolved(check=key, verdict=verdict, member=member), at=now)
            self._core.apply_checks(transaction, now)

    def feedback(self, judgment: Judgment) -> Feedback | None:
        """Return the feedback for an annotator after a check; None if the study gives no feedback."""
        rule = self._core.config.quality.checks
        if judgment.purpose != "check" or rule is None or not rule.feedback or judgment.right is None:
            return None
        with self._log.read() as state:
            task = state.assigned_task(judgment.judgment_id)
            question = None if task is None else state.quality.questions.get(task.about)
        return None if question is None else Feedback(judgment.right, question.expected, question.feedback)

    # Items

    def items_set_aside(self) -> dict[str, str]:
        """Return the items that nobody is asked about any more, and why."""
        with self._log.read() as state:
            return {item: describe(decision) for item, decision in state.unjudged.set_aside.items()}

    def set_item_aside(self, item: str, reason: str, *, member: str = "") -> None:
        """Ask nobody about an item any more; judgments of it count as before, and it needs no more of them."""
        with self._log.write() as transaction:
            state = transaction.state
            if item not in state.code:
                raise TaskError(f"there is no item '{item}' in this study.", did_you_mean(item, list(state.code)))
            if item not in state.unjudged.set_aside:
                decision = ev.ItemSetAside(item=item, reason=checked_reason(reason), member=member)
                transaction.append(decision, at=self._core.clock())

    def restore_item(self, item: str, reason: str = "", *, member: str = "") -> None:
        """Ask about an item again that was set aside; it is not set aside by itself any more."""
        with self._log.write() as transaction:
            if item in transaction.state.unjudged.set_aside:
                decision = ev.ItemRestored(item=item, reason=checked_reason(reason), member=member)
                transaction.append(decision, at=self._core.clock())

    # Signals and rules

    def signals(self) -> pl.DataFrame:
        """Return signals of careless work, one row per person, with their agreement with other people."""
        stages = self._core.config.stages
        judgments = people_only(effective_judgments(self._log, stages))
        with self._log.read() as state:
            excluded = set(state.excluded)
        return annotator_signals(stages, self._core.items, judgments, excluded, self._core.config.page)

    def apply_rules(self) -> dict[str, str]:
        """Exclude annotators who violate [quality.rules]; return their names with the reasons."""
        rules = self._core.config.quality.rules.model_dump()
        if not any(rules.values()):
            return {}
        from steelyard.quality.signals import broken_rules

        table = self.signals()
        excluded = {}
        with self._log.write() as transaction:
            for annotator, reason in broken_rules(table, rules, table).items():
                state = transaction.state
                if annotator not in state.excluded and annotator not in state.quality.pardoned:
                    exclusion = ev.Excluded(reason=reason, by="rules")
                    self._core.exclude(transaction, annotator, exclusion, self._core.clock())
                    excluded[annotator] = reason
        return excluded

    # Interim analyses

    def is_analysis_due(self) -> bool:
        """Whether an interim analysis is due. This method is fast."""
        rule = self._core.config.stop
        if rule is None:
            return False
        with self._log.read() as state:
            return self._next_analysis(rule, state)[1]

    def interim_analysis(self) -> InterimAnalysis | None:
        """Run an interim analysis if one is due, and close the study if its target is reached.

        Analyses are due after equal portions of the planned judgments; at any other time, this method does nothing.
        """
        rule = self._core.config.stop
        if rule is None:
            return None
        with self._log.read() as state:
            number, due = self._next_analysis(rule, state)
        if not due:
            return None
        plan = StopRule(rule.measure, rule.target, rule.interim_analyses, rule.alpha, rule.spearman_brown)
        model = self._core.config.model
        # Agreement between people and models must not pass for reliability.
        who: AnnotatorKind | None = "person" if rule.measure in {"split_half", "systems"} else None
        stages = self._core.config.stages
        kind = kind_of_systems(stages) if rule.measure == "systems" else kind_for(model, stages)
        by_criterion = self._study.observations(kind, annotator_kind=who)
        items = self._core.items
        analyses = [run_interim_analysis(plan, number, part, model, items) for part in by_criterion.values()]
        # Every criterion must reach the target: the one furthest from it decides.
        analysis = min(analyses, key=lambda one: one.reached)
        with self._log.write() as transaction:
            if self._next_analysis(rule, transaction.state) != (number, True):
                return None
            now = self._core.clock()
            transaction.append(ev.InterimAnalysis(**asdict(analysis)), at=now)
            if analysis.reached:
                reason = f"The target was reached: {analysis.summary}."
                transaction.append(ev.StateChanged(state="closed", reason=reason), at=now)
        return analysis

    def _next_analysis(self, rule: Stop, state: StudyState) -> tuple[int, bool]:
        stages = status_of(self._core.config, state).stages
        done, total = sum(stage.done for stage in stages), sum(stage.total for stage in stages)
        number = state.interim_analyses + 1
        due = (
            state.state == "open"
            and number <= rule.interim_analyses
            and done * rule.interim_analyses >= number * total > 0
        )
        return number, due
