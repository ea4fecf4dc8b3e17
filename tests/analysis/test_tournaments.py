"""Tournament statistics by source, against values computed by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard import Study
from steelyard.analysis.analysis import Analysis
from steelyard.analysis.tournaments import TournamentAnalysis, tournament_analysis

pytestmark = pytest.mark.filterwarnings("ignore::steelyard.errors.SteelyardWarning")

CONFIG = """
title = "t"
question = "Which is better?"
items = "items.csv"
[[stage]]
name = "compare"
protocol = { name = "pairwise" }
design = { name = "tournament", annotators_per_source = 2 }
[[stage]]
name = "label"
protocol = { name = "choice", labels = ["yes", "no"] }
design = { name = "propagation" }
[model]
name = "dominance"
"""
SYSTEMS = ("ref", "goo", "bin")
# One whole tournament of each of four sources, and an abandoned one: (annotator, source, winner or tied, other, tie).
ANSWERS = [
    # s0: ref over goo over bin: dominance 2, 0, -2.
    ("ann", "s0", "ref", "goo", False),
    ("ann", "s0", "goo", "bin", False),
    # s1: a cycle: all three count as equal.
    ("ann", "s1", "ref", "goo", False),
    ("ann", "s1", "goo", "bin", False),
    ("ann", "s1", "bin", "ref", False),
    # s2: ref over goo, which ties with bin: dominance 2, -1, -1.
    ("bob", "s2", "ref", "goo", False),
    ("bob", "s2", "goo", "bin", True),
    # s3: the texts of goo and bin are identical, so one comparison is a whole tournament: goo over ref is 1, -2, 1.
    ("bob", "s3", "goo", "ref", False),
    # s0 by bob: abandoned after one comparison that contradicts ann's.
    ("bob", "s0", "bin", "goo", False),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = ["id,source,system,output,reference"]
    for source in ("s0", "s1", "s2", "s3"):
        for system in SYSTEMS:
            text = f"same {source}" if source == "s3" and system != "ref" else f"{system} {source}"
            lines.append(f"{source}-{system},{source},{system},{text},{f'ref {source}'}")
    (tmp_path / "items.csv").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "study.toml").write_text(CONFIG, encoding="utf-8")
    import_rows = ["annotator,left,right,winner"]
    for annotator, source, one, other, is_tie in ANSWERS:
        winner = "tie" if is_tie else f"{source}-{one}"
        import_rows.append(f"{annotator},{source}-{one},{source}-{other},{winner}")
    (tmp_path / "answers.csv").write_text("\n".join(import_rows), encoding="utf-8")
    from steelyard.study.importing import import_file

    with Study.open(tmp_path) as study:
        import_file(study, tmp_path / "answers.csv", stage="compare")
    return tmp_path


def analysed(folder: Path) -> TournamentAnalysis:
    with Study.open(folder) as study:
        result = tournament_analysis(study)
    assert result is not None
    return result


def test_cycles_are_counted_by_whole_tournament(folder):
    result = analysed(folder)
    cyclic, consistent = result.statistics
    assert cyclic.value == pytest.approx(1 / 4)
    # Eleven distinct items were compared in whole tournaments; three are on the cycle.
    assert consistent.value == pytest.approx(8 / 11)
    assert result.unfinished == 1
    assert result.graphs.select("source", "annotator", "items", "comparisons", "items_in_cycles").rows() == [
        ("s0", "ann", 3, 2, 0),
        ("s1", "ann", 3, 3, 3),
        ("s2", "bob", 3, 2, 0),
        ("s3", "bob", 3, 1, 0),
    ]


def test_dominance_is_that_of_whole_tournaments_and_counts_identical_items(folder):
    dominance = dict(analysed(folder).items.select("item", "dominance").rows())
    expected = {"s0": (2, 0, -2), "s1": (0, 0, 0), "s2": (2, -1, -1), "s3": (-2, 1, 1)}
    assert dominance == {
        f"{source}-{system}": value
        for source, values in expected.items()
        for system, value in zip(SYSTEMS, values, strict=True)
    }


def test_systems_are_averaged_over_sources_and_sum_to_zero(folder):
    systems = analysed(folder).systems
    scores = dict(systems.select("system", "score").rows())
    assert scores == pytest.approx({"ref": 2 / 4, "goo": 0.0, "bin": -2 / 4})
    with Study.open(folder) as study:
        by_group = dict(study.scores(by="group").select("item", "score").rows())
        by_item = dict(study.scores().select("item", "score").rows())
    assert by_group == pytest.approx(scores)
    assert by_item["s0-bin"] == -2
    # Three outputs per source: f is at most 2.
    normalized = dict(systems.select("system", "normalized").rows())
    assert normalized == pytest.approx({system: score / 2 for system, score in scores.items()})


def test_one_computation_serves_reliability_and_tournaments(folder):
    with Study.open(folder) as study:
        analysis = Analysis.of(study)
        table = analysis.reliability_table().filter(stage="compare", statistic="cyclic_graphs")
        assert table["value"].to_list() == pytest.approx([1 / 4])


def test_adequacy_effort_and_harmonized_ranks_are_those_of_the_absolute_stage(folder):
    """References are adequate; every other item that is asked is inadequate, except the cycle's bin."""
    with Study.open(folder) as study:
        # The tournament stage is unfinished, so the absolute stage has no tasks yet; its inferences are made already.
        result = tournament_analysis(study)
    assert result is not None
    labels = {row["item"]: row for row in result.items.iter_rows(named=True)}
    for source in ("s0", "s1", "s2", "s3"):
        assert (labels[f"{source}-ref"]["adequate"], labels[f"{source}-ref"]["how"]) == (True, "reference")
        assert labels[f"{source}-ref"]["inferred"]
    # In s3 both others dominate the reference.
    assert labels["s3-goo"]["how"] == labels["s3-bin"]["how"] == "reference"
    assert [labels[f"s3-{system}"]["harmonized_rank"] for system in SYSTEMS] == [2, 1, 1]
    assert labels["s0-ref"]["harmonized_rank"] is None  # goo and bin have no label yet
    counts = dict(result.effort.select("part", "count").rows())
    # 12 items; tied in s2 (bob) and identical in s3: 2 collapse. s0 has contradicting majority answers: goo, bin tie.
    assert counts["items"] == 12
    assert counts["collapsed: identical or tied"] == 3
    assert counts["of these, by the reference"] == 5
    assert counts["asked"] == 0
