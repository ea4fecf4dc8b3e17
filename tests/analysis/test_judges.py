"""Judges of a study: prediction-powered systems, covariates from study.toml, and the report on judges."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard import Study
from steelyard.analysis.analysis import Analysis
from steelyard.analysis.judge_report import judge_reports, judge_table
from steelyard.analysis.powered_systems import expected_savings, powered_systems
from steelyard.errors import ConfigError, DataError
from steelyard.judges import FunctionJudge, QuestionPlan, plan_questions, run_judge
from steelyard.report.builder import build_report
from steelyard.report.sections import summary
from tests.cli.running import run

STUDY = """title = "MT"
question = "How good?"
items = "items.csv"
[protocol]
name = "{protocol}"
[design]
name = "{design}"
{extra}
"""


def quality(item) -> float:
    return float(item.metadata["truth"]) if item.metadata else 0.0


@pytest.fixture
def folder(tmp_path):
    """Two systems with sixty outputs each; the true quality is a column that annotators never see."""
    rng = np.random.default_rng(0)
    rows = []
    for n in range(120):
        truth = rng.normal(55 if n % 2 else 45, 10)
        rows.append(
            f"o{n:03},{'x' * int(rng.integers(5, 50))} {n},{'AB'[n % 2]},{truth:.2f},{truth + rng.normal(0, 4):.2f}"
        )
    path = tmp_path / "mt"
    path.mkdir()
    (path / "items.csv").write_text("id,text,system,truth,metric\n" + "\n".join(rows) + "\n")
    return path


def write(folder, extra="judgments = 2", protocol="direct", design="per_item"):
    (folder / "study.toml").write_text(STUDY.format(protocol=protocol, design=design, extra=extra))
    return Study.open(folder)


def people_judge(study, share=0.4, seed=1):
    """Three people rate a random sample of the items: the truth with noise."""
    rng = np.random.default_rng(seed)
    chosen = set(rng.permutation([item.id for item in study.items]).tolist()[: int(share * len(study.items))])
    items = {item.id: item for item in study.items}
    answers = [
        (name, one, float(np.clip(quality(items[one]) + rng.normal(0, 8), 0, 100)))
        for name in ("ann", "bob", "cy")
        for one in sorted(chosen)
    ]
    from steelyard.study.study import ImportedAnswer

    study.import_answers(0, [ImportedAnswer(f"{n}-{i}", n, (i,), {i: v}) for n, i, v in answers])


def model_judges(study, name="gpt", sign=1.0, noise=4.0, repeats=1, refused=()):
    rng = np.random.default_rng(2)

    def judge(items, protocol):
        if items[0].id in refused:
            raise ValueError("refused")
        return float(np.clip(50 + sign * (quality(items[0]) - 50) + rng.normal(0, noise), 0, 100))

    questions = plan_questions(study, QuestionPlan(repeats=repeats))
    return run_judge(study, FunctionJudge(judge), questions, name=name, concurrency=1)


def test_systems_get_prediction_powered_means_that_are_narrower_than_people_s(folder):
    with write(folder) as study:
        people_judge(study)
        model_judges(study)
        result = powered_systems(study, "gpt")
        table = {row["system"]: row for row in result.table.iter_rows(named=True)}
        truth = {name: np.mean([quality(i) for i in study.items if i.group == name]) for name in "AB"}
        for name, row in table.items():
            assert row["lower"] < truth[name] < row["upper"]
            assert row["upper"] - row["lower"] < 0.9 * (row["people_upper"] - row["people_lower"])
            assert (row["items"], row["saving"] > 0.2) == (60, True)
        # The column `metric` of the items can be the judge as well.
        assert powered_systems(study, "metric").table["saving"].min() > 0.2
        savings = expected_savings(study, "gpt")
        assert savings["saving"].is_sorted(descending=True)


def test_samples_that_are_not_random_are_refused_with_the_reason(folder):
    with write(folder) as study:
        model_judges(study)
        with pytest.raises(DataError, match="people have not judged"):
            powered_systems(study, "gpt")
        from steelyard.study.study import ImportedAnswer

        by_quality = sorted(study.items, key=quality)
        best = [item for name in "AB" for item in [one for one in by_quality if one.group == name][-20:]]
        study.import_answers(0, [ImportedAnswer(i.id, "ann", (i.id,), {i.id: 50}) for i in best])
        with pytest.raises(DataError, match="not a random sample"):
            powered_systems(study, "gpt")
        with pytest.raises(ConfigError, match="no model and no column"):
            powered_systems(study, "gtp")


def test_adaptive_designs_are_refused_without_logged_probabilities(folder):
    with write(folder, "judgments = 2", design="adaptive") as study:
        people_judge(study)
        model_judges(study)
        with pytest.raises(DataError, match="chose the items by earlier answers"):
            powered_systems(study, "gpt")


def test_a_judge_that_lacks_items_is_refused(folder):
    with write(folder) as study:
        people_judge(study)
        rng = np.random.default_rng(2)
        judge = FunctionJudge(lambda items, protocol: float(rng.random()), "some")
        run_judge(study, judge, plan_questions(study, QuestionPlan(limit=50)))
        with pytest.raises(DataError, match="no score for"):
            powered_systems(study, "some")


def test_a_few_refusals_of_a_judge_are_replaced_by_its_mean_and_noted(folder):
    with write(folder) as study:
        people_judge(study)
        result = model_judges(study, refused={"o003"})
        assert [failure.kind for failure in result.failures] == ["function"]
        powered = powered_systems(study, "gpt")
        assert "1 items without a score" in powered.notes[-1]
        assert powered.table["saving"].min() > 0.2


@pytest.mark.slow
def test_covariates_in_study_toml_inform_the_scores(folder):
    with write(folder, 'judgments = 2\n[model]\nname = "calibrated_scale"\ndraws = 100') as study:
        people_judge(study, share=0.9)
        model_judges(study)
        alone = study.scores()
    with write(
        folder,
        'judgments = 2\n[model]\nname = "calibrated_scale"\ndraws = 100\n[judges]\ncovariates = ["gpt", "metric"]',
    ) as study:
        fit = study.fit()
        truth = {item.id: quality(item) for item in study.items}
    assert any("gpt, metric explain" in note for note in fit.notes)
    errors = [
        np.mean(
            [abs(score - truth[item]) for item, score in table.drop_nulls("score").select("item", "score").iter_rows()]
        )
        for table in (fit.scores, alone)
    ]
    assert errors[0] < errors[1]


def test_covariates_need_a_model_that_takes_them(folder):
    with pytest.raises(ConfigError, match="does not use covariates"):
        write(folder, 'judgments = 2\n[model]\nname = "mean"\n[judges]\ncovariates = ["metric"]')


@pytest.mark.slow
def test_the_report_compares_judges_with_people(folder):
    with write(folder) as study:
        people_judge(study)
        model_judges(study, "good", noise=4, repeats=2)
        model_judges(study, "reversed", sign=-1)
        reports = {report.judge: report for report in judge_reports(Analysis.of(study))}
        good, bad = reports["good"], reports["reversed"]
        assert good.agreement.value > good.people_agreement.value > 0.3
        assert bad.agreement.value < -0.3
        assert good.alternative.passed
        assert not bad.alternative.passed
        assert good.repeats > 0
        assert abs(good.length_bias.value) < 0.35
        assert good.calibration["people"].to_list()[0] < good.calibration["people"].to_list()[-1]
        assert bad.disagreements.height == 10
        assert set(good.subgroups["subgroup"]) == {"A", "B"}
        assert judge_table(list(reports.values())).height == 2
        document = build_report(study)
        assert document.table("judges").frame.height == 2
        assert document.table("people-and-models").frame.height == 3


def test_flips_and_position_bias_of_a_judge_who_always_takes_the_first(make_study):
    with Study.open(make_study('name = "pairwise"', items=6)) as study:
        for name in ("ann", "bob"):
            for _ in range(8):
                task = study.ask(name)
                if task is not None:
                    study.tell(task, {"winner": min(task.item_ids)})
        first = FunctionJudge(lambda items, protocol: {"winner": items[0].id}, "first")
        run_judge(study, first, plan_questions(study, QuestionPlan()))
        fair = FunctionJudge(lambda items, protocol: {"winner": min(item.id for item in items)}, "fair")
        run_judge(study, fair, plan_questions(study, QuestionPlan()))
        reports = {report.judge: report for report in judge_reports(Analysis.of(study))}
        assert (reports["first"].first_share.value, reports["first"].flips.value) == (1, 1)
        assert (reports["fair"].first_share.value, reports["fair"].flips.value) == (0.5, 0)
        assert reports["fair"].agreement.value == 1


def run_command(*arguments, cwd):
    done = run(*arguments, cwd=cwd)
    return done.stdout + done.stderr


def test_the_commands(folder, tmp_path):
    with write(folder) as study:
        people_judge(study)
    (tmp_path / "gpt.csv").write_text("item,value\n" + "\n".join(f"o{n:03},{30 + n % 50}" for n in range(120)) + "\n")
    done = run_command("judges", "import", "mt", "gpt.csv", "--name", "gpt", cwd=tmp_path)
    assert "120 judgments by models imported" in done
    assert "120 judgments by models" in " ".join(run_command("status", "mt", cwd=tmp_path).split())
    assert "gpt" in run_command("judges", "list", "mt", cwd=tmp_path)
    assert "agreement with a person" in run_command("judges", "report", "mt", cwd=tmp_path)
    assert "saving" in run_command("judges", "systems", "mt", "--judge", "metric", cwd=tmp_path)
    assert "people_alone" in run_command("judges", "systems", "mt", "--judge", "metric", "--expected", cwd=tmp_path)
    dry = run_command("judges", "run", "mt", "--model", "m", "--input-price", "1", "--dry-run", cwd=tmp_path)
    assert "120 questions" in dry
    assert "Nothing was sent" in dry


@pytest.mark.parametrize(
    ("judges", "words"),
    [
        ("", "computed from people's judgments only; 120 judgments by models are compared with them"),
        ("[judges]\ncount = true", "120 of the 264 judgments in the scores (45 %) are by models."),
        (
            '[judges]\ncovariates = ["gpt"]\n[model]\nname = "calibrated_scale"\ndraws = 40',
            "based on 144 judgments by people, with the scores of gpt as a prior.",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::steelyard.errors.ConvergenceWarning")
def test_the_overview_says_what_rests_on_models_and_how_well_they_agree(folder, judges, words):
    with write(folder, f"judgments = 2\n{judges}") as study:
        people_judge(study)
        assert Analysis.of(study).people_and_models == "" or "as a prior" in words
        model_judges(study)
        analysis = Analysis.of(study)
        assert words in analysis.people_and_models
        by_who = {row.between: row.statistic.value for row in analysis.agreement_by_kind}
        assert (
            f"Agreement of a person and a model: {by_who['a person and a model']:.2f} (two people: "
            f"{by_who['two people']:.2f})." in analysis.people_and_models
        )
        facts = summary.section(analysis).blocks[0].frame
        values = dict(facts.select("what", "value").iter_rows())
        assert values["agreement of a person and a model"] == by_who["a person and a model"]
        assert words in dict(facts.select("what", "text").iter_rows())["people and models"]
