"""The part of a study that says what came of it: judgments, observations, scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Literal

import polars as pl

from steelyard.designs.propagation import Propagation
from steelyard.designs.propagation_memory import Effort
from steelyard.models.fit import Fit, Model
from steelyard.observations import Index, Observations
from steelyard.records import Judgment
from steelyard.study.collect import collect
from steelyard.study.journal import as_datetime
from steelyard.study.recruiting import Recruiting
from steelyard.study.results import effective_judgments, fit_by_criterion, judgment_frame, judgment_of, kind_for
from steelyard.study.twins import comparisons_of_twins, with_twins


class Outcome(Recruiting):
    """What people said, and what it adds up to."""

    @property
    def excluded(self) -> dict[str, str]:
        """The annotators whose judgments are set aside, and why."""
        with self._journal.reading() as ledger:
            return dict(ledger.excluded)

    def judgments(self) -> pl.DataFrame:
        """Every judgment with its latest answer (as JSON), one a row; those `set_aside` do not count."""
        return judgment_frame(self._effective())

    def stream_judgments(self) -> Iterator[Judgment]:
        """Yield every judgment as `judgments` lists them, in little memory however many there are.

        Nothing of the log is kept but who was excluded.
        """
        excluded: set[str] = set()
        for event in self._journal.events(("exclusion", "readmission")):
            (excluded.add if event.kind == "exclusion" else excluded.discard)(str(event.annotator))
        for at, event in self._journal.answers():
            judgment = replace(judgment_of(event, self.config.stages), at=as_datetime(at))
            yield replace(judgment, set_aside=True) if judgment.annotator in excluded else judgment

    def count_judgments(self) -> int:
        """How many judgments `stream_judgments` yields."""
        return self._journal.answered()

    def observations(
        self, kind: str, *, stage: str | None = None, without: str | None = None
    ) -> dict[str, Observations]:
        """What the judgments (of one stage, or all) say, as one kind of observations, by criterion.

        The criterion is '' when there is just one. `without` leaves an annotator out.
        """
        index = Index([item.id for item in self.items])
        protocols = {stage.name: stage.protocol for stage in self.config.stages}
        judgments = (
            judgment
            for judgment in self._effective()
            if judgment.counts and (stage is None or judgment.stage == stage)
            if without is None or judgment.annotator != without
        )
        return collect(kind, judgments, protocols, index)

    def fit(
        self,
        model: Model | None = None,
        *,
        by: Literal["item", "group"] = "item",
        observations: Mapping[str, Observations] | None = None,
        without: str | None = None,
    ) -> Fit:
        """Score the items, or the groups they belong to, with the study's model or another.

        The items' gold goes to models that take it. `observations` are those of the study unless given, `without`
        an annotator if one is named.
        """
        model = model or self.config.model
        if observations is None:
            observations = self.observations(kind_for(model, self.config.stages), without=without)
        items = self.items
        gold = {"": {item.id: item.gold for item in items if item.gold is not None}}
        groups = {item.id: item.group for item in items if item.group is not None}
        twins = self._twins()
        if by == "item":
            fitted = fit_by_criterion(model, observations, gold, groups)
            return replace(fitted, scores=with_twins(fitted.scores, twins))
        grouped = {name: comparisons_of_twins(part, twins).by_group(groups)[0] for name, part in observations.items()}
        return fit_by_criterion(model, grouped)

    def labels(self) -> pl.DataFrame:
        """What a propagation stage found of each item, asked or inferred: item, adequate, how, through."""
        with self._journal.reading() as ledger:
            found = [
                label
                for stage, progress in zip(self.config.stages, ledger.progress, strict=True)
                if isinstance(stage.design, Propagation)
                for label in stage.design.labels(progress)
            ]
        schema = {"item": pl.String, "adequate": pl.Boolean, "how": pl.String, "through": pl.String}
        return pl.DataFrame(found, schema=schema, orient="row")

    def effort(self) -> dict[str, Effort]:
        """How much asking each propagation stage spared, by stage (Table 2 of Pighin et al. 2012)."""
        with self._journal.reading() as ledger:
            return {
                stage.name: stage.design.effort(progress)
                for stage, progress in zip(self.config.stages, ledger.progress, strict=True)
                if isinstance(stage.design, Propagation)
            }

    def scores(self, *, by: Literal["item", "group"] = "item") -> pl.DataFrame:
        """The scores table: item (or group), score, lower, upper, rank, judgments and more."""
        return self.fit(by=by).scores

    def _twins(self) -> dict[str, str]:
        """Items that no stage asks about because they are identical to another, and to which."""
        with self._journal.reading() as ledger:
            stages = zip(self.config.stages, ledger.progress, strict=True)
            found = [stage.design.same_as(progress) for stage, progress in stages]
            return {ledger.items[a].id: ledger.items[b].id for same in found for a, b in same.items()}

    def _effective(self) -> Iterator[Judgment]:
        answers = self._journal.events(("judgment", "revision"))
        return effective_judgments(answers, self.config.stages, self.excluded)
