"""The tables of study.toml, key by key; the reference page is generated from them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from steelyard.quality.pay import NAMES, Bonus, Rates

CONFIG_VERSION = 1


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


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

    per_task: Annotated[float, Field(ge=0, description="paid for each answered task")] = 0.0
    per_visit: Annotated[float, Field(ge=0, description="paid once to everybody who answers anything")] = 0.0
    per_hour: Annotated[float, Field(ge=0, description="paid for each hour of active time")] = 0.0
    bonus: Annotated[
        str | None,
        Field(
            description="paid on top to each annotator who is not excluded: a formula of "
            + ", ".join(NAMES)
            + "; e.g. '0.5 if accuracy >= 0.9 else 0' or '0.01 * tasks'"
        ),
    ] = None
    fee: Annotated[float, Field(ge=0, description="the platform's share on top: 0.33 for 33 %")] = 0.0
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
