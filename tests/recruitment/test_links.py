"""Links from any panel: who is let in, and how they go back."""

from __future__ import annotations

import hashlib
import hmac
import re
import tomllib
from pathlib import Path

import pytest

from steelyard.errors import ConfigError
from steelyard.recruitment.links import LinkRefusedError, ending_for, link_for, link_template, read_arrival
from steelyard.study import Study, parse_config
from steelyard.study.config.tables import Link
from steelyard.study.recruitment_state import Arrival

SECRET = b"a secret that is long enough"
NOW = 1_800_000_000


def arrive(link: Link, **values: str) -> Arrival | None:
    return read_arrival(link, list(values.items()), slug="words", now=NOW, secret=SECRET)


def test_the_names_of_the_parameters_are_the_panels_own():
    link = Link(participant_parameter="rid", study_parameter="project", session_parameter="visit")
    assert arrive(link, rid="p-7", project="s1", visit="v1") == Arrival("p-7", "s1", "v1")
    assert arrive(link, PROLIFIC_PID="p-7") is None
    # Only who comes is needed.
    assert arrive(link, rid="p-7") == Arrival("p-7", "", "")


@pytest.mark.parametrize(
    "participant",
    ["", "{{%PROLIFIC_PID%}}", "a b", "x" * 101, "<script>", "a\nb", "ann/../bob", "%PID%", "é"],
)
def test_ids_that_cannot_be_right_are_refused(participant):
    with pytest.raises(LinkRefusedError):
        arrive(Link(), PROLIFIC_PID=participant)


def test_a_pattern_of_the_panels_own_must_fit_as_a_whole():
    link = Link(pattern="[0-9a-f]{24}")
    assert arrive(link, PROLIFIC_PID="5f" * 12) is not None
    for wrong in ("5f" * 13, "5f" * 11 + "zz"):
        with pytest.raises(LinkRefusedError):
            arrive(link, PROLIFIC_PID=wrong)


def test_a_parameter_given_twice_is_refused():
    with pytest.raises(LinkRefusedError):
        read_arrival(Link(), [("PROLIFIC_PID", "ann"), ("PROLIFIC_PID", "bob")], slug="words", now=NOW)


def test_a_link_of_another_study_is_refused():
    assert arrive(Link(study_id="s1"), PROLIFIC_PID="ann", STUDY_ID="s1") is not None
    for other in ({"STUDY_ID": "s2"}, {}):
        with pytest.raises(LinkRefusedError, match="another study"):
            arrive(Link(study_id="s1"), PROLIFIC_PID="ann", **other)


def test_a_signature_is_an_hmac_that_any_panel_can_make():
    """Computed here as the guide tells it, without our code."""
    text = f"words\nann\ns1\nv1\n{NOW + 60}"
    mark = hmac.new(SECRET, text.encode(), hashlib.sha256).hexdigest()
    signed = {"PROLIFIC_PID": "ann", "STUDY_ID": "s1", "SESSION_ID": "v1", "expires": str(NOW + 60), "signature": mark}
    assert arrive(Link(signed=True), **signed) == Arrival("ann", "s1", "v1")


@pytest.mark.parametrize("change", ["PROLIFIC_PID", "STUDY_ID", "SESSION_ID", "expires", "signature"])
def test_whatever_is_changed_in_a_signed_link_breaks_it(change):
    link = Link(signed=True)
    url = link_for(link, "https://x.org", "words", Arrival("ann", "s1", "v1"), expires=NOW + 60, secret=SECRET)
    values = dict(part.split("=") for part in url.partition("?")[2].split("&"))
    assert arrive(link, **values) == Arrival("ann", "s1", "v1")
    for wrong in ("", values[change][:-1] + ("1" if values[change][-1] != "1" else "2")):
        with pytest.raises(LinkRefusedError) as refused:
            arrive(link, **{**values, change: wrong})
        assert refused.value.forged or (change, wrong) == ("PROLIFIC_PID", "")
    with pytest.raises(LinkRefusedError) as refused:
        read_arrival(link, list(values.items()), slug="others", now=NOW, secret=SECRET)
    assert refused.value.forged


def test_a_signed_link_ends():
    link = Link(signed=True)
    url = link_for(link, "https://x.org", "words", Arrival("ann", "", ""), expires=NOW, secret=SECRET)
    values = dict(part.split("=") for part in url.partition("?")[2].split("&"))
    with pytest.raises(LinkRefusedError, match="too old") as refused:
        arrive(link, **values)
    assert not refused.value.forged


def test_an_unsigned_link_does_not_pass_for_a_signed_one():
    with pytest.raises(LinkRefusedError):
        arrive(Link(signed=True), PROLIFIC_PID="ann")


def test_a_template_holds_the_panels_marks_as_they_are():
    marks = ("{{%PROLIFIC_PID%}}", "{{%STUDY_ID%}}", "{{%SESSION_ID%}}")
    assert link_template(Link(), "https://x.org/", "words", marks) == (
        "https://x.org/s/words/?PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"
    )


STUDY = {"title": "t", "question": "q", "items": "i.csv", "protocol": {"name": "direct"}}


@pytest.mark.parametrize(
    ("way", "said"),
    [
        ("http://panel.example/done", "https://"),
        ("javascript://alert(1)", "https://"),
        ("https://{participant}.example/done", "fixed host"),
        ("https://good.example@evil.example/", "fixed host"),
        ("https:///done", "fixed host"),
        ("https://panel.example/?x={token}", "{token}"),
    ],
)
def test_addresses_to_go_back_to_are_checked_when_the_study_is(way, said):
    with pytest.raises(ConfigError, match=said):
        parse_config({**STUDY, "link": {"completed": way}})


def test_unknown_keys_of_the_tables_are_errors():
    with pytest.raises(ConfigError, match="Did you mean 'participant_parameter'"):
        parse_config({**STUDY, "link": {"particpant_parameter": "x"}})
    with pytest.raises(ConfigError, match="Did you mean 'places'"):
        parse_config({**STUDY, "prolific": {"places": 3, "place": 4}})
    assert parse_config({**STUDY, "prolific": {"places": 3}}).link == Link()
    assert parse_config(STUDY).link is None


def test_the_guides_tables_are_valid():
    guide = (Path(__file__).resolve().parents[2] / "docs" / "guides" / "crowd.md").read_text(encoding="utf-8")
    tables = re.findall(r"^```toml\n(.*?)^```", guide, re.M | re.S)
    assert len(tables) >= 3
    for text in tables:
        parse_config({**STUDY, **tomllib.loads(text)})


# Endings

CODES = {"completed": "DONE1", "screened_out": "OUT1", "failed": "FAIL1"}


def test_only_who_came_by_the_link_goes_back_by_it(make_study):
    with Study.open(make_study(items=2, extra='[annotators]\nmax_tasks = 1\n[link]\ncompleted = "DONE"')) as study:
        study.recruitment.arrive("ann", "s", "v")
        for name in ("ann", "bob"):
            task = study.ask(name)
            study.tell(task, {task.item_ids[0]: 5})
        ending = ending_for(study, "ann", "quota")
        assert (ending.kind, ending.code, ending.url) == ("completed", "DONE", None)
        assert ending_for(study, "bob", "quota") is None


def test_an_address_is_filled_with_the_visit_and_nothing_else(make_study):
    way = "https://panel.example/back?rid={participant}&v={session}"
    with Study.open(make_study(extra=f'[link]\ncompleted = "{way}"\nparticipant_parameter = "rid"')) as study:
        study.recruitment.arrive("a@b", "s", "v:1")
        study.tell(task := study.ask("a@b"), {task.item_ids[0]: 5})
        assert ending_for(study, "a@b", "done").url == "https://panel.example/back?rid=a%40b&v=v%3A1"


def test_how_it_ended_decides_which_code(make_study):
    extra = '[link]\n[quality]\nqualification = { file = "test.csv" }'
    folder = make_study(extra=extra)
    (folder / "test.csv").write_text("items,answer\nw0,90\n", encoding="utf-8")
    with Study.open(folder) as study:
        for name in ("ann", "bob", "cleo", "dora"):
            study.recruitment.arrive(name, "s", name)
        study.annotators.answer_test("ann", 1, {"w0": 5})
        for name in ("bob", "cleo"):
            study.annotators.answer_test(name, 1, {"w0": 90})
            study.tell(task := study.ask(name), {task.item_ids[0]: 5})
        study.annotators.exclude("bob", "always the same")
        reason_codes = {"ann": "excluded", "bob": "excluded", "cleo": "closed", "dora": "done"}
        endings = {name: ending_for(study, name, why, CODES) for name, why in reason_codes.items()}
        assert {name: end.code for name, end in endings.items()} == {
            "ann": "OUT1",
            "bob": "FAIL1",
            "cleo": "DONE1",
            "dora": "OUT1",
        }
        assert endings["cleo"].url == "https://app.prolific.com/submissions/complete?cc=DONE1"
        # Nobody is sent away while there may be more, nor who has left by themselves.
        assert ending_for(study, "cleo", "paused", CODES) is None
        assert ending_for(study, "dora", "waiting", CODES) is None
        study.recruitment.depart("cleo", "returned")
        assert ending_for(study, "cleo", "excluded", CODES) is None
