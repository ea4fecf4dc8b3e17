"""The tables of study.toml, key by key; the reference page is generated from them."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator

from steelyard.quality.pay import MAX_AMOUNT, NAMES, Bonus, Rates

CONFIG_VERSION = 1


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class ItemsSource(_Table):
    """Where the items are, when their columns need explaining."""

    file: Annotated[str, Field(min_length=1, description="the items file, relative to the study's folder")]
    columns: Annotated[dict[str, str], Field(description="our column = theirs, e.g. { text = 'headline' }")] = {}
    ignore: Annotated[list[str], Field(description="columns to leave out")] = []


class People(_Table):
    """Who judges, and how they work."""

    tasks: Annotated[
        int | None, Field(ge=1, strict=True, description="most tasks one annotator gets; unlimited if absent")
    ] = None
    lease_minutes: Annotated[
        float,
        Field(
            gt=0,
            le=60 * 24 * 365,
            strict=True,
            description="how long a task is kept for an annotator before others may get it",
        ),
    ] = 30
    open: Annotated[
        bool, Field(description="whether anybody with the study's address may join; otherwise only by invitation")
    ] = True
    consent: Annotated[
        str | None, Field(description="what annotators agree to before they begin: Markdown, or the name of a .md file")
    ] = None
    instructions: Annotated[
        str | None, Field(description="how to judge, with an example: Markdown, or the name of a .md file")
    ] = None
    training: Annotated[
        str | None, Field(description="file of practice questions with answers, shown before the first task")
    ] = None
    contact: Annotated[str | None, Field(description="whom annotators may write to, as they should read it")] = None
    revise: Annotated[
        int, Field(ge=0, le=1000, strict=True, description="how many of their last answers annotators may change")
    ] = 20
    language: Annotated[
        str | None, Field(description="language of the page (en, es, de, zh, ar); the browser's if absent")
    ] = None


class Page(_Table):
    """How the page that people judge on shows things."""

    content: Annotated[
        Literal["text", "markdown", "html"], Field(description="what the items' texts are; HTML is sanitised")
    ] = "text"
    show_value: Annotated[bool, Field(description="whether a slider shows its number")] = True
    sort_live: Annotated[bool, Field(description="whether scored_ranking sorts its sliders as they are moved")] = False
    prefetch: Annotated[
        int, Field(ge=1, le=50, strict=True, description="how many tasks are fetched ahead on a good connection")
    ] = 1
    media: Annotated[
        str, Field(min_length=1, description="folder with images, audio and video, in the study's folder")
    ] = "media"


class Pay(_Table):
    """What the work costs."""

    per_task: Annotated[float, Field(ge=0, le=MAX_AMOUNT, description="paid for each answered task")] = 0.0
    per_visit: Annotated[
        float, Field(ge=0, le=MAX_AMOUNT, description="paid once to everybody who answers anything")
    ] = 0.0
    per_hour: Annotated[float, Field(ge=0, le=MAX_AMOUNT, description="paid for each hour of active time")] = 0.0
    bonus: Annotated[
        str | None,
        Field(
            description="paid on top to each annotator who is not excluded: a formula of "
            + ", ".join(NAMES)
            + "; e.g. '0.01 * tasks' or '0.5 if accuracy >= 0.9 and tasks >= 20 else 0'"
        ),
    ] = None
    fee: Annotated[float, Field(ge=0, le=100, description="the platform's share on top: 0.33 for 33 %")] = 0.0
    currency: Annotated[str, Field(min_length=1, max_length=10, description="its sign or code")] = "$"

    @property
    def rates(self) -> Rates:
        """What is paid before bonuses."""
        return Rates(self.per_task, self.per_visit, self.per_hour, self.fee)

    @property
    def formula(self) -> Bonus | None:
        """The bonus, ready to be worked out."""
        return None if self.bonus is None else Bonus.parse(self.bonus)

    @property
    def nothing(self) -> bool:
        """Whether the study does not say what is paid."""
        return not self.rates.any and self.bonus is None


class Checks(_Table):
    """Questions with known answers, mixed in among the others."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    file: Annotated[str, Field(min_length=1, description="the questions, one a row: items, answer (or best, worst)")]
    rate: Annotated[float, Field(gt=0, lt=1, description="share of an annotator's tasks that are checks")] = 0.05
    pass_: Annotated[
        float, Field(gt=0, lt=1, alias="pass", description="accuracy below which an annotator is excluded")
    ] = 0.7
    rule: Annotated[
        Literal["posterior", "plain"],
        Field(description="posterior: excluded when that is `confidence` sure; plain: as soon as the share is below"),
    ] = "posterior"
    confidence: Annotated[float, Field(gt=0.5, lt=1, description="how sure the posterior rule must be")] = 0.95
    at_least: Annotated[int, Field(ge=1, strict=True, description="checks before anybody is excluded")] = 5
    loud: Annotated[bool, Field(description="whether annotators are told when they got one wrong")] = False


class Qualification(_Table):
    """A test before the first task."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    file: Annotated[str, Field(min_length=1, description="the questions, as for checks")]
    pass_: Annotated[float, Field(gt=0, le=1, alias="pass", description="share of right answers needed")] = 0.8


class Rules(_Table):
    """Signals that exclude an annotator by themselves; all are shown, none acts unless it is set here."""

    too_fast: Annotated[
        float | None,
        Field(gt=0, lt=1, description="exclude when this share of answers is faster than the text is read"),
    ] = None
    constant: Annotated[
        float | None, Field(gt=0, le=1, description="exclude when this share of the answers is one and the same")
    ] = None
    one_sided: Annotated[
        bool, Field(description="exclude who chooses one place far more often than chance, and than the others")
    ] = False
    disagreement: Annotated[
        bool, Field(description="exclude whose agreement with the others is surely far below everybody else's")
    ] = False


class Quality(_Table):
    """How the answers' quality is watched."""

    checks: Annotated[Checks | None, Field(description="questions with known answers, mixed in")] = None
    qualification: Annotated[Qualification | None, Field(description="a test before the first task")] = None
    repeats: Annotated[
        float, Field(ge=0, lt=1, description="share of tasks that are asked of the same annotator again")
    ] = 0.0
    repeat_after: Annotated[
        int, Field(ge=1, strict=True, description="tasks between a task and its repeat, at least")
    ] = 10
    overlap: Annotated[
        float, Field(ge=0, lt=1, description="share of tasks that everybody gets, to see how far people agree")
    ] = 0.0
    rules: Annotated[Rules, Field(description="signals that exclude by themselves")] = Rules()


class Stop(_Table):
    """When to stop before everything planned has been asked."""

    measure: Annotated[
        Literal["split_half", "interval_width", "top_k"],
        Field(description="split-half reliability, mean width of the intervals, or whether the top k are apart"),
    ]
    target: Annotated[
        float, Field(gt=0, description="the reliability or width to reach, or k for top_k; in the scores' units")
    ]
    spearman_brown: Annotated[
        bool,
        Field(description="whether split_half is stepped up to all judgments before it is held against the target"),
    ] = False
    looks: Annotated[
        int, Field(ge=1, le=100, strict=True, description="how many times to look, evenly over what is planned")
    ] = 10
    alpha: Annotated[
        float, Field(gt=0, lt=0.5, description="how often the study may stop too soon, all looks together")
    ] = 0.05


_PARAMETER = r"^[A-Za-z][A-Za-z0-9_.-]{0,63}$"
_LOCAL = {"localhost", "127.0.0.1", "::1"}


def is_address(ending: str) -> bool:
    """Whether a way back is an address to go to, rather than a code to show."""
    return "://" in ending


class Link(_Table):
    """How people come from a panel, and how they go back."""

    participant: Annotated[
        str, Field(pattern=_PARAMETER, description="name of the URL parameter that says who comes")
    ] = "PROLIFIC_PID"
    study: Annotated[str, Field(pattern=_PARAMETER, description="of the one with the panel's id of the study")] = (
        "STUDY_ID"
    )
    session: Annotated[str, Field(pattern=_PARAMETER, description="of the one with the panel's id of the visit")] = (
        "SESSION_ID"
    )
    study_id: Annotated[
        str | None,
        Field(min_length=1, description="the only value of the study parameter that is let in; any if absent"),
    ] = None
    pattern: Annotated[str, Field(description="regular expression that a participant's id must fit as a whole")] = (
        "[A-Za-z0-9_.@-]{1,100}"
    )
    signed: Annotated[
        bool, Field(description="whether links must be signed, with the secret in STEELYARD_LINK_SECRET")
    ] = False
    completed: Annotated[
        str | None, Field(min_length=1, max_length=1000, description="shown at the end: a code, or an https address")
    ] = None
    screened_out: Annotated[
        str | None,
        Field(
            min_length=1, max_length=1000, description="the same for who fails the test, or finds nothing left to do"
        ),
    ] = None
    failed: Annotated[
        str | None, Field(min_length=1, max_length=1000, description="the same for who is excluded, e.g. by the checks")
    ] = None

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, given: str) -> str:
        try:
            re.compile(given)
        except re.error as error:
            raise ValueError(f"this is not a regular expression: {error}") from None
        return given

    @field_validator("completed", "screened_out", "failed")
    @classmethod
    def _leads_somewhere_safe(cls, given: str | None) -> str | None:
        if given is None or not is_address(given):
            return given
        parts = urlsplit(given)
        if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOCAL):
            raise ValueError("an address to go back to must begin with https://")
        if not parts.hostname or "{" in parts.netloc or parts.username is not None:
            raise ValueError("an address to go back to needs a fixed host; {participant} may stand after it")
        unknown = set(re.findall(r"{(.*?)}", given)) - {"participant", "study", "session"}
        if unknown:
            raise ValueError(f"'{{{min(unknown)}}}' is not known; use {{participant}}, {{study}} or {{session}}")
        return given


class Prolific(_Table):
    """How the study is put to people on Prolific."""

    places: Annotated[int, Field(ge=1, le=20_000, strict=True, description="how many people are to take part")]
    reward: Annotated[
        float | None,
        Field(gt=0, le=MAX_AMOUNT, description="paid to each, in your account's currency; from [pay] if absent"),
    ] = None
    minutes: Annotated[
        float | None, Field(gt=0, le=600, description="how long it takes; computed from the study if absent")
    ] = None
    url: Annotated[
        str | None, Field(min_length=1, description="where the study is served, e.g. https://judge.example.org")
    ] = None
    name: Annotated[
        str | None, Field(min_length=1, description="title that participants see; the study's if absent")
    ] = None
    description: Annotated[
        str | None, Field(min_length=1, description="what participants read first; the study's question if absent")
    ] = None
    countries: Annotated[list[str], Field(description="countries of residence, as Prolific calls them")] = []
    languages: Annotated[list[str], Field(description="fluent languages, as Prolific calls them")] = []
    approval_rate: Annotated[
        int | None, Field(ge=0, le=100, strict=True, description="lowest approval rate let in, in per cent")
    ] = None
    approved: Annotated[
        int | None, Field(ge=0, le=100_000, strict=True, description="fewest approved submissions let in")
    ] = None
    devices: Annotated[
        list[Literal["desktop", "tablet", "mobile"]], Field(min_length=1, description="devices that may be used")
    ] = ["desktop", "tablet", "mobile"]
    screen_out_reward: Annotated[
        float | None,
        Field(gt=0, le=MAX_AMOUNT, description="paid to who is screened out; they are asked to return if absent"),
    ] = None
    screen_out_places: Annotated[
        int, Field(ge=1, strict=True, description="how many may be paid for being screened out, at most")
    ] = 20
    project: Annotated[
        str | None, Field(min_length=1, description="id of the Prolific project; your default one if absent")
    ] = None


class StageTable(_Table):
    """One stage: a protocol with its design."""

    name: Annotated[str | None, Field(description="what to call the stage; its protocol's name if absent")] = None
    protocol: Annotated[dict[str, Any], Field(description="as [protocol]")]
    design: Annotated[dict[str, Any], Field(description="as [design]")] = {}
    share: Annotated[
        float | None, Field(gt=0, le=1, description="share of the tasks, when stages are mixed rather than in sequence")
    ] = None


class StudyTable(_Table):
    """The whole of study.toml."""

    version: Annotated[int, Field(ge=1, strict=True, description="version of this file's format")] = CONFIG_VERSION
    title: Annotated[str, Field(min_length=1, description="what the study is called")]
    question: Annotated[str, Field(min_length=1, description="what annotators are asked")]
    items: Annotated[str | ItemsSource, Field(description="the items file, or a table with file, columns, ignore")]
    database: Annotated[
        str | None, Field(description="where judgments are kept; study.db in the study's folder if absent")
    ] = None
    name: Annotated[
        str | None, Field(description="the study's name; needed in a database that several studies share")
    ] = None
    seed: Annotated[int, Field(ge=0, strict=True, description="seed of every random choice of the designs")] = 0
    protocol: Annotated[dict[str, Any] | None, Field(description="how people are asked: name and its settings")] = None
    design: Annotated[dict[str, Any] | None, Field(description="which tasks are asked: name and its settings")] = None
    stage: Annotated[list[StageTable], Field(description="several stages, instead of [protocol] and [design]")] = []
    model: Annotated[dict[str, Any], Field(description="how judgments become scores: name and its settings")] = {}
    people: Annotated[People, Field(description="who judges, and how they work")] = People()
    page: Annotated[Page, Field(description="how the page that people judge on shows things")] = Page()
    quality: Annotated[Quality, Field(description="how the answers' quality is watched")] = Quality()
    stop: Annotated[Stop | None, Field(description="when to stop before everything planned has been asked")] = None
    pay: Annotated[Pay, Field(description="what the work costs")] = Pay()
    link: Annotated[Link | None, Field(description="how people come from a panel, and go back")] = None
    prolific: Annotated[Prolific | None, Field(description="how the study is put to people on Prolific")] = None
