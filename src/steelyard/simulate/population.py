"""Populations of simulated annotators: how annotators vary, and crowds drawn from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from pydantic import Field, TypeAdapter, ValidationError

from steelyard.errors import ConfigError, Problem, did_you_mean
from steelyard.observations import FloatArray
from steelyard.renamed import renamed_remedy

CarelessKind: TypeAlias = Literal["random", "constant", "copy"]
CARELESS_KINDS: tuple[CarelessKind, ...] = ("random", "constant", "copy")


@dataclass(frozen=True, slots=True)
class SimulatedAnnotator:
    """One simulated annotator. Values are on the unit scale, rates per hundred tasks.

    The annotator perceives an item of value v as x = v + noise·z, and answers 0.5 + stretch·(x - 0.5) + bias. With
    probability `lapse` a task is answered at random.

    Attributes
    ----------
    drift
        Change of the bias.
    fatigue
        Relative growth of the noise.
    lapse_growth
        Growth of the lapse probability.
    together
        Noise of items shown together, relative to the noise of an item shown alone.
    context_shift
        Standard deviation of a shift common to all items of a task with several items.
    tie_margin
        Values this close are perceived as equal.
    confusion
        Probability that a label is drawn at random (protocol choice).
    careless
        `random` answers at random. `constant` gives every item the same value, 0.5 + bias: the last item shown is the
        best where one must be chosen, and all are tied where ties are allowed. `copy` gives the answers of the
        annotator named in `copies`.
    """

    name: str
    bias: float = 0.0
    stretch: float = 1.0
    noise: float = 0.1
    lapse: float = 0.0
    drift: float = 0.0
    fatigue: float = 0.0
    lapse_growth: float = 0.0
    together: float = 1.0
    context_shift: float = 0.0
    tie_margin: float = 0.03
    confusion: float = 0.0
    careless: CarelessKind | None = None
    copies: str | None = None


@dataclass(frozen=True, slots=True)
class Population:
    """Distribution of items and annotators, on the unit scale. The defaults resemble recorded slider studies."""

    mean: Annotated[float, Field(gt=0, lt=1, description="mean of the items' values")] = 0.5
    item_sd: Annotated[float, Field(gt=0, lt=0.5, description="standard deviation of the items' values")] = 0.25
    bias: Annotated[float, Field(ge=0, description="standard deviation of the annotators' biases")] = 0.1
    stretch: Annotated[float, Field(ge=0, description="standard deviation of the log of the annotators' slopes")] = 0.25
    noise: Annotated[float, Field(ge=0, description="mean noise of the annotators")] = 0.17
    noise_cv: Annotated[float, Field(ge=0, description="coefficient of variation of the annotators' noise")] = 0.4
    lapse: Annotated[float, Field(ge=0, lt=1, description="mean fraction of tasks answered at random")] = 0.05
    drift: Annotated[float, Field(ge=0, description="standard deviation of the change of the biases in 100 tasks")] = (
        0.0
    )
    fatigue: Annotated[float, Field(ge=0, description="relative growth of the noise in 100 tasks")] = 0.0
    lapse_growth: Annotated[float, Field(ge=0, description="growth of the lapse probability in 100 tasks")] = 0.0
    together: Annotated[float, Field(ge=0, description="noise of items shown together, relative to single items")] = 1.0
    context_shift: Annotated[
        float, Field(ge=0, description="standard deviation of a shift common to the items of a task")
    ] = 0.0
    tie_margin: Annotated[float, Field(ge=0, description="values this close are perceived as equal")] = 0.03
    confusion: Annotated[float, Field(ge=0, le=1, description="fraction of labels drawn at random (choice)")] = 0.0
    careless: Annotated[float, Field(ge=0, lt=1, description="fraction of careless annotators")] = 0.0
    censored: Annotated[
        bool, Field(description="whether values are normal and may lie beyond the ends of the scale, where answers end")
    ] = False

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Population:
        """Build a population from settings by name; refuse unknown and invalid ones."""
        names = [field.name for field in fields(cls)]
        problems = [
            Problem(
                f"a population has no setting '{key}'.", renamed_remedy(f"population.{key}") or did_you_mean(key, names)
            )
            for key in settings
            if key not in names
        ]
        if problems:
            raise ConfigError(problems)
        try:
            population = TypeAdapter(cls).validate_python(dict(settings))
        except ValidationError as error:
            raise ConfigError(
                Problem(f"{details['msg']} (given: {details['input']!r}).", field=".".join(map(str, details["loc"])))
                for details in error.errors()
            ) from None
        population.check()
        return population

    def check(self) -> None:
        """Refuse a standard deviation that values between 0 and 1 cannot have."""
        if not self.censored and self.item_sd**2 >= self.mean * (1 - self.mean):
            most = (self.mean * (1 - self.mean)) ** 0.5
            raise ConfigError(
                f"values between 0 and 1 with mean {self.mean:g} cannot have a standard deviation of {self.item_sd:g}.",
                f"Make item_sd smaller than {most:.3f}.",
            )

    def values(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Draw `count` item values with this mean and standard deviation: beta, or normal if answers are censored."""
        self.check()
        if self.censored:
            return rng.normal(self.mean, self.item_sd, count)
        precision = self.mean * (1 - self.mean) / self.item_sd**2 - 1
        return rng.beta(self.mean * precision, (1 - self.mean) * precision, count)

    def truth(self, items: Sequence[str], rng: np.random.Generator) -> dict[str, float]:
        """Draw a true value for each item."""
        return dict(zip(items, self.values(len(items), rng).tolist(), strict=True))


def make_crowd(size: int, rng: np.random.Generator, population: Population | None = None) -> list[SimulatedAnnotator]:
    """Draw a crowd: normal biases and drifts, log-normal scale use, gamma noise, beta lapses.

    Careless annotators are in turn random, constant, or copies of a careful annotator.
    """
    settings = population or Population()
    n_careless = round(settings.careless * size)
    n_careful = size - n_careless
    width = max(2, len(str(size)))
    names = [f"sim-{number:0{width}d}" for number in range(1, size + 1)]
    bias = rng.normal(0, settings.bias, size)
    # The mean of the log is set so that the mean slope is 1.
    stretch = np.exp(rng.normal(-(settings.stretch**2) / 2, settings.stretch, size))
    noise = _gamma(settings.noise, settings.noise_cv, size, rng)
    lapse = rng.beta(1, 1 / settings.lapse - 1, size) if settings.lapse else np.zeros(size)
    drift = rng.normal(0, settings.drift, size)
    copy_source = rng.integers(max(n_careful, 1), size=size)
    places = rng.permutation(size)
    crowd: list[SimulatedAnnotator | None] = [None] * size
    for number, place in enumerate(places.tolist()):
        careless = CARELESS_KINDS[(number - n_careful) % 3] if number >= n_careful else None
        if careless == "copy" and not n_careful:
            careless = "random"
        crowd[place] = SimulatedAnnotator(
            names[place],
            bias=float(bias[place]),
            stretch=float(stretch[place]),
            noise=float(noise[place]),
            lapse=float(lapse[place]),
            drift=float(drift[place]),
            fatigue=settings.fatigue,
            lapse_growth=settings.lapse_growth,
            together=settings.together,
            context_shift=settings.context_shift,
            tie_margin=settings.tie_margin,
            confusion=settings.confusion,
            careless=careless,
            copies=names[places[copy_source[place]]] if careless == "copy" else None,
        )
    return [annotator for annotator in crowd if annotator is not None]


def _gamma(mean: float, variation: float, size: int, rng: np.random.Generator) -> FloatArray:
    if not variation or not mean:
        return np.full(size, mean)
    shape = 1 / variation**2
    return rng.gamma(shape, mean / shape, size)
