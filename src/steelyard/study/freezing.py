"""Freezing a study: its preregistration is written into the log before the first answer."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from steelyard.errors import TaskError
from steelyard.storage.events import to_json
from steelyard.study import events as ev
from steelyard.study.state import StudyState
from steelyard.study.status import status_of

if TYPE_CHECKING:
    from steelyard.study.core import Core

_LONGEST = 2000
"""Characters of a hypothesis."""


def freeze(core: Core, hypotheses: Sequence[str], *, force: bool = False, member: str = "") -> ev.Frozen:
    """Write the preregistration into the log: configuration, hypotheses and planned judgments."""
    texts = [text.strip() for text in hypotheses if text.strip()]
    if any(len(text) > _LONGEST for text in texts):
        raise TaskError(f"a hypothesis is longer than {_LONGEST:,} characters.", "Shorten it.")
    with core.log.write() as transaction:
        state = transaction.state
        _check(state, force)
        config = dict(state.config.config) if state.config is not None else {}
        planned = sum(stage.total for stage in status_of(core.config, state).stages)
        digest = hashlib.sha256(
            to_json({"config": config, "hypotheses": texts, "planned": planned}).encode()
        ).hexdigest()
        frozen = ev.Frozen(
            digest=digest,
            config=config,
            hypotheses=texts,
            planned=planned,
            judgments=_answers(state),
            member=member,
        )
        transaction.append(frozen, at=core.clock())
    return frozen


def _answers(state: StudyState) -> int:
    return state.counts["judgments"] + state.counts["model_judgments"]


def _check(state: StudyState, force: bool) -> None:
    frozen = state.preregistration.frozen
    if frozen is not None:
        raise TaskError(
            f"the study is already frozen (SHA-256 {frozen.digest[:12]}…).",
            "A preregistration cannot be replaced. Changes are listed as deviations.",
        )
    if _answers(state) and not force:
        raise TaskError(
            f"the study has {_answers(state):,} answers already.",
            "Freeze a study before the first answer, or use --force; the report then states this.",
        )
