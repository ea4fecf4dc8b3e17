"""The command, the PDF, the data set to publish, and what notebooks show."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import polars as pl
import pytest

import steelyard
from steelyard import Study
from steelyard.analysis.tables import Estimate
from steelyard.errors import ConfigError, DataError
from steelyard.report import pdf
from steelyard.report.charts import title_of
from steelyard.report.dataset import write_dataset
from steelyard.report.formatting import format_interval
from tests.cli.running import run

pytestmark = pytest.mark.filterwarnings("ignore::steelyard.errors.SteelyardWarning")

TITLE = "Words <b>& more</b> | `code`"


@pytest.fixture
def answered(make_study):
    """A small study in which everybody has answered."""
    folder = make_study('name = "direct"', 'name = "per_item"\njudgments = 4', items=5)
    text = (folder / "study.toml").read_text().replace('title = "Words"', f"title = '{TITLE}'")
    (folder / "study.toml").write_text(text)
    with Study.open(folder) as study:
        for person, name in enumerate(("ann", "bob", "cleo", "dan")):
            while (task := study.ask(name)) is not None:
                study.tell(task, {i: (int(i[1:]) * 17 + person * 5) % 100 for i in task.item_ids}, seconds=4.0)
    return folder


@pytest.mark.slow
def test_the_command_writes_the_page_and_every_file(answered, tmp_path):
    run("report", str(answered), "-o", "r.html", "--assets", "files", cwd=tmp_path)
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "Words &lt;b&gt;&amp; more&lt;/b&gt;" in page
    assert {"scores.csv", "scores.tex", "scores.svg", "scores.png", "methods.txt", "references.bib", "study.toml"} <= {
        path.name for path in (tmp_path / "files").iterdir()
    }
    assert "no folder" in run("report", str(answered), "-o", "none/r.html", cwd=tmp_path, code=1).stderr


def test_html_is_not_written_to_a_file_that_is_called_a_pdf(answered, tmp_path):
    done = run("report", str(answered), "-o", "report.pdf", cwd=tmp_path, code=1)
    assert "--pdf report.pdf" in " ".join(done.stderr.split())
    assert not (tmp_path / "report.pdf").exists()


def test_without_a_chromium_the_message_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match=r"needs Chromium.*print"):
        pdf.print_pdf(tmp_path / "r.html", tmp_path / "r.pdf")


@pytest.mark.browser
@pytest.mark.skipif(pdf.find_chromium() is None, reason="needs a Chromium")
def test_the_pdf_is_a_pdf_with_the_pages_words(tmp_path):
    page = tmp_path / "a page.html"
    page.write_text("<!doctype html><title>x</title><h1>Scores</h1>", encoding="utf-8")
    pdf.print_pdf(page, tmp_path / "r.pdf")
    data = (tmp_path / "r.pdf").read_bytes()
    assert data.startswith(b"%PDF-")
    assert data.rstrip().endswith(b"%%EOF")


@pytest.mark.slow
def test_a_data_set_loads_and_its_card_explains_every_column(answered, tmp_path):
    with Study.open(answered) as study:
        files = write_dataset(study, tmp_path / "hub")
        scores, judgments = study.scores(), study.judgments()
        called = {study.privacy.pseudonym(name) for name in study.annotators.names()}
    assert [path.relative_to(tmp_path / "hub").as_posix() for path in files] == [
        "data/scores.parquet",
        "data/judgments.parquet",
        "data/items.parquet",
        "README.md",
    ]
    card = (tmp_path / "hub" / "README.md").read_text(encoding="utf-8")
    front = card.split("---\n")[1]
    assert json.loads(re.search(r"^pretty_name: (.*)$", front, re.M)[1]) == TITLE
    assert "license: unknown" in front
    assert "<b>" not in card.split("---\n", 2)[2]
    paths = re.findall(r"path: (\S+)", front)
    assert len(paths) == 3
    for path in paths:
        frame = pl.read_parquet(tmp_path / "hub" / path)
        for column in frame.columns:
            row = next(line for line in card.splitlines() if line.startswith(f"| `{column}` |"))
            assert row.split("|")[3].strip(), column
    assert pl.read_parquet(tmp_path / "hub" / "data" / "scores.parquet").equals(scores)
    published = pl.read_parquet(tmp_path / "hub" / "data" / "judgments.parquet")
    assert published.drop("annotator").equals(judgments.drop("annotator", "comment"))
    assert set(published["annotator"]) == called
    assert (
        published["annotator"].n_unique()
        == pl.DataFrame({"a": published["annotator"], "b": judgments["annotator"]}).unique().height
    )


@pytest.mark.slow
def test_a_data_set_does_not_write_over_anything_and_needs_judgments(answered, make_study, tmp_path):
    (tmp_path / "hub").mkdir()
    (tmp_path / "hub" / "mine.txt").write_text("mine")
    assert "not empty" in run("export", str(answered), "--dataset", "hub", cwd=tmp_path, code=1).stderr
    run("export", str(answered), "--dataset", "other", "--real-ids", cwd=tmp_path)
    names = pl.read_parquet(tmp_path / "other" / "data" / "judgments.parquet")["annotator"]
    assert set(names) == {"ann", "bob", "cleo", "dan"}
    with Study.open(make_study(name="empty")) as study, pytest.raises(DataError, match="nothing to publish"):
        write_dataset(study, tmp_path / "third")


@pytest.mark.slow
def test_notebooks_show_studies_and_fits_without_loading_charts(answered):
    script = (
        "import sys, steelyard\n"
        f"study = steelyard.Study.open({str(answered)!r})\n"
        "print(study._repr_html_())\nprint(study.fit()._repr_html_())\n"
        "assert 'altair' not in sys.modules and 'vl_convert' not in sys.modules\n"
        "import steelyard; assert steelyard.plot.scores and 'altair' in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Words &lt;b&gt;&amp; more&lt;/b&gt;" in done.stdout
    assert "<b>" not in done.stdout
    assert "20 answers by 4 annotators on 5 items" in done.stdout
    assert done.stdout.count("<td") == 6 + 5 * 7


def test_long_fits_show_their_ends(answered):
    from steelyard.models.display import html_table

    html = html_table(pl.DataFrame({"item": [f"i{n}" for n in range(25)]}), "t")
    assert ">i4<" in html
    assert ">i20<" in html
    assert ">i5<" not in html
    assert "15 more" in html


@pytest.mark.slow
def test_plots_take_studies_fits_and_tables(answered, tmp_path):
    with Study.open(answered) as study:
        fit = study.fit()
        titles = {title_of(steelyard.plot.scores(given)) for given in (fit, fit.scores, study)}
        assert len(titles) == 1
        assert "Highest" in titles.pop()
        assert "5 items" in title_of(steelyard.plot.histogram(study))
        for draw in (steelyard.plot.annotators, steelyard.plot.bias_and_noise, steelyard.plot.progress):
            assert title_of(draw(study))
        assert title_of(steelyard.plot.reliability(study)).startswith("Split-half")
        with pytest.raises(DataError, match="labels"):
            steelyard.plot.labels(fit)
        with pytest.raises(DataError, match="no interim analysis"):
            steelyard.plot.interim_analyses(study)
        steelyard.plot.save(steelyard.plot.scores(fit), tmp_path / "scores.svg")
    assert (tmp_path / "scores.svg").read_text(encoding="utf-8").startswith("<svg")


@pytest.mark.parametrize(
    ("estimate", "words"),
    [
        (Estimate(0.9449, 0.8953, 0.9714), "0.945 (0.895–0.971)"),
        (Estimate(-0.62, -1.18, -0.09), "-0.6 (-1.2 to -0.1)"),
        (Estimate(0.0, -1e-17, 0.43), "0.00 (0.00–0.43)"),
    ],
)
def test_intervals_have_as_many_places_as_they_deserve(estimate, words):
    assert format_interval(estimate, 2) == words
