"""Links from a panel: who comes, whether the link is genuine, and how they go back.

Nothing here speaks HTTP: the pages do, with what this says.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias
from urllib.parse import quote, urlencode

from steelyard.errors import ConfigError, SteelyardError
from steelyard.study import Study
from steelyard.study.config.tables import Link, is_address
from steelyard.study.leases import annotator_name
from steelyard.study.recruitment_state import Arrival

SECRET = "STEELYARD_LINK_SECRET"  # noqa: S105 - the name of the variable, not a secret
EXPIRES, SIGNATURE = "expires", "signature"
"""The parameters of a signed link: until when it is good (Unix seconds), and the signature in hexadecimal."""

COMPLETE = "https://app.prolific.com/submissions/complete"
_PLAIN = re.compile(r"[A-Za-z0-9_.:@-]{0,200}")
"""What ids may hold. A mark that a panel should have replaced, such as {{%PROLIFIC_PID%}}, does not fit."""
_SHORTEST_SECRET = 16
_FROM_THE_PANEL = "Open the study from the panel's own page. If that does not help, tell whoever runs it."

EndingKind: TypeAlias = Literal["completed", "screened_out", "failed"]


class LinkRefusedError(SteelyardError):
    """A link does not let in. `forged` tells a wrong signature from a mere slip."""

    def __init__(self, what: str, remedy: str, *, forged: bool = False) -> None:
        super().__init__(what, remedy)
        self.forged = forged


@dataclass(frozen=True, slots=True)
class Ending:
    """How somebody goes back to the panel: a code, an address, or both."""

    kind: EndingKind
    code: str | None
    url: str | None


def link_secret() -> bytes:
    """Return the secret that links are signed with."""
    secret = os.environ.get(SECRET, "")
    if len(secret) < _SHORTEST_SECRET:
        raise ConfigError(
            f"{SECRET} is not set, or shorter than {_SHORTEST_SECRET} characters.",
            "Set it where the study is served, e.g. to the output of: openssl rand -hex 32",
        )
    return secret.encode()


def signature(secret: bytes, slug: str, arrival: Arrival, expires: int) -> str:
    """Sign a visit: HMAC-SHA256 over the study's name in addresses, the three ids and the end, a line each."""
    text = "\n".join([slug, arrival.participant, arrival.study, arrival.session, str(expires)])
    return hmac.new(secret, text.encode(), hashlib.sha256).hexdigest()


def read_arrival(
    link: Link,
    query: Iterable[tuple[str, str]],
    *,
    slug: str,
    now: float,
    study_id: str | None = None,
    secret: bytes | None = None,
) -> Arrival | None:
    """Return who comes by a link, or None where the address says nothing of a participant.

    `study_id` is the panel's id of this study, where it is known; `secret` is needed for signed links. What is
    missing, doubled, unfilled, of another study, forged or too old is refused.
    """
    given: dict[str, list[str]] = {}
    for name, value in query:
        given.setdefault(name, []).append(value)
    if link.participant_parameter not in given:
        return None
    values = [
        _single(given, name) for name in (link.participant_parameter, link.study_parameter, link.session_parameter)
    ]
    participant, study, session = values
    if re.fullmatch(link.pattern, participant) is None:
        raise LinkRefusedError(
            "This link does not say who you are in a way that can be right.",
            _FROM_THE_PANEL,
        )
    arrival = Arrival(annotator_name(participant), study, session)
    if link.signed:
        _check_signature(given, arrival, slug, secret, now)
    expected = link.study_id or study_id
    if expected is not None and study != expected:
        raise LinkRefusedError("This link belongs to another study.", _FROM_THE_PANEL)
    return arrival


def _single(given: Mapping[str, Sequence[str]], name: str) -> str:
    values = given.get(name, [""])
    if len(values) > 1 or _PLAIN.fullmatch(values[0]) is None:
        raise LinkRefusedError("This link is not as it should be.", _FROM_THE_PANEL)
    return values[0]


def _check_signature(
    given: Mapping[str, Sequence[str]], arrival: Arrival, slug: str, secret: bytes | None, now: float
) -> None:
    if secret is None:
        raise ConfigError("the study's links are signed, but the secret is missing.", f"Set {SECRET}.")
    mark, expires = (given.get(name, [""])[0] for name in (SIGNATURE, EXPIRES))
    end = int(expires) if expires.isdecimal() and len(expires) <= 12 else 0
    genuine = hmac.compare_digest(mark.encode("utf-8", "surrogatepass"), signature(secret, slug, arrival, end).encode())
    if not genuine:
        raise LinkRefusedError(
            "This link is not genuine, or not whole.", "Check that you copied the whole of it.", forged=True
        )
    if end <= now:
        raise LinkRefusedError("This link is too old.", "Open the study anew from the panel's own page.")


def link_for(link: Link, base: str, slug: str, arrival: Arrival, *, expires: int, secret: bytes | None = None) -> str:
    """Return the link of one participant, signed where the study asks for it. `base` is the server's address."""
    values = {
        link.participant_parameter: arrival.participant,
        link.study_parameter: arrival.study,
        link.session_parameter: arrival.session,
    }
    given = {name: value for name, value in values.items() if value}
    if link.signed:
        if secret is None:
            raise ConfigError("the study's links are signed, but the secret is missing.", f"Set {SECRET}.")
        given |= {EXPIRES: str(expires), SIGNATURE: signature(secret, slug, arrival, expires)}
    return f"{base.rstrip('/')}/s/{slug}/?{urlencode(given)}"


def link_template(link: Link, base: str, slug: str, values: tuple[str, str, str]) -> str:
    """Return the link with what a panel fills in; `values` are its marks for participant, study and session."""
    names = (link.participant_parameter, link.study_parameter, link.session_parameter)
    filled = "&".join(f"{name}={value}" for name, value in zip(names, values, strict=True))
    return f"{base.rstrip('/')}/s/{slug}/?{filled}"


def ending_kind(study: Study, annotator: str, because: str) -> EndingKind | None:
    """Say how somebody has ended who is asked nothing more; None for those who may be asked again, or left."""
    standing = study.annotators.progress(annotator)
    if because == "excluded":
        if annotator in study.recruitment.departed:
            return None
        return "screened_out" if standing.qualified is False and standing.excluded is None else "failed"
    if because == "paused":
        return None
    # Who waits may go as well: there is nothing more to ask them now, and a panel's clock is running.
    if standing.answered or because == "quota":
        return "completed"
    return None if because == "waiting" else "screened_out"


def ending_for(study: Study, annotator: str, because: str, codes: Mapping[str, str] | None = None) -> Ending | None:
    """Return how an annotator who came by a link goes back, if they are at an end.

    Addresses come from study.toml alone, so nobody can be sent anywhere else; `codes` are those agreed with Prolific.
    """
    link = study.config.link
    visits = study.recruitment.arrivals_of(annotator)
    if link is None or not visits:
        return None
    kind = ending_kind(study, annotator, because)
    if kind is None:
        return None
    given: str | None = getattr(link, kind)
    if given is None:
        code = (codes or {}).get(kind)
        return None if code is None else Ending(kind, code, f"{COMPLETE}?cc={quote(code, safe='')}")
    if not is_address(given):
        return Ending(kind, given, None)
    last = visits[-1]
    filled = given
    for name in ("participant", "study", "session"):
        filled = filled.replace(f"{{{name}}}", quote(getattr(last, name), safe=""))
    return Ending(kind, None, filled)
