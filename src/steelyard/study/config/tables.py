"""The tables of study.toml with their keys; the reference page is generated from them."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Annotated, Any, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from steelyard.protocols.unjudged import AnswerRules
from steelyard.quality.pay import MAX_AMOUNT, NAMES, Bonus, Rates

CONFIG_VERSION = 1


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class ItemsSource(_Table):
    """The items file and how to read its columns."""

    file: Annotated[str, Field(min_length=1, description="the items file, relative to the study's folder")]
    columns: Annotated[
        dict[str, str], Field(description="Steelyard's column = the file's, e.g. { text = 'headline' }")
    ] = {}
    ignore: Annotated[list[str], Field(description="columns to ignore")] = []


class EntryQuestion(_Table):
    """One question of the questionnaire that annotators answer before their first task."""

    name: Annotated[
        str,
        Field(
            pattern=r"^[A-Za-z][A-Za-z0-9_]{0,49}$", description="short name of the answer, e.g. age; used for groups"
        ),
    ]
    question: Annotated[str, Field(min_length=1, max_length=500, description="the question")]
    type: Annotated[
        Literal["choice", "number", "text"],
        Field(description="choice: one of `choices`; number; text: one short line"),
    ] = "choice"
    choices: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=200)], ...],
        Field(max_length=100, description="the answers to choose from, for the type choice"),
    ] = ()
    optional: Annotated[bool, Field(description="whether the question may be left unanswered")] = False
    prefer_not_to_say: Annotated[bool, Field(description="whether “Prefer not to say” is offered as an answer")] = True
    minimum: Annotated[float | None, Field(description="smallest number that is accepted")] = None
    maximum: Annotated[float | None, Field(description="largest number that is accepted")] = None
    breaks: Annotated[
        tuple[float, ...],
        Field(max_length=20, description="numbers at which a new group of annotators begins, e.g. [30, 50]"),
    ] = ()
    max_length: Annotated[int, Field(ge=1, le=500, strict=True, description="most characters of a text")] = 100

    @model_validator(mode="after")
    def _is_consistent(self) -> EntryQuestion:
        if self.type == "choice" and len(set(self.choices)) < 2:
            raise ValueError("a question of the type choice needs two or more different `choices`")
        if self.type != "choice" and self.choices:
            raise ValueError(f"a question of the type {self.type} has no `choices`")
        limits = (self.minimum, self.maximum)
        if self.type != "number" and (self.breaks or limits != (None, None)):
            raise ValueError("`minimum`, `maximum` and `breaks` are for questions of the type number")
        if self.minimum is not None and self.maximum is not None and self.minimum >= self.maximum:
            raise ValueError("`minimum` must be smaller than `maximum`")
        if any(low >= high for low, high in pairwise(self.breaks)):
            raise ValueError("`breaks` must increase")
        return self


class AnnotatorSettings(_Table):
    """Who may annotate, and how they work."""

    max_tasks: Annotated[
        int | None, Field(ge=1, strict=True, description="maximum number of tasks per annotator; default: unlimited")
    ] = None
    lease_minutes: Annotated[
        float,
        Field(
            gt=0,
            le=60 * 24 * 365,
            strict=True,
            description="minutes for which a task stays reserved for an annotator before it is reassigned",
        ),
    ] = 30
    open: Annotated[
        bool, Field(description="whether anyone with the study's address may join; otherwise by invitation only")
    ] = True
    consent: Annotated[
        str | None, Field(description="consent text that annotators must accept first: Markdown, or a .md file")
    ] = None
    instructions: Annotated[str | None, Field(description="instructions for annotators: Markdown, or a .md file")] = (
        None
    )
    questionnaire: Annotated[
        tuple[EntryQuestion, ...],
        Field(max_length=30, description="questions about annotators themselves, asked after the consent"),
    ] = ()
    min_group: Annotated[
        int,
        Field(ge=2, strict=True, description="smallest group of annotators that results by group show"),
    ] = 5
    training: Annotated[
        str | None, Field(description="file of practice questions with answers, asked before the first task")
    ] = None
    contact: Annotated[str | None, Field(description="contact shown to annotators, e.g. an e-mail address")] = None
    revisable_answers: Annotated[
        int, Field(ge=0, le=1000, strict=True, description="number of most recent answers an annotator may revise")
    ] = 20
    language: Annotated[
        str | None,
        Field(description="language of the annotation page (ar de en es fr hi ja pt ru zh); default: the browser's"),
    ] = None

    @field_validator("questionnaire")
    @classmethod
    def _names_differ(cls, value: tuple[EntryQuestion, ...]) -> tuple[EntryQuestion, ...]:
        names = [question.name for question in value]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"two questions are called '{twice[0]}'")
        return value


Format: TypeAlias = Literal["text", "markdown", "html", "code", "conversation"]


class ShownField(_Table):
    """One column of the items that annotators see."""

    column: Annotated[
        str, Field(min_length=1, description="column of the items file: text, context, reference, or any other")
    ]
    label: Annotated[
        str | None,
        Field(max_length=200, description="heading above it; default: the column's name, none above text; '' for none"),
    ] = None
    format: Annotated[
        Format | None,
        Field(description="text, markdown, html, code, or conversation (turns as JSON); default: page.content"),
    ] = None
    language: Annotated[
        str | None,
        Field(pattern=r"^[A-Za-z0-9+#._-]{1,30}$", description="programming language of code, for its colours"),
    ] = None


def _as_shown_fields(value: object) -> object:
    """Turn the names of columns into tables with nothing but the name."""
    if not isinstance(value, list | tuple) or not all(isinstance(entry, str | dict | ShownField) for entry in value):
        raise ValueError("write a list of columns, such as ['title', { column = 'body', format = 'markdown' }]")
    return [{"column": entry} if isinstance(entry, str) else entry for entry in value]


class Page(_Table):
    """How the annotation page presents items and tasks."""

    content: Annotated[
        Format,
        Field(description="format of the items' texts; HTML is sanitised, a conversation is JSON with roles and turns"),
    ] = "text"
    fields: Annotated[
        tuple[ShownField, ...],
        Field(
            max_length=50,
            description="columns shown for each item, in this order: names, or tables with column, label, format and "
            "language; default: the text. Entries for context and reference set their heading and format only",
        ),
        BeforeValidator(_as_shown_fields, json_schema_input_type=list[str | ShownField]),
    ] = ()
    show_value: Annotated[bool, Field(description="whether sliders show their value")] = True
    sort_live: Annotated[bool, Field(description="whether scored_ranking sorts its sliders while they are moved")] = (
        False
    )
    prefetch: Annotated[
        int, Field(ge=1, le=50, strict=True, description="number of tasks fetched in advance on a fast connection")
    ] = 1
    context_label: Annotated[
        str | None, Field(min_length=1, max_length=200, description="heading above the context; default: “Context”")
    ] = None
    reference_label: Annotated[
        str | None,
        Field(min_length=1, max_length=200, description="heading above the reference; default: “Reference”"),
    ] = None
    media: Annotated[
        str, Field(min_length=1, description="folder of images, audio, video and PDFs, relative to the study's folder")
    ] = "media"
    sync_audio: Annotated[
        bool,
        Field(description="whether the recordings of a task share one player, which switches at the same position"),
    ] = False
    must_play: Annotated[
        bool, Field(description="whether audio and video must be played to the end before an answer is accepted")
    ] = False


class Answers(_Table):
    """What annotators may answer beside what the protocol asks."""

    cannot_judge: Annotated[
        bool, Field(description="whether annotators may answer that they cannot judge an item or task")
    ] = False
    reasons: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=200)], ...],
        Field(max_length=20, description="reasons for “cannot judge” to choose from; empty: no reason is requested"),
    ] = ()
    set_aside_after: Annotated[
        int,
        Field(
            ge=0,
            strict=True,
            description="annotators who cannot judge an item before it is set aside (nobody is asked about it any "
            "more); 0: never",
        ),
    ] = 3
    set_aside_fraction: Annotated[
        float,
        Field(
            ge=0,
            le=1,
            description="fraction of the answers about an item that must be “cannot judge” before it is set aside",
        ),
    ] = 0.5
    comments: Annotated[bool, Field(description="whether annotators may write a comment on each task")] = False

    @property
    def rules(self) -> AnswerRules:
        """How answers that something cannot be judged are taken."""
        return AnswerRules(self.cannot_judge, self.reasons)


class Pay(_Table):
    """What annotators are paid."""

    per_task: Annotated[float, Field(ge=0, le=MAX_AMOUNT, description="paid for each answered task")] = 0.0
    per_visit: Annotated[
        float, Field(ge=0, le=MAX_AMOUNT, description="paid once to each annotator with at least one answer")
    ] = 0.0
    per_hour: Annotated[float, Field(ge=0, le=MAX_AMOUNT, description="paid for each hour of active time")] = 0.0
    bonus: Annotated[
        str | None,
        Field(
            description="bonus per annotator who is not excluded: a formula of "
            + ", ".join(NAMES)
            + "; e.g. '0.01 * tasks' or '0.5 if accuracy >= 0.9 and tasks >= 20 else 0'"
        ),
    ] = None
    fee: Annotated[
        float, Field(ge=0, le=100, description="the platform's fee as a fraction of the pay: 0.33 for 33 %")
    ] = 0.0
    currency: Annotated[str, Field(min_length=1, max_length=10, description="currency sign or code")] = "$"

    @property
    def rates(self) -> Rates:
        """Pay rates without bonuses."""
        return Rates(self.per_task, self.per_visit, self.per_hour, self.fee)

    @property
    def formula(self) -> Bonus | None:
        """The parsed bonus formula."""
        return None if self.bonus is None else Bonus.parse(self.bonus)

    @property
    def nothing(self) -> bool:
        """Whether the study specifies no pay at all."""
        return not self.rates.any and self.bonus is None


_TASKS_PER_EARLY_CHECK = 3
"""Tasks for each of the first checks. Many annotators answer a dozen tasks in all (four items a task), so that checks
must come early to act at all; measured in docs/guides/quality.md."""


class Checks(_Table):
    """Questions with known answers, mixed in with the tasks."""

    file: Annotated[str, Field(min_length=1, description="question file, one per row: items, answer (or best, worst)")]
    rate: Annotated[
        float, Field(gt=0, lt=1, description="fraction of an annotator's tasks that are checks, after the first ones")
    ] = 0.05
    min_accuracy: Annotated[
        float, Field(gt=0, lt=1, description="minimum accuracy in the checks; annotators below it are excluded")
    ] = 0.7
    rule: Annotated[
        Literal["posterior", "threshold"],
        Field(
            description="posterior: exclude when the accuracy is below `min_accuracy` with probability `confidence`"
            "; threshold: exclude when the observed accuracy is below it"
        ),
    ] = "posterior"
    confidence: Annotated[float, Field(gt=0.5, lt=1, description="posterior probability required for an exclusion")] = (
        0.95
    )
    min_checks: Annotated[
        int, Field(ge=1, strict=True, description="minimum number of answered checks before an exclusion")
    ] = 4
    min_checks_within: Annotated[
        int | None,
        Field(
            ge=1,
            strict=True,
            description="tasks within which an annotator gets the first min_checks checks; default: 3 × min_checks",
        ),
    ] = None
    feedback: Annotated[bool, Field(description="whether annotators are told when they answer a check wrongly")] = False

    @property
    def early_tasks(self) -> int:
        """Number of tasks within which the first `min_checks` checks come."""
        return max(self.min_checks_within or _TASKS_PER_EARLY_CHECK * self.min_checks, self.min_checks)

    def probability(self, checks: int, tasks: int) -> float:
        """Return the probability that the next task is a check, for an annotator with this many checks and tasks.

        The first `min_checks` checks come one in each of as many equal parts of the first `early_tasks` tasks,
        at a random place of its part.
        """
        if checks >= self.min_checks:
            return self.rate
        length = self.early_tasks / self.min_checks
        first, last = int(checks * length), int((checks + 1) * length)
        return self.rate if tasks < first else max(self.rate, 1 / max(last - tasks, 1))

    def expected(self, tasks: int) -> float:
        """Return about how many of an annotator's tasks are checks."""
        early = min(tasks, self.early_tasks)
        return early * max(self.min_checks / self.early_tasks, self.rate) + (tasks - early) * self.rate


class Qualification(_Table):
    """A test before the first task."""

    file: Annotated[str, Field(min_length=1, description="question file, as for checks")]
    min_accuracy: Annotated[
        float, Field(gt=0, le=1, description="fraction of correct answers needed to pass the test")
    ] = 0.8


class Rules(_Table):
    """Quality signals that exclude annotators automatically. All are reported; only those set here exclude."""

    too_fast: Annotated[
        float | None,
        Field(
            gt=0,
            lt=1,
            description="exclude annotators who give at least this fraction of answers faster than the text can be "
            "read",
        ),
    ] = None
    constant: Annotated[
        float | None,
        Field(gt=0, le=1, description="exclude annotators who give the same answer in at least this fraction of tasks"),
    ] = None
    one_sided: Annotated[
        bool,
        Field(
            description="exclude annotators who choose one position far more often than by chance, and than other "
            "annotators"
        ),
    ] = False
    disagreement: Annotated[
        bool,
        Field(description="exclude annotators who agree significantly less with the other annotators than average"),
    ] = False


class Quality(_Table):
    """Quality control."""

    checks: Annotated[Checks | None, Field(description="questions with known answers, mixed in with the tasks")] = None
    qualification: Annotated[Qualification | None, Field(description="a test before the first task")] = None
    repeat_rate: Annotated[float, Field(ge=0, lt=1, description="fraction of tasks repeated to the same annotator")] = (
        0.0
    )
    repeat_after: Annotated[
        int, Field(ge=1, strict=True, description="minimum number of tasks between a task and its repeat")
    ] = 10
    overlap_rate: Annotated[
        float, Field(ge=0, lt=1, description="fraction of tasks assigned to every annotator, to measure agreement")
    ] = 0.0
    rules: Annotated[Rules, Field(description="quality signals that exclude annotators automatically")] = Rules()


class Stop(_Table):
    """When to stop before all planned tasks are answered."""

    measure: Annotated[
        Literal["split_half", "interval_width", "top_k", "systems"],
        Field(
            description="split-half reliability, mean interval width, whether the top k items are separated, or the "
            "fraction of pairs of systems that differ significantly"
        ),
    ]
    target: Annotated[
        float,
        Field(
            gt=0,
            description="target: reliability, mean interval width (in units of the scores), k for top_k, or a fraction "
            "of the pairs for systems (1: all)",
        ),
    ]
    spearman_brown: Annotated[
        bool,
        Field(description="whether split_half is Spearman–Brown corrected before it is compared with the target"),
    ] = False
    interim_analyses: Annotated[
        int, Field(ge=1, le=100, strict=True, description="number of interim analyses, evenly spaced over the plan")
    ] = 10
    alpha: Annotated[
        float, Field(gt=0, lt=0.5, description="probability of stopping too early, over all interim analyses")
    ] = 0.05


_PARAMETER = r"^[A-Za-z][A-Za-z0-9_.-]{0,63}$"
_LOCAL = {"localhost", "127.0.0.1", "::1"}


def is_address(ending: str) -> bool:
    """Whether the return value of a link is an address to redirect to, rather than a code to show."""
    return "://" in ending


class Link(_Table):
    """How participants arrive from a panel, and how they return."""

    participant_parameter: Annotated[
        str, Field(pattern=_PARAMETER, description="URL parameter with the participant ID")
    ] = "PROLIFIC_PID"
    study_parameter: Annotated[
        str, Field(pattern=_PARAMETER, description="URL parameter with the panel's study ID")
    ] = "STUDY_ID"
    session_parameter: Annotated[
        str, Field(pattern=_PARAMETER, description="URL parameter with the panel's session ID")
    ] = "SESSION_ID"
    study_id: Annotated[
        str | None,
        Field(min_length=1, description="accepted value of the study parameter; default: any"),
    ] = None
    pattern: Annotated[str, Field(description="regular expression that participant IDs must match completely")] = (
        "[A-Za-z0-9_.@-]{1,100}"
    )
    signed: Annotated[
        bool, Field(description="whether links must be signed with the secret in STEELYARD_LINK_SECRET")
    ] = False
    completed: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=1000,
            description="completion code shown at the end, or https address to redirect to",
        ),
    ] = None
    screened_out: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=1000,
            description="the same for participants who fail the test or for whom no task is left",
        ),
    ] = None
    failed: Annotated[
        str | None,
        Field(
            min_length=1, max_length=1000, description="the same for participants who are excluded, e.g. by the checks"
        ),
    ] = None

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, value: str) -> str:
        try:
            re.compile(value)
        except re.error as error:
            raise ValueError(f"this is not a regular expression: {error}") from None
        return value

    @field_validator("completed", "screened_out", "failed")
    @classmethod
    def _leads_somewhere_safe(cls, value: str | None) -> str | None:
        if value is None or not is_address(value):
            return value
        parts = urlsplit(value)
        if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOCAL):
            raise ValueError("a return address must begin with https://")
        if not parts.hostname or "{" in parts.netloc or parts.username is not None:
            raise ValueError("a return address needs a fixed host; {participant} may only follow it")
        unknown = set(re.findall(r"{(.*?)}", value)) - {"participant", "study", "session"}
        if unknown:
            raise ValueError(
                f"'{{{min(unknown)}}}' is not a placeholder; use {{participant}}, {{study}} or {{session}}"
            )
        return value


class Prolific(_Table):
    """How the study is run on Prolific."""

    places: Annotated[int, Field(ge=1, le=20_000, strict=True, description="number of participants")]
    reward: Annotated[
        float | None,
        Field(
            gt=0, le=MAX_AMOUNT, description="reward per participant, in your account's currency; default: from [pay]"
        ),
    ] = None
    estimated_minutes: Annotated[
        float | None, Field(gt=0, le=600, description="estimated duration in minutes; default: computed from the study")
    ] = None
    url: Annotated[
        str | None, Field(min_length=1, description="address of the server, e.g. https://judge.example.org")
    ] = None
    name: Annotated[
        str | None, Field(min_length=1, description="title shown to participants; default: the study's")
    ] = None
    description: Annotated[
        str | None, Field(min_length=1, description="description shown to participants; default: the study's question")
    ] = None
    countries: Annotated[list[str], Field(description="countries of residence, in Prolific's spelling")] = []
    languages: Annotated[list[str], Field(description="fluent languages, in Prolific's spelling")] = []
    min_approval_rate: Annotated[
        int | None, Field(ge=0, le=100, strict=True, description="minimum approval rate of participants, in percent")
    ] = None
    min_approved: Annotated[
        int | None, Field(ge=0, le=100_000, strict=True, description="minimum number of approved submissions")
    ] = None
    devices: Annotated[
        list[Literal["desktop", "tablet", "mobile"]], Field(min_length=1, description="allowed devices")
    ] = ["desktop", "tablet", "mobile"]
    screen_out_reward: Annotated[
        float | None,
        Field(
            gt=0,
            le=MAX_AMOUNT,
            description="reward of participants who are screened out; default: they are asked to return their place",
        ),
    ] = None
    screen_out_places: Annotated[
        int, Field(ge=1, strict=True, description="maximum number of participants paid for being screened out")
    ] = 20
    project: Annotated[
        str | None, Field(min_length=1, description="ID of the Prolific project; default: your default project")
    ] = None


class Judges(_Table):
    """Models as annotators (language models, metrics)."""

    count: Annotated[
        bool,
        Field(description="whether models' judgments count in the scores as people's do; otherwise they are separate"),
    ] = False
    covariates: Annotated[
        list[str],
        Field(
            description="names of models, or numeric columns of the items, that inform the scores as a prior; "
            "for the model calibrated_scale"
        ),
    ] = []


_ORIGIN = re.compile(r"(https?)://([a-z0-9.-]+|\[[0-9a-f:]+\])(:[0-9]{1,5})?")


class Embed(_Table):
    """Which sites may show the annotation page in a frame."""

    origins: Annotated[
        tuple[str, ...],
        Field(
            max_length=20,
            description="origins of the sites, e.g. https://lab.eu.qualtrics.com; none: the page cannot be embedded",
        ),
    ] = ()

    @field_validator("origins")
    @classmethod
    def _are_origins(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for origin in value:
            match = _ORIGIN.fullmatch(origin)
            if match is None:
                raise ValueError("an origin is scheme and host in lower case, such as https://lab.eu.qualtrics.com")
            if match[1] != "https" and match[2] not in _LOCAL:
                raise ValueError("an origin must begin with https://")
        return value


class StageTable(_Table):
    """One stage: a protocol with its design."""

    name: Annotated[str | None, Field(description="name of the stage; default: the name of its protocol")] = None
    protocol: Annotated[dict[str, Any], Field(description="as [protocol]")]
    design: Annotated[dict[str, Any], Field(description="as [design]")] = {}
    question: Annotated[
        str | None, Field(min_length=1, description="question of this stage; the study's question if absent")
    ] = None
    share: Annotated[
        float | None,
        Field(gt=0, le=1, description="fraction of the tasks, if stages are mixed rather than run in sequence"),
    ] = None


class StudyTable(_Table):
    """The top level of study.toml."""

    version: Annotated[int, Field(ge=1, strict=True, description="version of the file format")] = CONFIG_VERSION
    title: Annotated[str, Field(min_length=1, description="title of the study")]
    question: Annotated[str, Field(min_length=1, description="question asked of annotators")]
    items: Annotated[str | ItemsSource, Field(description="the items file, or a table with file, columns, ignore")]
    database: Annotated[
        str | None, Field(description="database URL of the judgments; default: study.db in the study's folder")
    ] = None
    name: Annotated[
        str | None, Field(description="name of the study; required in a database shared by several studies")
    ] = None
    seed: Annotated[int, Field(ge=0, strict=True, description="random seed of the designs")] = 0
    protocol: Annotated[dict[str, Any] | None, Field(description="how questions are asked: name and settings")] = None
    design: Annotated[dict[str, Any] | None, Field(description="which tasks are asked: name and settings")] = None
    stage: Annotated[list[StageTable], Field(description="several stages, instead of [protocol] and [design]")] = []
    model: Annotated[dict[str, Any], Field(description="how judgments become scores: name and settings")] = {}
    annotators: Annotated[AnnotatorSettings, Field(description="who may annotate, and how they work")] = (
        AnnotatorSettings()
    )
    page: Annotated[Page, Field(description="how the annotation page presents items and tasks")] = Page()
    answers: Annotated[Answers, Field(description="“cannot judge” and comments")] = Answers()
    quality: Annotated[Quality, Field(description="quality control")] = Quality()
    stop: Annotated[Stop | None, Field(description="when to stop before all planned tasks are answered")] = None
    pay: Annotated[Pay, Field(description="what annotators are paid")] = Pay()
    link: Annotated[Link | None, Field(description="how participants arrive from a panel, and return")] = None
    prolific: Annotated[Prolific | None, Field(description="how the study is run on Prolific")] = None
    judges: Annotated[Judges, Field(description="models as annotators")] = Judges()
    embed: Annotated[Embed, Field(description="which sites may show the annotation page in a frame")] = Embed()
