"""The agreement among WMT10's judges, against the published table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from steelyard.observations import Index, Rankings
from steelyard.reliability import agreement

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"


def wmt10() -> Rankings:
    frame = pl.read_csv(DATA / "wmt10" / "rankings.csv.gz", infer_schema_length=0)
    systems: dict[str, int] = {}
    segments: dict[str, int] = {}
    judges: dict[str, int] = {}
    start, item, rank, task, annotator = [0], [], [], [], []
    for row in frame.iter_rows(named=True):
        for place in range(1, 6):
            if row[f"system{place}rank"] != "-1":
                item.append(systems.setdefault(row[f"system{place}Id"], len(systems)))
                rank.append(int(row[f"system{place}rank"]))
        start.append(len(item))
        segment = f"{row['srclang']} {row['trglang']} {row['srcIndex']}"
        task.append(segments.setdefault(segment, len(segments)))
        annotator.append(judges.setdefault(row["judgeId"], len(judges)))
    return Rankings(
        items=Index(systems),
        tasks=Index(segments),
        annotators=Index(judges),
        task=np.array(task, np.int32),
        annotator=np.array(annotator, np.int32),
        start=np.array(start),
        item=np.array(item, np.int32),
        rank=np.array(rank, np.int32),
    )


@pytest.mark.slow
@pytest.mark.shared_data
@pytest.mark.skipif(not (DATA / "wmt10" / "rankings.csv.gz").exists(), reason="the shared data are absent")
def test_wmt10_gives_the_published_agreement_among_its_judges() -> None:
    statistics = agreement(wmt10())
    assert statistics["observed_agreement"].value == pytest.approx(0.658, abs=5e-4)
    assert statistics["kappa_fixed_chance"].value == pytest.approx(0.487, abs=1e-3)
    assert "11,180 pairs" in statistics["observed_agreement"].note
    assert statistics["intra_annotator_agreement"].value == pytest.approx(0.755, abs=5e-4)
    assert statistics["intra_annotator_kappa"].value == pytest.approx(0.633, abs=5e-4)
    assert "5,750 pairs" in statistics["intra_annotator_agreement"].note
