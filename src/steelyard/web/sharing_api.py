"""The API of sharing a study: its links, personal invitations, and revoking them."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from steelyard.recruitment.links import link_template
from steelyard.study.leases import annotator_name
from steelyard.web.addresses import origin_of
from steelyard.web.errors import refusing
from steelyard.web.identity import Manager, StudyDep, is_resume
from steelyard.web.new_study_api import REFUSALS

router = APIRouter(prefix="/api/v1/studies/{study}/manage", tags=["manage"], responses=REFUSALS)
_MOST_INVITATIONS = 1000


class InvitationOut(BaseModel):
    """An annotator with a personal link. The link itself is shown only when it is created."""

    annotator: str
    created: float
    answered: int
    limit: int | None


class NewInvitationOut(BaseModel):
    """A new personal link."""

    annotator: str
    link: str


class SharingOut(BaseModel):
    """How people reach a study. Links are relative if the server does not know its public address."""

    link: str
    is_open: bool
    invitations: list[InvitationOut]
    panel_link: str | None
    prolific_link: str


class Names(BaseModel):
    """Names of annotators."""

    model_config = ConfigDict(extra="forbid", strict=True)

    names: Annotated[list[Annotated[str, Field(max_length=300)]], Field(min_length=1, max_length=_MOST_INVITATIONS)]


_PROLIFIC_VALUES = ("{{%PROLIFIC_PID%}}", "{{%STUDY_ID%}}", "{{%SESSION_ID%}}")


@router.get("/sharing")
def read_sharing(served: StudyDep, request: Request, _: Manager) -> SharingOut:
    """The links of a study, and who was invited."""
    from steelyard.study.config.tables import Link

    study = served.study
    grants = study.access.grants("invite")
    latest = {grant.annotator: grant for grant in grants if grant.annotator is not None and not is_resume(grant.note)}
    progress = {name: study.annotators.progress(name) for name in latest}
    invitations = [
        InvitationOut(
            annotator=name,
            created=grant.created / 1e6,
            answered=progress[name].answered,
            limit=progress[name].limit,
        )
        for name, grant in latest.items()
    ]
    origin, link = origin_of(request), study.config.link
    base = origin + served.root_path
    panel = None if link is None else link_template(link, base, served.slug, ("PARTICIPANT", "STUDY", "SESSION"))
    return SharingOut(
        link=f"{origin}{served.url}",
        is_open=study.config.annotators.open,
        invitations=invitations,
        panel_link=panel,
        prolific_link=link_template(link or Link(), base, served.slug, _PROLIFIC_VALUES),
    )


@router.post("/invitations", status_code=201)
def invite(served: StudyDep, request: Request, _: Manager, body: Names) -> list[NewInvitationOut]:
    """Create personal links; each is shown only once, because the study stores its digest."""
    names = refusing(lambda: list(dict.fromkeys(annotator_name(name) for name in body.names if name.strip())))
    base = f"{origin_of(request)}{served.url}?invite="
    access = served.study.access
    return [NewInvitationOut(annotator=name, link=base + access.grant("invite", annotator=name)) for name in names]


@router.post("/invitations/revoke")
def revoke(served: StudyDep, _: Manager, body: Names) -> dict[Literal["revoked"], int]:
    """Revoke the personal links of annotators, and sign them out; their answers are kept."""
    revoked = 0
    for name in body.names:
        revoked += served.study.access.revoke("invite", annotator=name)
        served.study.access.revoke("session", annotator=name)
    return {"revoked": revoked}
