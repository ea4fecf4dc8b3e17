"""Links from a panel: reading the participant from a link, checking its signature, and the way back to the panel."""

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
"""The parameters of a signed link: its expiry (Unix seconds), and the signature in hexadecimal."""

COMPLETE = "https://app.prolific.com/submissions/complete"
_PLAIN = re.compile(r"[A-Za-z0-9_.:@-]{0,200}")
"""Characters of an id. A placeholder that the panel did not replace, such as {{%PROLIFIC_PID%}}, does not match."""
_SHORTEST_SECRET = 16
_FROM_THE_PANEL = "Open the study from the panel's page. If that does not help, contact the people who run the study."

EndingKind: TypeAlias = Literal["completed", "screened_out", "failed"]


class LinkRefusedError(SteelyardError):
    """A link is refused. `forged` distinguishes a wrong signature from other mistakes."""

    def __init__(self, what: str, remedy: str, *, forged: bool = False) -> None:
        super().__init__(what, remedy)
        self.forged = forged


@dataclass(frozen=True, slots=True)
class Ending:
    """How a participant returns to the panel: a completion code, an address, or both."""

    kind: EndingKind
    code: str | None
    url: str | None


def link_secret() -> bytes:
    """Return the secret for signing links."""
    secret = os.environ.get(SECRET, "")
    if len(secret) < _SHORTEST_SECRET:
        raise ConfigError(
            f"{SECRET} is not set, or shorter than {_SHORTEST_SECRET} characters.",
            "Set it where the study is served, e.g. to the output of: openssl rand -hex 32",
        )
    return secret.encode()


def signature(secret: bytes, slug: str, arrival: Arrival, expires: int) -> str:
    """Sign an arrival: HMAC-SHA256 over the study's slug, the three ids and the expiry, one per line."""
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
    """Read the participant from a link; None if the address does not name one.

    `study_id` is the panel's id of this study, if known; `secret` is needed for signed links. A link is refused if an
    id is missing, repeated, not filled in or of another study, or if its signature is wrong or expired.
    """
    parameters: dict[str, list[str]] = {}
    for name, value in query:
        parameters.setdefault(name, []).append(value)
    if link.participant_parameter not in parameters:
        return None
    values = [
        _single(parameters, name) for name in (link.participant_parameter, link.study_parameter, link.session_parameter)
    ]
    participant, study, session = values
    if re.fullmatch(link.pattern, participant) is None:
        raise LinkRefusedError(
            "This link does not contain a valid participant ID.",
            _FROM_THE_PANEL,
        )
    arrival = Arrival(annotator_name(participant), study, session)
    if link.signed:
        _check_signature(parameters, arrival, slug, secret, now)
    expected = link.study_id or study_id
    if expected is not None and study != expected:
        raise LinkRefusedError("This link belongs to another study.", _FROM_THE_PANEL)
    return arrival


def _single(parameters: Mapping[str, Sequence[str]], name: str) -> str:
    values = parameters.get(name, [""])
    if len(values) > 1 or _PLAIN.fullmatch(values[0]) is None:
        raise LinkRefusedError("This link is not valid.", _FROM_THE_PANEL)
    return values[0]


def _check_signature(
    parameters: Mapping[str, Sequence[str]], arrival: Arrival, slug: str, secret: bytes | None, now: float
) -> None:
    if secret is None:
        raise ConfigError("the study's links are signed, but the secret is missing.", f"Set {SECRET}.")
    mark, expires = (parameters.get(name, [""])[0] for name in (SIGNATURE, EXPIRES))
    end = int(expires) if expires.isdecimal() and len(expires) <= 12 else 0
    genuine = hmac.compare_digest(mark.encode("utf-8", "surrogatepass"), signature(secret, slug, arrival, end).encode())
    if not genuine:
        raise LinkRefusedError(
            "This link is not valid, or incomplete.", "Check that you copied the complete link.", forged=True
        )
    if end <= now:
        raise LinkRefusedError("This link is too old.", "Open the study again from the panel's page.")


def link_for(link: Link, base: str, slug: str, arrival: Arrival, *, expires: int, secret: bytes | None = None) -> str:
    """Return the link of one participant, signed if the study requires it. `base` is the server's address."""
    values = {
        link.participant_parameter: arrival.participant,
        link.study_parameter: arrival.study,
        link.session_parameter: arrival.session,
    }
    parameters = {name: value for name, value in values.items() if value}
    if link.signed:
        if secret is None:
            raise ConfigError("the study's links are signed, but the secret is missing.", f"Set {SECRET}.")
        parameters |= {EXPIRES: str(expires), SIGNATURE: signature(secret, slug, arrival, expires)}
    return f"{base.rstrip('/')}/s/{slug}/?{urlencode(parameters)}"


def link_template(link: Link, base: str, slug: str, values: tuple[str, str, str]) -> str:
    """Return the link for a panel; `values` are its placeholders for participant, study and session."""
    names = (link.participant_parameter, link.study_parameter, link.session_parameter)
    filled = "&".join(f"{name}={value}" for name, value in zip(names, values, strict=True))
    return f"{base.rstrip('/')}/s/{slug}/?{filled}"


def ending_kind(study: Study, annotator: str, reason_code: str) -> EndingKind | None:
    """Return how an annotator without further tasks has ended; None if they may get tasks again, or have departed."""
    progress = study.annotators.progress(annotator)
    if reason_code == "excluded":
        if annotator in study.recruitment.departed:
            return None
        return "screened_out" if progress.qualified is False and progress.excluded is None else "failed"
    if reason_code == "paused":
        return None
    # Annotators who would have to wait may leave as well: the panel limits the time of a visit.
    if progress.answered or reason_code == "quota":
        return "completed"
    return None if reason_code == "waiting" else "screened_out"


def ending_for(study: Study, annotator: str, reason_code: str, codes: Mapping[str, str] | None = None) -> Ending | None:
    """Return how an annotator who arrived by a link returns to the panel; None while they may get further tasks.

    Addresses come from study.toml only, so that nobody is sent elsewhere; `codes` are the study's codes on Prolific.
    """
    link = study.config.link
    arrivals = study.recruitment.arrivals_of(annotator)
    if link is None or not arrivals:
        return None
    kind = ending_kind(study, annotator, reason_code)
    if kind is None:
        return None
    setting: str | None = getattr(link, kind)
    if setting is None:
        code = (codes or {}).get(kind)
        return None if code is None else Ending(kind, code, f"{COMPLETE}?cc={quote(code, safe='')}")
    if not is_address(setting):
        return Ending(kind, setting, None)
    last = arrivals[-1]
    filled = setting
    for name in ("participant", "study", "session"):
        filled = filled.replace(f"{{{name}}}", quote(getattr(last, name), safe=""))
    return Ending(kind, None, filled)
