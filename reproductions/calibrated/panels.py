"""Non-inferior on small panels: few annotators drawn at random from recorded ratings, against simple estimates."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import polars as pl

from reproductions.base import Claim, Experiment, Outcome, Progress
from reproductions.calibrated.methods import PAPER, pearson
from steelyard.errors import SteelyardWarning
from steelyard.formats import read_table
from steelyard.models.calibrated.scale import CalibratedScale
from steelyard.observations import FloatArray, Index, Ratings

SUMMEVAL, PROMPTS = "summeval_judges/ratings.csv.gz", "prompt_quality_judges/ratings.csv.gz"
SQUALITY, AFFECT, SLIDERS = "squality/ratings.csv.gz", "snow2008/affect.csv.gz", "nli/sliders.csv.gz"
WMT = tuple(f"wmt21-da/{pair}.csv.gz" for pair in ("cs-en", "de-en", "ha-en"))
CRITERIA = ("coherence", "consistency", "fluency", "relevance")
EMOTIONS = ("anger", "disgust", "fear", "joy", "sadness", "surprise", "valence")
SIMPLE = ("mean", "debiased mean", "z-scores")
LOSS = 0.05
"""Loss of correlation that must not come without a warning."""


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """Recorded ratings: a frame of annotator, item and value, and their scale."""

    name: str
    frame: pl.DataFrame
    scale: tuple[float, float]


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """Ratings of a few annotators, and the debiased mean of the other annotators' ratings by item."""

    recording: str
    kind: str
    ratings: Ratings
    reference: FloatArray


@dataclass(frozen=True, slots=True)
class Panels(Experiment):
    """Draw panels of annotators, score their ratings, and correlate with the other annotators' mean."""

    name: ClassVar[str] = "calibrated.panels"
    paper: ClassVar[str] = PAPER
    title: ClassVar[str] = "Non-inferior on small panels: gain over simple estimates, annotators drawn at random"
    data: ClassVar[tuple[str, ...]] = (SUMMEVAL, PROMPTS, SQUALITY, AFFECT, SLIDERS, *WMT)

    panels: int = 200
    most_items: int = 120
    draws: int = 400
    seed: int = 0

    def small(self) -> Self:
        """Return a few panels."""
        return replace(self, panels=3, most_items=40, draws=80)

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Score panel after panel."""
        rng = np.random.default_rng(self.seed)
        recordings = list(read_recordings(data))
        rows: list[dict[str, object]] = []
        while len(rows) < self.panels:
            panel = draw_panel(recordings[rng.integers(len(recordings))], self.most_items, rng)
            if panel is not None:
                rows.append(self._row(panel))
                progress(len(rows), self.panels)
        table = pl.DataFrame(rows)
        return Outcome(
            tuple(self._claims(table)),
            table,
            None,
            (
                "In crossed panels, two to eight annotators rated the same items. In sparse panels, each item has two "
                "to eight ratings, drawn at random. Panels have at most 120 items. The reference is the debiased mean "
                "of all other annotators.",
                "The ratings of WMT 2021 are of segments, and those of NLI are sliders; the other data sets have "
                "rating scales or sliders.",
            ),
        )

    def _row(self, panel: Panel) -> dict[str, object]:
        simple = simple_estimates(panel.ratings)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fit = CalibratedScale(draws=self.draws).fit(panel.ratings)
        score = dict(fit.scores.select("item", "score").iter_rows())
        ours = np.array([np.nan if score[item] is None else score[item] for item in panel.ratings.items.ids])
        return {
            "recording": panel.recording,
            "kind": panel.kind,
            "annotators": len(panel.ratings.annotators),
            "judgments": len(panel.ratings),
            **{name: pearson(estimate, panel.reference) for name, estimate in simple.items()},
            "calibrated": pearson(ours, panel.reference),
            "warned": any(issubclass(each.category, SteelyardWarning) for each in caught),
        }

    def _claims(self, table: pl.DataFrame) -> Iterator[Claim]:
        for kind in ("crossed", "sparse"):
            part = table.filter(pl.col("kind") == kind)
            for name in SIMPLE:
                gain = (part["calibrated"] - part[name]).to_numpy()
                if len(gain):
                    error = 1.96 * float(gain.std()) / np.sqrt(len(gain))
                    mean = float(gain.mean())
                    yield Claim(f"{kind}: mean gain over the {name}", mean, mean - error, mean + error)
        loss = (table["mean"] - table["calibrated"]).to_numpy()
        quiet = ~table["warned"].to_numpy()
        yield Claim(f"panels that lose more than {LOSS} against the mean", 100 * float((loss > LOSS).mean()), unit="%")
        yield Claim("of these, without a warning", 100 * float(((loss > LOSS) & quiet).mean()), unit="%")
        yield Claim("largest loss against the mean", float(loss.max()))
        yield Claim("panels with a warning", 100 * float((~quiet).mean()), unit="%")
        for name in SIMPLE[1:]:
            other = (table["mean"] - table[name]).to_numpy()
            yield Claim(f"{name}: panels that lose more than {LOSS}", 100 * float((other > LOSS).mean()), unit="%")


def read_recordings(data: Path) -> Iterator[Recording]:
    """Read all recordings of ratings with named annotators."""
    frame = read_table(data / SUMMEVAL).with_columns(item=pl.concat_str("document", "system", separator="|"))
    for name in CRITERIA:
        yield _recording(f"SummEval, {name}", frame, "judge", name, (1, 5))
    yield _recording("prompt quality", read_table(data / PROMPTS), "judge", "value", (1, 5))
    frame = read_table(data / SQUALITY).with_columns(item=pl.concat_str("story", "question", "system", separator="|"))
    for name in ("correctness", "selection", "overall"):
        yield _recording(f"SQuALITY, {name}", frame, "annotator", name, (0, 100))
    frame = read_table(data / AFFECT)
    for name in EMOTIONS:
        chosen = frame.filter(pl.col("emotion") == name)
        yield _recording(f"affect, {name}", chosen, "annotator", "value", (-100 if name == "valence" else 0, 100))
    frame = read_table(data / SLIDERS)
    yield _recording("NLI", frame.filter(pl.col("na") == "0"), "annotator", "value", (0, 100))
    for file in WMT:
        frame = read_table(data / file).filter(pl.col("type") == "SYSTEM")
        frame = frame.with_columns(item=pl.concat_str("system", "segment", separator="|"))
        yield _recording(f"WMT 2021 {file[9:14]}", frame, "annotator", "score_raw", (0, 100))


def _recording(name: str, frame: pl.DataFrame, annotator: str, value: str, scale: tuple[float, float]) -> Recording:
    columns = [pl.col(annotator).alias("annotator"), pl.col("item"), pl.col(value).cast(pl.Float64).alias("value")]
    return Recording(name, frame.select(columns).drop_nulls(), scale)


def draw_panel(recording: Recording, most_items: int, rng: np.random.Generator) -> Panel | None:
    """Draw some annotators (crossed) or some ratings of every item (sparse); None if too little is left to compare."""
    size = int(rng.integers(2, 9))
    frame = recording.frame.sample(fraction=1.0, shuffle=True, seed=int(rng.integers(2**31)))
    by_item = frame.group_by("item").agg(pl.col("annotator").n_unique().alias("n"))
    per_annotator = frame.height / frame["annotator"].n_unique()
    kind = "crossed" if per_annotator > 0.3 * by_item.height else "sparse"
    if kind == "sparse":
        by_item = by_item.filter(pl.col("n") > size)
    items = by_item["item"].sort().to_numpy()
    chosen = rng.permutation(items)[:most_items].tolist()
    frame = frame.filter(pl.col("item").is_in(chosen))
    if kind == "crossed":
        everybody = frame["annotator"].unique().sort().to_numpy()
        annotators = rng.permutation(everybody)[: min(size, len(everybody) - 1)].tolist()
        is_drawn = frame["annotator"].is_in(annotators)
    else:
        is_drawn = frame.select(pl.int_range(pl.len()).over("item") < size).to_series()
    few, others = _ratings(frame.filter(is_drawn), recording.scale), _ratings(frame.filter(~is_drawn), recording.scale)
    if len(few.items) < 20 or len(few.annotators) < 2:
        return None
    reference = dict(zip(others.items.ids, simple_estimates(others)["debiased mean"].tolist(), strict=True))
    by_code = np.array([reference.get(item, np.nan) for item in few.items.ids])
    return Panel(recording.name, kind, few, by_code) if np.isfinite(by_code).sum() >= 20 else None


def _ratings(frame: pl.DataFrame, scale: tuple[float, float]) -> Ratings:
    (items, item), (annotators, annotator) = (
        np.unique(frame[name].to_numpy().astype(str), return_inverse=True) for name in ("item", "annotator")
    )
    return Ratings(
        items=Index(items.tolist()),
        annotators=Index(annotators.tolist()),
        annotator=annotator.astype(np.int32),
        item=item.astype(np.int32),
        value=frame["value"].to_numpy(),
        scale=scale,
    )


def simple_estimates(ratings: Ratings) -> dict[str, FloatArray]:
    """Return the mean, the mean less annotators' deviations (pooled by one rating), and the mean z-score by item."""
    value, item, who = ratings.unit_value, ratings.item, ratings.annotator
    count, rows = np.bincount(item, minlength=len(ratings.items)), np.bincount(who, minlength=len(ratings.annotators))

    def mean_of(values: FloatArray) -> FloatArray:
        return np.bincount(item, values, minlength=len(count)) / np.where(count > 0, count, np.nan)

    location = mean_of(value)
    estimates = {SIMPLE[0]: location}
    for _ in range(30):
        bias = np.bincount(who, value - location[item], minlength=len(rows)) / (rows + 1)
        location = mean_of(value - bias[who] + bias.mean())
    estimates[SIMPLE[1]] = location
    mean = np.bincount(who, value, minlength=len(rows)) / np.maximum(rows, 1)
    square = np.bincount(who, (value - mean[who]) ** 2, minlength=len(rows))
    sd = np.sqrt(square / np.maximum(rows - 1, 1))
    estimates[SIMPLE[2]] = mean_of((value - mean[who]) / np.maximum(sd[who], 1e-6))
    return estimates
