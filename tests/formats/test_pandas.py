"""Results as pandas frames."""

from __future__ import annotations

import pandas as pd

import steelyard

RATINGS = [
    {"annotator": name, "item": f"{source}-{system}", "system": system, "source": source, "value": value + shift}
    for shift, name in enumerate(("ann", "bob", "cleo"))
    for source in ("s1", "s2", "s3", "s4")
    for system, value in (("alpha", 70), ("beta", 40))
]


def test_scores_are_the_same_in_pandas():
    ratings = steelyard.read_judgments(
        [{k: r[k] for k in ("annotator", "item", "value")} for r in RATINGS], scale=(0, 100)
    )
    fit = steelyard.Mean().fit(ratings.observations)
    frame = fit.to_pandas()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == fit.scores.columns
    assert frame["item"].tolist() == fit.scores["item"].to_list()
    # Mean of 70, 71 and 72.
    assert frame.set_index("item").loc["s1-alpha", "score"] == 71
    assert frame["judgments"].dtype.kind == "i"


def test_systems_and_statistics_have_pandas_frames():
    systems = steelyard.compare_systems(pd.DataFrame(RATINGS)).to_pandas()
    assert systems["system"].tolist() == ["alpha", "beta"]
    ratings = steelyard.read_judgments(
        [{k: r[k] for k in ("annotator", "item", "value")} for r in RATINGS], scale=(0, 100)
    )
    statistics = steelyard.agreement(ratings.observations).to_pandas()
    assert "alpha_interval" in statistics["statistic"].tolist()
