"""The annotators' API, used by their page, by scripts and by language models."""

from __future__ import annotations

import hmac
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel

from steelyard.designs.base import NoTask
from steelyard.errors import AnswerError, TaskError
from steelyard.protocols.unjudged import unjudged_items
from steelyard.records import Effort, Judgment
from steelyard.study.display import label_beside
from steelyard.web.addresses import address_of, is_https, origin_of
from steelyard.web.catalogue import catalogue_for, catalogues, study_direction
from steelyard.web.content import media_kind, render_page_text
from steelyard.web.errors import Refusal, refusal_for, too_many
from steelyard.web.identity import (
    RateLimiters,
    Session,
    StudyDep,
    admit,
    delete_session_cookie,
    derived,
    end_session,
    is_embedded,
    join_by_name,
    newcomer_by_invite,
    newcomer_of,
    session_of,
    set_session_cookie,
    signed_in,
)
from steelyard.web.schemas import (
    Empty,
    EndingOut,
    EntryQuestionOut,
    ErrorOut,
    FeedbackOut,
    JudgmentOut,
    JudgmentsOut,
    LeaseOut,
    NeededStep,
    NewJudgment,
    NewSession,
    NoTaskOut,
    PageOut,
    ProgressOut,
    QuestionnaireAnswers,
    Reason,
    RevisedAnswer,
    SavedOut,
    SessionOut,
    SignedOut,
    StudyOut,
    TaskNoteOut,
    TaskOut,
    TaskRequest,
    TasksOut,
    TestResultOut,
    TrainingAnswer,
    TrainingOut,
    TrainingResultOut,
    task_out,
)
from steelyard.web.studies import ServedStudy

TRAINING_COOKIE = "steelyard_training"
TRAINING_HEADER = "X-Practised"
"""The same for pages in a frame of another site."""
_REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorOut, "description": "The request is malformed."},
    401: {"model": ErrorOut, "description": "There is no session."},
    403: {"model": ErrorOut, "description": "Access denied, or the page is out of date."},
    404: {"model": ErrorOut, "description": "There is no such study or task."},
    409: {"model": ErrorOut, "description": "The task has another answer, or the name is taken."},
    413: {"model": ErrorOut, "description": "The request is too large."},
    415: {"model": ErrorOut, "description": "The request is not JSON."},
    422: {"model": ErrorOut, "description": "The answer is not valid for its task."},
    429: {"model": ErrorOut, "description": "Too many requests; wait and try again."},
    503: {"model": ErrorOut, "description": "The database is busy; try again, nothing is lost."},
}

router = APIRouter(prefix="/api/v1/studies/{study}", tags=["judging"], responses=_REFUSALS)
languages = APIRouter(prefix="/api/v1", tags=["languages"])


@languages.get("/messages/{language}")
def messages(language: str, scripts: str | None = None) -> dict[str, Any]:
    """The messages of the annotators' page in a language, keyed by the English text.

    With `scripts` (names of the optional scripts that the page loads, separated by commas), what only other scripts say
    is left out.
    """
    if language.lower().partition("-")[0] not in {code.partition("-")[0] for code in catalogues()}:
        raise Refusal(404, "no_such_language", "There is no such language here.", f"Use: {', '.join(catalogues())}.")
    catalogue = catalogue_for(language)
    messages_ = catalogue.as_json(None if scripts is None else scripts.split(","))
    return {"language": catalogue.language, "direction": catalogue.direction, "messages": messages_}


@router.get("/me")
def me(served: StudyDep, request: Request, lang: str | None = None) -> SessionOut:
    """The session, the steps before the first task, and everything that the page needs to start."""
    return _welcome(served, request, session_of(request, served), lang)


@router.post("/session")
def begin_session(served: StudyDep, request: Request, response: Response, body: NewSession) -> SessionOut:
    """Sign in with a name or a personal link; the response sets a session cookie."""
    if [body.name, body.invite, body.arrival].count(None) != 2:
        raise Refusal(400, "malformed", "Give a name, the token of a personal link, or its query.", "Choose a name.")
    if body.embedded and not served.study.config.embed.origins:
        raise Refusal(403, "not_embedded", "This study cannot be shown inside another site.", "Open it in a tab.")
    if body.arrival is not None:
        newcomer = newcomer_of(request, served, body.arrival)
        if newcomer is None:
            return _welcome(served, request, session_of(request, served))
        session = admit(request, served, newcomer)
    elif body.invite is not None:
        session = admit(request, served, newcomer_by_invite(request, served, body.invite))
    else:
        session = join_by_name(request, served, body.name or "")
    set_session_cookie(request, response, served, session, embedded=body.embedded)
    welcome = _welcome(served, request, session)
    return welcome.model_copy(update={"session": session.token}) if body.embedded else welcome


@router.post("/sign-out")
def sign_out(served: StudyDep, request: Request, response: Response, body: Empty) -> SignedOut:
    """End this session; the personal link remains valid."""
    end_session(served, signed_in(request, served))
    delete_session_cookie(response, served)
    return SignedOut()


@router.post("/consent")
def consent(served: StudyDep, request: Request, body: Empty) -> SessionOut:
    """Record consent to the text that was shown."""
    session = signed_in(request, served)
    if not served.study.annotators.progress(session.annotator).consented:
        served.study.annotators.record_consent(session.annotator)
    return _welcome(served, request, session)


@router.post("/questionnaire")
def questionnaire(served: StudyDep, request: Request, body: QuestionnaireAnswers) -> SessionOut:
    """Answer the questions about oneself, all at once and after the consent; sending them again changes nothing."""
    session = signed_in(request, served)
    if served.next_step(session.annotator) == "consent":
        raise _consent_needed()
    try:
        served.study.annotators.record_questionnaire(session.annotator, body.answers)
    except AnswerError as error:
        raise refusal_for(error) from None
    return _welcome(served, request, session)


def _consent_needed() -> Refusal:
    return Refusal(403, "consent_needed", "You have not agreed to take part yet.", "Read the text and agree first.")


@router.get("/training")
def training(served: StudyDep, request: Request) -> TrainingOut:
    """The next practice question."""
    session = signed_in(request, served)
    of = len(served.training)
    answered, _ = _practised(request, session)
    if answered >= of or served.study.annotators.progress(session.annotator).trained:
        return TrainingOut(question=None, number=of, of=of)
    question = served.training[answered]
    stage = served.study.config.stages[0]
    task = task_out(served, f"training-{answered + 1}", stage, question.items, None)
    return TrainingOut(question=task, number=answered + 1, of=of)


@router.post("/training")
def practise(served: StudyDep, request: Request, response: Response, body: TrainingAnswer) -> TrainingResultOut:
    """Answer a practice question; the response has the expected answer."""
    session = signed_in(request, served)
    of = len(served.training)
    answered, right = _practised(request, session)
    if body.number > min(of, answered + 1):
        raise Refusal(409, "not_yet", "That practice question is not next.", "Reload the page.", field="number")
    question = served.training[body.number - 1]
    good = question.grade(body.answer)
    if body.number == answered + 1:
        answered, right = answered + 1, right + good
        _set_practised(request, response, served, session, answered, right)
        if answered == of and not served.study.annotators.progress(session.annotator).trained:
            served.study.annotators.record_training(session.annotator, right, of)
    return TrainingResultOut(
        right=good,
        expected=question.expected,
        feedback_html=render_page_text(question.feedback, served.media.url) if question.feedback else "",
        done=answered >= of,
    )


@router.get("/qualification")
def qualification(served: StudyDep, request: Request) -> TrainingOut:
    """The next question of the qualification test."""
    session = signed_in(request, served)
    questions, answered = (
        served.study.annotators.qualification(),
        served.study.annotators.test_answers(session.annotator),
    )
    if answered >= len(questions):
        return TrainingOut(question=None, number=len(questions), of=len(questions))
    stage = served.study.config.stages[0]
    task = task_out(served, f"test-{answered + 1}", stage, questions[answered].items, None)
    return TrainingOut(question=task, number=answered + 1, of=len(questions))


@router.post("/qualification")
def qualify(served: StudyDep, request: Request, body: TrainingAnswer) -> TestResultOut:
    """Answer a question of the qualification test; it is graded on the server and cannot be repeated."""
    session = signed_in(request, served)
    try:
        passed = served.study.annotators.answer_test(session.annotator, body.number, body.answer)
    except TaskError as error:
        raise Refusal(
            409, "not_yet", "That question of the test is not next.", error.problems[0].remedy, field="number"
        ) from None
    return TestResultOut(done=passed is not None, passed=passed)


def _written(result: BaseModel) -> Response:
    """Return a result as a response: FastAPI would validate it again, in a thread of its own."""
    return Response(result.model_dump_json(by_alias=True), media_type="application/json")


@router.post("/tasks", response_model=TasksOut)
def tasks(served: StudyDep, request: Request, body: TaskRequest) -> Response:
    """Lease up to `count` tasks. Tasks already leased come first, so the request is idempotent."""
    session = signed_in(request, served)
    study = served.study
    step = served.next_step(session.annotator)
    if step == "consent":
        raise _consent_needed()
    if step == "questionnaire":
        raise Refusal(403, "questionnaire_needed", "There is a short questionnaire first.", "Answer its questions.")
    if step == "training":
        raise Refusal(403, "training_needed", "There is a short training first.", "Do the practice questions.")
    if step == "qualification":
        raise Refusal(403, "test_needed", "There is a short test first.", "Answer its questions.")
    limiters: RateLimiters = request.app.state.rate_limiters
    if not study.annotators.progress(session.annotator, latest=False).answered and not limiters.newcomers.enter(
        address_of(request.scope), _person(served, session), study.config.annotators.lease_minutes * 60
    ):
        reason = "Many people from your network have just begun; you can begin in a moment."
        wait = NoTask(reason, reason_code="waiting")
        nothing = TasksOut(tasks=[], no_task=_no_task(served, session, wait), progress=_progress(served, session))
        return _written(nothing)
    leased, no_task = study.offer_many(session.annotator, body.count)
    result = TasksOut(
        tasks=[
            task_out(served, task.judgment_id, study.core.stage_of(task), task.items, task.lease_end) for task in leased
        ],
        no_task=None if no_task is None else _no_task(served, session, no_task),
        progress=_progress(served, session),
    )
    return _written(result)


def _person(served: ServedStudy, session: Session) -> str:
    return f"{served.slug} {session.annotator}"


def _no_task(served: ServedStudy, session: Session, no_task: NoTask) -> NoTaskOut:
    ending = served.ending(session.annotator, no_task.reason_code)
    back = None if ending is None else EndingOut(kind=ending.kind, code=ending.code, url=ending.url)
    return NoTaskOut(reason_code=no_task.reason_code, reason=no_task.reason, ending=back)


@router.post("/judgments", response_model=SavedOut)
def judge(served: StudyDep, request: Request, body: NewJudgment) -> Response:
    """Save an answer; it is on disk when the response arrives. Sending the same answer again changes nothing."""
    session = signed_in(request, served)
    if served.study.config.page.must_play:
        _refuse_unplayed(served, session, body)
    try:
        judgment = served.study.tell(
            body.judgment_id,
            body.answer,
            annotator=session.annotator,
            seconds=body.seconds,
            limit_seconds=True,
            comment=body.comment,
            effort=None if body.effort is None else Effort(**body.effort.model_dump()),
        )
    except TaskError as error:
        raise _explained(served, session, body.judgment_id, error) from None
    served.answer_times.note(session.annotator, judgment.seconds)
    limiters: RateLimiters = request.app.state.rate_limiters
    limiters.newcomers.leave(address_of(request.scope), _person(served, session))
    saved = SavedOut(
        judgment_id=body.judgment_id, progress=_progress(served, session), feedback=_feedback(served, judgment)
    )
    return _written(saved)


_PLAYED_ENOUGH = 0.9
"""Players stop reporting shortly before the end."""


def _refuse_unplayed(served: ServedStudy, session: Session, body: NewJudgment) -> None:
    """Refuse an answer about recordings that the page did not report as played; the server knows no more than that."""
    try:
        task = served.study.task(body.judgment_id)
    except TaskError as error:
        raise _explained(served, session, body.judgment_id, error) from None
    protocol = served.study.core.stage_of(task).protocol
    unjudged = unjudged_items(protocol, task.item_ids, body.answer) if isinstance(body.answer, dict) else {}
    played = {} if body.effort is None else body.effort.played
    for item in task.items:
        is_recording = media_kind(item.media or "") in {"audio", "video"}
        if is_recording and item.id not in unjudged and played.get(item.id, 0.0) < _PLAYED_ENOUGH:
            what, remedy = "A recording was not played to the end.", "Play it, then answer again."
            raise Refusal(422, "not_played", what, remedy, field="effort.played")


def _feedback(served: ServedStudy, judgment: Judgment) -> FeedbackOut | None:
    feedback = served.study.quality.feedback(judgment)
    if feedback is None:
        return None
    text = render_page_text(feedback.text, served.media.url) if feedback.text else ""
    return FeedbackOut(right=feedback.right, expected=feedback.expected, feedback_html=text)


@router.put("/judgments/{judgment_id}")
def revise(served: StudyDep, request: Request, judgment_id: str, body: RevisedAnswer) -> SavedOut:
    """Revise a recent answer; the old one stays in the log and no longer counts."""
    session = signed_in(request, served)
    study = served.study
    try:
        if study.task(judgment_id).annotator == session.annotator:
            last = (
                study.annotators.recent_answers(session.annotator, study.config.annotators.revisable_answers)
                if study.config.annotators.revisable_answers
                else []
            )
            if judgment_id not in {answered.task.judgment_id for answered in last}:
                raise Refusal(
                    403,
                    "too_late",
                    "This answer can no longer be changed.",
                    "It stays unchanged. Continue with the next task.",
                )
        study.revise(judgment_id, body.answer, annotator=session.annotator, comment=body.comment)
    except TaskError as error:
        raise _explained(served, session, judgment_id, error) from None
    return SavedOut(judgment_id=judgment_id, progress=_progress(served, session))


@router.get("/judgments")
def recent(served: StudyDep, request: Request, recent: Annotated[int, Query(ge=1, le=200)] = 20) -> JudgmentsOut:
    """The annotator's recent answers, latest first."""
    session = signed_in(request, served)
    study = served.study
    return JudgmentsOut(
        judgments=[
            JudgmentOut(
                task=_shown(served, answered.task),
                answer=answered.judgment.answer,
                comment=answered.judgment.comment,
                at=answered.judgment.at,
                may_change=place < study.config.annotators.revisable_answers,
            )
            for place, answered in enumerate(study.annotators.recent_answers(session.annotator, recent))
        ]
    )


@router.post("/tasks/{judgment_id}/skip")
def skip(served: StudyDep, request: Request, judgment_id: str, body: Reason) -> TaskNoteOut:
    """Skip a task; it is not assigned to this annotator again."""
    return _note(served, request, judgment_id, "skip", body.reason)


@router.post("/tasks/{judgment_id}/flag")
def flag(served: StudyDep, request: Request, judgment_id: str, body: Reason) -> TaskNoteOut:
    """Flag a task, answered or not, with a reason."""
    return _note(served, request, judgment_id, "flag", body.reason)


@router.post("/tasks/{judgment_id}/renew")
def renew(served: StudyDep, request: Request, judgment_id: str, body: Empty) -> LeaseOut:
    """Renew the lease of a task."""
    session = signed_in(request, served)
    try:
        end = served.study.renew(judgment_id, annotator=session.annotator)
    except TaskError as error:
        raise _explained(served, session, judgment_id, error) from None
    return LeaseOut(judgment_id=judgment_id, lease_end=end)


def _note(
    served: ServedStudy, request: Request, judgment_id: str, kind: Literal["skip", "flag"], reason: str
) -> TaskNoteOut:
    session = signed_in(request, served)
    limiters: RateLimiters = request.app.state.rate_limiters
    if wait := limiters.notes.take(address_of(request.scope)):
        raise too_many(wait)
    try:
        if kind == "skip":
            served.study.skip(judgment_id, reason, annotator=session.annotator)
        else:
            served.study.flag(judgment_id, reason, annotator=session.annotator)
    except TaskError as error:
        refusal = _explained(served, session, judgment_id, error)
        if kind == "flag" and refusal.code == "task_refused":
            raise Refusal(
                409, "flags_enough", "You have already flagged this task several times.", "All your notes are saved."
            ) from None
        raise refusal from None
    return TaskNoteOut(judgment_id=judgment_id, progress=_progress(served, session))


def _explained(served: ServedStudy, session: Session, judgment_id: str, error: TaskError) -> Refusal:
    """Return the reason why a task was refused: unknown, leased to another annotator, or answered differently."""
    try:
        task = served.study.task(judgment_id)
    except TaskError:
        return Refusal(404, "no_such_task", "There is no such task in this study.", "Reload the page to continue.")
    if task.annotator != session.annotator:
        return Refusal(
            403, "not_yours", "This task belongs to another annotator.", "Reload the page to get one of your own."
        )
    return refusal_for(error)


def _shown(served: ServedStudy, task: Any) -> TaskOut:
    return task_out(served, task.judgment_id, served.study.core.stage_of(task), task.items, task.lease_end)


def _progress(served: ServedStudy, session: Session, *, latest: bool = False) -> ProgressOut:
    """Return an annotator's progress; what this process has just written is in it even if it is not the `latest`."""
    progress = served.study.annotators.progress(session.annotator, latest=latest)
    return ProgressOut(
        answered=progress.answered,
        limit=progress.limit,
        minutes_left=served.minutes_left(session.annotator, progress),
    )


def _welcome(served: ServedStudy, request: Request, session: Session | None, lang: str | None = None) -> SessionOut:
    study = served.study
    config = study.config
    needs: list[NeededStep] = []
    if session is None:
        needs.append("name")
        progress = ProgressOut(answered=0, limit=config.annotators.max_tasks, minutes_left=None)
        questions = study.annotators.questionnaire()
        consented, trained, tested = (
            served.consent_html is None,
            not served.training,
            not study.annotators.qualification(),
        )
    else:
        annotator = study.annotators.progress(session.annotator)
        consented, trained, tested = annotator.consented, annotator.trained, annotator.qualified is not None
        questions = [] if annotator.questioned else study.annotators.questionnaire(session.annotator)
        progress = _progress(served, session, latest=True)
    if not consented:
        needs.append("consent")
    if questions:
        needs.append("questionnaire")
    if not trained:
        needs.append("training")
    if not tested:
        needs.append("qualification")
    return SessionOut(
        annotator=None if session is None else session.name,
        key=None if session is None else derived(study.privacy.secret, f"page {session.annotator}")[:16],
        csrf=None if session is None else session.csrf,
        study=StudyOut(
            title=config.title,
            question=config.question,
            state=study.state,
            state_reason=served.state_reason(),
            contact=config.annotators.contact,
            open=config.annotators.open,
        ),
        needs=needs,
        consent_html=served.consent_html,
        questionnaire=[EntryQuestionOut.model_validate(question, from_attributes=True) for question in questions],
        instructions_html=served.instructions_html,
        page=PageOut(
            show_value=config.page.show_value,
            sort_live=config.page.sort_live,
            prefetch=config.page.prefetch,
            revisable_answers=config.annotators.revisable_answers,
            context_label=label_beside("context", config.page),
            reference_label=label_beside("reference", config.page),
            cannot_judge=config.answers.cannot_judge,
            reasons=config.answers.reasons,
            comments=config.answers.comments,
            reading=served.contents().for_reading,
            sync_audio=config.page.sync_audio,
            must_play=config.page.must_play,
            direction=study_direction(config.question, config.annotators.language),
        ),
        progress=progress,
        resume_url=None if session is None else origin_of(request) + _resume_path(served, session),
        language=catalogue_for(lang, config.annotators.language, request.headers.get("accept-language")).language,
    )


def _resume_path(served: ServedStudy, session: Session) -> str:
    return f"{served.url}?invite={session.resume_token}"


def _practised(request: Request, session: Session) -> tuple[int, int]:
    """Number of practice questions answered, and answered correctly; kept in a signed cookie."""
    cookie = request.headers.get(TRAINING_HEADER) or request.cookies.get(TRAINING_COOKIE, "")
    text, _, mark = cookie.rpartition(".")
    answered, _, right = text.partition(".")
    genuine = hmac.compare_digest(mark.encode("utf-8", "surrogatepass"), derived(session.token, text).encode())
    return (int(answered), int(right)) if genuine and answered.isdecimal() and right.isdecimal() else (0, 0)


def _set_practised(
    request: Request, response: Response, served: ServedStudy, session: Session, answered: int, right: int
) -> None:
    text = f"{answered}.{right}"
    cookie = f"{text}.{derived(session.token, text)}"
    if is_embedded(request, served):
        response.headers[TRAINING_HEADER] = cookie
        return
    response.set_cookie(
        TRAINING_COOKIE,
        cookie,
        path=served.api_url,
        secure=is_https(request),
        httponly=True,
        samesite="lax",
    )
