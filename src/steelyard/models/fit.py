"""The base class of all models, and the result of a fit."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

import polars as pl

from steelyard import registry
from steelyard.errors import DataError, ModelFailedError, SteelyardError
from steelyard.formats.tables import pandas_frame
from steelyard.models.display import html_table
from steelyard.observations import FloatArray, Observations

_SHOWN = (
    "rank",
    "item",
    "criterion",
    "group",
    "score",
    "label",
    "probability",
    "lower",
    "upper",
    "judgments",
    "annotators",
)
"""The columns of a scores table that notebooks show."""
_LONGEST_REASON = 200
"""Characters of an exception's message that are shown; the traceback has all of it."""


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """The result of a model: the table of scores, and how it was computed.

    `annotators` is a table of annotator parameters, for models that estimate them. `notes` are sentences for the reader
    of the table, such as why an interval is missing. `draws` are joint posterior draws or bootstrap replicates of the
    scores (draws × rows of `scores`), for models that have them; NaN where a replicate has no judgment of the item.
    """

    model: str
    settings: dict[str, object]
    scores: pl.DataFrame
    annotators: pl.DataFrame | None = None
    notes: tuple[str, ...] = ()
    iterations: int = 0
    converged: bool = True
    draws: FloatArray | None = field(default=None, repr=False)

    @property
    def level(self) -> float:
        """The nominal coverage of the intervals."""
        level = self.settings.get("level", 0.95)
        return float(level) if isinstance(level, int | float) else 0.95

    def to_pandas(self) -> Any:
        """Return the scores as a pandas frame."""
        return pandas_frame(self.scores)

    def _repr_html_(self) -> str:
        """Show the scores in a notebook."""
        columns = [name for name in _SHOWN if name in self.scores.columns]
        title = f"{self.model}: {self.scores.height:,} items, {100 * self.level:g} % intervals"
        return html_table(self.scores.select(columns), title, self.notes)


@contextmanager
def failures_reported(model: Model) -> Iterator[None]:
    """Turn any exception of a model inside the block into a ModelFailedError, with the exception as its cause.

    This is the one place where a study meets a model. Refusals (SteelyardError) and warnings that the user made
    errors pass through.
    """
    try:
        yield
    except (SteelyardError, Warning):
        raise
    except Exception as error:
        # Every exception: models include plug-ins, and whatever they raise, the study's other parts must go on.
        reason = (str(error).strip().splitlines() or [""])[0][:_LONGEST_REASON]
        what = f"{type(error).__name__}: {reason}" if reason else type(error).__name__
        raise ModelFailedError(
            f"Scores could not be computed: the model {model.name} failed ({what}).",
            "The judgments are safe and can be exported. Choose another model in [model], and report this error.",
            field="model.name",
        ) from error


class Model(ABC):
    """Base class of models, which compute scores from observations. Subclasses are frozen dataclasses of settings."""

    __slots__ = ()

    name: ClassVar[str]
    accepts: ClassVar[tuple[str, ...]]
    """The kinds of observations it takes, the preferred one first."""
    parameter_columns: ClassVar[tuple[str, ...]] = ()
    """Columns with the items' own parameters that follow the usual ones in the table of scores."""

    @abstractmethod
    def fit(self, observations: Any) -> Fit:
        """Score every item of the observations' index."""

    @classmethod
    def takes_gold(cls) -> bool:
        """Whether `fit` can be given the known answers of some items."""
        return "gold" in inspect.signature(cls.fit).parameters

    @classmethod
    def takes_covariates(cls) -> bool:
        """Whether `fit` can be given numbers of the items, such as judges' scores, as a prior."""
        return "covariates" in inspect.signature(cls.fit).parameters

    def fitted(
        self, observations: Observations, gold: Mapping[str, str | float] | None = None, covariates: Any = None
    ) -> Fit:
        """Fit with gold and covariates if the model supports them, otherwise without them."""
        fit: Any = self.fit
        options: dict[str, Any] = {"gold": gold} if gold and self.takes_gold() else {}
        if covariates is not None and self.takes_covariates():
            options["covariates"] = covariates
        fitted: Fit = fit(observations, **options)
        return self.with_gold_noted(fitted, gold, observations.items)

    def with_gold_noted(self, fitted: Fit, gold: Mapping[str, str | float] | None, items: Container[str]) -> Fit:
        """Return a note on how much of the gold was used."""
        if not gold:
            return fitted
        used = sum(item in items for item in gold)
        note = f"gold of {used} items was used" if self.takes_gold() else f"{self.name} does not use gold"
        return replace(fitted, notes=(*fitted.notes, note))

    def settings(self) -> dict[str, object]:
        """The model's settings by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]

    def check_kind(self, observations: Observations) -> None:
        """Refuse observations this model does not accept."""
        if not isinstance(observations, Observations):
            raise DataError(
                f"{self.name} takes {' or '.join(self.accepts)}, not {type(observations).__name__}.",
                "Read them with steelyard.read_judgments(file).observations.",
            )
        if observations.kind not in self.accepts:
            raise DataError(
                f"{self.name} needs {' or '.join(self.accepts)}; these are {observations.kind}.",
                self._remedy(observations),
            )
        if len(observations) == 0:
            raise DataError(f"there are no {observations.kind} to fit.", "Collect or import some first.")

    def _remedy(self, observations: Observations) -> str:
        models = [
            name for name in registry.names("models") if observations.kind in registry.find("models", name).accepts
        ]
        protocols = [
            name
            for name in registry.names("protocols")
            if set(self.accepts) & set(registry.find("protocols", name).kinds)
        ]
        return f"Use {' or '.join(models)}, or collect with {' or '.join(protocols)}."
