"""Recorded ratings of items by people and by judges, as tables."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from steelyard.observations import UNKNOWN, FloatArray, Index, Ratings

SUMMEVAL = "summeval_judges/ratings.csv.gz"
ESA_ANSWERS, ESA_PROXIES = "esa_wmt23_ende/answers.csv.gz", "esa_wmt23_ende/proxies.csv.gz"
ESA_CAMPAIGNS = ("ESA-1", "ESA-2", "ESAAI-1", "ESAAI-2")
CRITERIA = ("coherence", "consistency", "fluency", "relevance")


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """Ratings by people, one column for each rating of an item (NaN where there is none), and judges' scores.

    `annotator` has the code of who gave each rating. `system` is that of each item.
    """

    name: str
    items: tuple[str, ...]
    ratings: FloatArray
    annotator: np.ndarray[Any, Any]
    scale: tuple[float, float]
    judges: dict[str, FloatArray]
    system: np.ndarray[Any, Any]

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.items)

    def chosen(self, is_chosen: np.ndarray[Any, Any]) -> Ratings:
        """Return some of the ratings as observations."""
        item, column = np.nonzero(is_chosen & np.isfinite(self.ratings))
        codes = self.annotator[item, column]
        names = Index([f"a{code}" for code in range(int(self.annotator.max()) + 1)])
        return Ratings(
            items=Index(self.items),
            annotators=names,
            tasks=Index(),
            annotator=codes.astype(np.int32),
            task=np.full(len(item), UNKNOWN, np.int32),
            item=item.astype(np.int32),
            value=self.ratings[item, column],
            scale=self.scale,
        )


def read_summeval(data: Path, criterion: str) -> Recording:
    """Read one criterion of SummEval: 1,600 summaries, three experts, six language models."""
    table = pl.read_csv(data / SUMMEVAL).with_columns(
        (pl.col("document").cast(str) + "/" + pl.col("system")).alias("item")
    )
    wide = table.pivot(on="judge", index=["item", "system"], values=criterion).sort("item")
    kinds = dict(table.select("judge", "judge_kind").unique().iter_rows())
    people = sorted(name for name, kind in kinds.items() if kind == "human")
    judges = sorted(name for name, kind in kinds.items() if kind != "human")
    ratings = wide.select(people).to_numpy().astype(np.float64)
    return Recording(
        f"SummEval {criterion}",
        tuple(wide["item"]),
        ratings,
        np.tile(np.arange(len(people)), (wide.height, 1)),
        (1.0, 5.0),
        {name: wide[name].to_numpy().astype(np.float64) for name in judges},
        wide["system"].to_numpy(),
    )


def read_esa(data: Path) -> Recording:
    """Read four campaigns of WMT 2023 English–German: one score of each translation in each, and six metrics."""
    answers = pl.read_csv(data / ESA_ANSWERS, infer_schema_length=None)
    answers = answers.filter(
        (pl.col("kind") == "item") & pl.col("protocol").is_in(ESA_CAMPAIGNS) & pl.col("score").is_not_null()
    )
    answers = answers.with_columns((pl.col("segment").cast(str) + "/" + pl.col("system")).alias("item"))
    answers = answers.unique(["item", "protocol"], keep="last", maintain_order=True)
    proxies = pl.read_csv(data / ESA_PROXIES, infer_schema_length=None)
    proxies = proxies.with_columns((pl.col("segment").cast(str) + "/" + pl.col("system")).alias("item")).sort("item")
    codes = {name: code for code, name in enumerate(sorted(set(answers["annotator"])))}
    place = {name: row for row, name in enumerate(proxies["item"])}
    ratings = np.full((len(place), len(ESA_CAMPAIGNS)), np.nan)
    annotator = np.zeros((len(place), len(ESA_CAMPAIGNS)), np.int64)
    for item, protocol, who, score in answers.select("item", "protocol", "annotator", "score").iter_rows():
        if item in place:
            column = ESA_CAMPAIGNS.index(protocol)
            ratings[place[item], column], annotator[place[item], column] = score, codes[who]
    names = ("gemba_mqm", "cometkiwi", "metricx_qe", "xcomet_qe", "comet_refA", "bleu_refA")
    judges = {name: proxies[name].cast(pl.Float64, strict=False).to_numpy() for name in names}
    judges["length"] = proxies["chars_target"].cast(pl.Float64).to_numpy()
    items = tuple(proxies["item"])
    return Recording(
        "ESA English–German", items, ratings, annotator, (0.0, 100.0), judges, proxies["system"].to_numpy()
    )
