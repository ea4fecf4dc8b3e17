"""The API of a study's team: who may see the dashboard or manage the study, besides the owner of the server."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from steelyard.errors import ConfigError
from steelyard.study.events import RoleName
from steelyard.study.team import Member, Team, checked_name
from steelyard.web.addresses import origin_of
from steelyard.web.errors import Refusal
from steelyard.web.identity import Manager, StudyDep

router = APIRouter(prefix="/api/v1/studies/{study}/manage/team", tags=["manage"])


class MemberOut(BaseModel):
    """A team member: a viewer sees the study without annotators' names; a manager can also change it."""

    name: str
    role: RoleName
    added: datetime


class TeamOut(BaseModel):
    """The team of a study, in the order they were added."""

    members: list[MemberOut]


class NewMember(BaseModel):
    """The person to add to the team, and their role."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: Annotated[str, Field(min_length=1, max_length=200)]
    role: RoleName


class NewMemberOut(BaseModel):
    """The link of a new member (a path, if the public address is not known). The study keeps only its digest."""

    name: str
    role: RoleName
    link: str


class FormerMember(BaseModel):
    """The person to remove from the team."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: Annotated[str, Field(min_length=1, max_length=200)]


@router.get("")
def members(served: StudyDep, _: Manager) -> TeamOut:
    """The team of a study."""
    return TeamOut(members=[_member_out(member) for member in Team(served.study).members()])


@router.post("", status_code=201)
def add(served: StudyDep, request: Request, manager: Manager, body: NewMember) -> NewMemberOut:
    """Add a person to the team; the response contains their link."""
    try:
        name = checked_name(body.name)
        token = Team(served.study).add(name, body.role, by=manager.name)
    except ConfigError as error:
        raise _refusal(error) from None
    link = f"{origin_of(request)}{served.manage_url}?token={token}"
    return NewMemberOut(name=name, role=body.role, link=link)


@router.post("/remove")
def remove(served: StudyDep, manager: Manager, body: FormerMember) -> TeamOut:
    """Remove a person from the team: their link and sessions become invalid at once."""
    try:
        Team(served.study).remove(body.name, by=manager.name)
    except ConfigError as error:
        raise _refusal(error) from None
    return members(served, manager)


def _member_out(member: Member) -> MemberOut:
    added = datetime.fromtimestamp(member.added / 1e6, UTC)
    return MemberOut(name=member.name, role=member.role, added=added)


def _refusal(error: ConfigError) -> Refusal:
    problem = error.problems[0]
    return Refusal(409, "refused", problem.what, problem.remedy, field="name")
