"""The team of a study: people who may see its dashboard or manage it, each with a personal link."""

from __future__ import annotations

import json
import secrets
import unicodedata
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import get_args

from steelyard.errors import ConfigError
from steelyard.study import events as ev
from steelyard.study.events import RoleName
from steelyard.study.study import Study

_GRANT, _SESSION = "team", "team_session"
"""Kinds of tokens: of the member's link, and of a browser in which it was opened."""
_SESSION_LIFETIME = timedelta(days=14)
_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True)
class Member:
    """A team member. `added` is in microseconds since 1970, UTC."""

    id: str
    name: str
    role: RoleName
    added: int = 0


class Team:
    """Add, list and remove the members of a study's team.

    Of a link and of a session only the digest is stored. Removing a member ends their sessions at once.
    """

    def __init__(self, study: Study) -> None:
        self._study = study
        self._access = study.access

    def members(self) -> list[Member]:
        """List the members, in the order they were added."""
        return [_member(grant.note, grant.created) for grant in self._access.grants(_GRANT)]

    def add(self, name: str, role: RoleName, *, by: str = "") -> str:
        """Add a member and return the token of their link, for the only time. `by` is the member who adds them."""
        name = checked_name(name)
        if role not in get_args(RoleName):
            raise ConfigError(f"there is no role '{role}'.", f"Use one of: {', '.join(get_args(RoleName))}.")
        if any(member.name.casefold() == name.casefold() for member in self.members()):
            raise ConfigError(
                f"'{name}' is already in the team.", "Remove them first to give them a new link or another role."
            )
        # The log first: a link that nobody recorded must not exist.
        self._append(ev.MemberAdded(name=name, role=role, member=by))
        return self._access.grant(_GRANT, note=_note(secrets.token_hex(8), name, role))

    def remove(self, name: str, *, by: str = "") -> Member:
        """Revoke a member's link and end their sessions."""
        member = next((member for member in self.members() if member.name == name), None)
        if member is None:
            names = ", ".join(member.name for member in self.members()) or "nobody"
            raise ConfigError(f"'{name}' is not in the team.", f"In the team: {names}.")
        self._access.revoke(_GRANT, note=_note(member.id, member.name, member.role))
        self._access.revoke(_SESSION, note=member.id)
        self._append(ev.MemberRemoved(name=member.name, role=member.role, member=by))
        return member

    def by_token(self, token: str) -> Member | None:
        """Return the member to whom a link belongs; None if it is unknown or revoked."""
        grant = self._access.find(_GRANT, token)
        return None if grant is None else _member(grant.note, grant.created)

    def new_session(self, token: str) -> str:
        """Create a session for a browser in which the link with this token was opened; return the session's token."""
        member = self.by_token(token)
        # A link that was revoked meanwhile gets a session of nobody, which opens nothing.
        identity = "" if member is None else member.id
        return self._access.grant(_SESSION, note=identity, lifetime=_SESSION_LIFETIME)

    def by_session(self, token: str) -> Member | None:
        """Return the member of a session; None if it has ended or the member was removed."""
        grant = self._access.find(_SESSION, token)
        if grant is None:
            return None
        return next((member for member in self.members() if member.id == grant.note), None)

    def end_session(self, token: str) -> None:
        """End one session."""
        self._access.revoke(_SESSION, token=token)

    def _append(self, payload: ev.Payload) -> None:
        with self._study.core.log.write() as transaction:
            transaction.append(payload, at=self._study.core.clock())


def _note(identity: str, name: str, role: RoleName) -> str:
    return json.dumps(asdict(Member(identity, name, role)), ensure_ascii=False, sort_keys=True)


def _member(note: str, added: int) -> Member:
    fields = json.loads(note)
    return Member(fields["id"], fields["name"], fields["role"], added)


def checked_name(text: str) -> str:
    """Return the name of a member as it is stored, without superfluous spaces; refuse what is no name."""
    name = " ".join(text.split())
    if not name or len(name) > _LONGEST_NAME or any(unicodedata.category(sign).startswith("C") for sign in name):
        raise ConfigError(
            "a team member needs a name.", f"Give one of 1 to {_LONGEST_NAME} letters, such as Ann or ann@lab."
        )
    return name
