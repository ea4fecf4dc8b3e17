"""Linking of scales: by hand, with planted drift, and the coverage of linked intervals in simulation."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from steelyard import BradleyTerry, CalibratedScale, Comparisons, DataError, Fit, Index, Mean, Ratings, link_scales
from tests.cli.running import run
from tests.sizes import FULL


def fit_of(scores, sd, items=None, *, model="mean", **settings) -> Fit:
    ids = items or [f"i{number}" for number in range(len(scores))]
    sds = sd if isinstance(sd, list) else [sd] * len(scores)
    return Fit(model, settings, pl.DataFrame({"item": ids, "score": [float(s) for s in scores], "sd": sds}))


def test_mean_sigma_is_the_line_that_equates_mean_and_sd():
    result = link_scales({"a": fit_of([0, 10, 20, 30, 40], 1e-6), "b": fit_of([1, 2, 3, 4, 5], 1e-6)})
    [link] = result.links.rows(named=True)
    assert (link["slope"], link["intercept"]) == pytest.approx((10, -10))
    assert (link["anchors"], link["drifted"]) == (5, 0)


def test_errors_of_the_scores_are_taken_out_of_their_variance():
    # Variances 250 and 2.5 of the scores, 0 and 0.25 of the errors: the true ones are 250 and 2.25.
    result = link_scales({"a": fit_of([0, 10, 20, 30, 40], 1e-6), "b": fit_of([1, 2, 3, 4, 5], 0.5)})
    assert result.links["slope"].item() == pytest.approx(np.sqrt(250 / 2.25))


def test_shrinkage_of_a_prior_is_taken_out():
    # Of unbiased scores with error variance 1, a prior N(0, 2²) leaves 4 / 5, with a posterior variance of 4 / 5.
    unbiased = np.array([-4.0, -2, 0, 2, 4])
    shrunk = fit_of((unbiased * 0.8).tolist(), float(np.sqrt(0.8)), model="bradley_terry", prior_sd=2.0)
    [link] = link_scales({"a": fit_of(unbiased.tolist(), 1.0), "b": shrunk}).links.rows(named=True)
    assert (link["slope"], link["intercept"]) == pytest.approx((1, 0), abs=1e-9)


def test_the_linking_error_of_a_shift_is_the_standard_error_of_the_mean_difference():
    differences = np.array([1.0, 2, 3, 4, 5])
    base = np.array([0.0, 10, 20, 30, 40])
    linked = link_scales(
        {"a": fit_of(base.tolist(), 1.0), "b": fit_of((base - differences).tolist(), 1.0)}, method="mean"
    )
    [link] = linked.links.rows(named=True)
    half = 2.7764451 * differences.std(ddof=1) / np.sqrt(5)  # 97.5 % of t with four degrees of freedom
    assert link["intercept"] == pytest.approx(3)
    assert (link["intercept_lower"], link["intercept_upper"]) == pytest.approx((3 - half, 3 + half))
    # A score of b alone: its own error and that of the link.
    items = ["i0", "i1", "i2", "i3", "i4", "new"]
    other = fit_of([*(base - differences).tolist(), 7.0], 1.0, items)
    new = link_scales({"a": fit_of(base.tolist(), 1.0), "b": other}, method="mean").scores.filter(item="new")
    expected = np.sqrt(1.959964**2 + half**2)
    assert (new["score"].item(), new["upper"].item() - 10) == pytest.approx((10, expected))


def test_an_anchor_that_drifted_is_flagged_left_out_and_kept_apart():
    rng = np.random.default_rng(3)
    truth = rng.normal(50, 20, 15)
    a, b = truth + rng.normal(0, 2, 15), (truth - 5) / 2 + rng.normal(0, 1, 15)
    clean = link_scales({"a": fit_of(a.tolist(), 2.0), "b": fit_of(b.tolist(), 1.0)})
    assert not clean.anchors["drifted"].any()
    b[4] += 12
    result = link_scales({"a": fit_of(a.tolist(), 2.0), "b": fit_of(b.tolist(), 1.0)})
    assert result.anchors.filter("drifted")["item"].to_list() == ["i4"]
    assert result.links["slope"].item() == pytest.approx(clean.links["slope"].item(), rel=0.05)
    assert result.scores.filter(item="i4")["studies"].sort().to_list() == ["a", "b"]
    assert result.scores.filter(item="i5")["studies"].to_list() == ["a, b"]
    assert "drifted: i4" in " ".join(result.notes)
    unfiltered = link_scales({"a": fit_of(a.tolist(), 2.0), "b": fit_of(b.tolist(), 1.0)}, keep_drifting=True)
    assert "the link is doubtful" in " ".join(unfiltered.notes)
    assert unfiltered.links["anchors"].item() == 15


def test_too_few_anchors_and_anchors_without_spread_are_refused():
    a, b = fit_of([1, 2, 3, 4], 0.1), fit_of([1, 2, 3, 4], 0.1)
    with pytest.raises(DataError, match=r"b shares 4 scored items .* needs at least 5"):
        link_scales({"a": a, "b": b})
    assert link_scales({"a": a, "b": b}, method="mean").links["anchors"].item() == 4
    with pytest.raises(DataError, match="b shares 2 scored items"):
        link_scales({"a": a, "b": b}, method="mean", anchors=["i0", "i1"])
    with pytest.raises(DataError, match="differ too little"):
        link_scales({"a": fit_of([1, 2, 3, 4, 5], 0.1), "b": fit_of([1, 1.1, 1.2, 1.1, 1], 0.5)})
    with pytest.raises(DataError, match="'x' has no score"):
        link_scales({"a": a, "b": b}, anchors=["x"])


def test_a_study_without_anchors_in_the_first_is_linked_through_another():
    items = [[f"i{number}" for number in range(start, start + 10)] for start in (0, 5, 10)]
    values = [[float(item[1:]) for item in names] for names in items]
    chain = [
        fit_of(values[0], 0.01, items[0]),
        fit_of([2 * v + 1 for v in values[1]], 0.01, items[1]),
        fit_of([v / 4 for v in values[2]], 0.01, items[2]),
    ]
    result = link_scales(dict(zip("abc", chain, strict=True)))
    assert result.links.select("study", "reference").rows() == [("b", "a"), ("c", "b")]
    scores = dict(result.scores.select("item", "score").iter_rows())
    assert [scores[f"i{number}"] for number in range(20)] == pytest.approx(list(range(20)), abs=0.05)
    widths = dict(result.scores.select("item", pl.col("upper") - pl.col("lower")).iter_rows())
    assert widths["i19"] > widths["i0"]


def _rated(rng, truth, slope, intercept) -> Ratings:
    raters, items = np.divmod(np.arange(10 * len(truth)), len(truth))
    values = intercept + slope * (np.array(list(truth.values()))[items] + rng.normal(0, 10, len(items)))
    return Ratings(
        items=Index(list(truth)),
        annotators=Index([f"p{rater}" for rater in range(10)]),
        annotator=raters.astype(np.int32),
        item=items.astype(np.int32),
        value=values,
        scale=(-50.0, 150.0),
    )


def _simulated(rng, model, anchors) -> np.ndarray:
    """Whether linked intervals cover, for the items that only the second study has."""
    truth = {f"i{number}": float(rng.normal(50, 15)) for number in range(60)}
    names = list(truth)
    first, second = names[:35], names[35 - anchors : 60]
    if isinstance(model, BradleyTerry):
        scores = {name: (value - 50) / 15 for name, value in truth.items()}
        fits = {
            "a": model.fit(_compared(rng, {name: scores[name] for name in first}, 1.0)),
            "b": model.fit(_compared(rng, {name: scores[name] for name in second}, 0.7)),
        }
        centre = np.mean([scores[name] for name in first])
        target = {name: float(scores[name] - centre) for name in second}
    else:
        fits = {
            "a": model.fit(_rated(rng, {name: truth[name] for name in first}, 1.0, 0.0)),
            "b": model.fit(_rated(rng, {name: truth[name] for name in second}, 0.6, 30.0)),
        }
        target = truth
    table = link_scales(fits).scores.filter(studies="b")
    true = np.array([target[item] for item in table["item"]])
    return (table["lower"].to_numpy() <= true) & (true <= table["upper"].to_numpy())


def _compared(rng, scores, slope) -> Comparisons:
    values = np.array(list(scores.values()))
    pairs = rng.integers(0, len(values), (40 * len(values), 2))
    left, right = pairs[pairs[:, 0] != pairs[:, 1]].astype(np.int32).T
    wins = rng.random(len(left)) < 1 / (1 + np.exp(-slope * (values[left] - values[right])))
    outcome = np.where(wins, 1, -1).astype(np.int8)
    return Comparisons(items=Index(list(scores)), left=left, right=right, outcome=outcome)


@pytest.mark.filterwarnings("ignore:bradley_terry. never")
@pytest.mark.parametrize("anchors", [pytest.param(8, marks=pytest.mark.full), 15])
@pytest.mark.parametrize(
    "model",
    [Mean(), BradleyTerry(draws=50), pytest.param(CalibratedScale(), marks=pytest.mark.full)],
    ids=lambda model: model.name,
)
def test_linked_intervals_cover_the_true_scores(model, anchors):
    rng = np.random.default_rng(11)
    covers, refusals, studies = [], 0, 200 if FULL else 10
    for _ in range(studies):
        try:
            covers.append(_simulated(rng, model, anchors))
        except DataError:  # Anchors that happen to be alike.
            refusals += 1
    assert refusals <= 0.05 * studies
    # Errors of one study's items share a link, so that the short form tells little more than gross mistakes.
    assert np.concatenate(covers).mean() == pytest.approx(0.95, abs=0.03 if FULL else 0.07)


def test_the_command_prints_scores_links_and_notes(tmp_path):
    rng = np.random.default_rng(5)
    for name, items, slope in (("spring", range(12), 1.0), ("autumn", range(4, 16), 0.5)):
        rows = [f"i{i},p{p},{20 + slope * (4 * i + rng.normal(0, 1)):.2f}" for i in items for p in range(3)]
        (tmp_path / f"{name}.csv").write_text("item,annotator,value\n" + "\n".join(rows) + "\n")
    common = ("link-scales", "spring.csv", "autumn.csv", "--model", "mean", "--scale", "0", "100")
    table = pl.read_csv(run(*common, "--format", "csv", cwd=tmp_path).stdout.encode())
    assert table.height == 16
    assert table["item"][0] == "i15"
    links = pl.read_csv(run(*common, "--format", "csv", "--show", "links", cwd=tmp_path).stdout.encode())
    assert links["slope"].item() == pytest.approx(2, rel=0.1)
    done = run(*common, cwd=tmp_path)
    assert "scores on the scale of spring.csv" in done.stdout
    assert "only 8 anchors" in done.stderr
