"""Tending studies while they are served: looks are taken when they are due, rules are applied as answers come in."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress

from steelyard.errors import SteelyardError
from steelyard.study import Study
from steelyard.web.calculator import Source
from steelyard.web.studies import Served, Studies
from steelyard.web.watching import Watches

log = logging.getLogger("steelyard.web")

_GROWTH = 1.05
"""Rules are held against everybody's work again when it has grown by a twentieth."""
_LEAST_ANSWERS = 20


def tend(source: Source) -> tuple[str, ...]:
    """Take the look that is due and apply the rules; return what came of it, in words."""
    said = []
    with Study.open(source.folder, database=source.database) as study:
        seen = study.quality.interim_analysis()
        if seen is not None:
            said.append(f"look {seen.number}: {seen.summary}" + ("; the study is closed" if seen.reached else ""))
        said += [f"{annotator} is excluded: {reason}" for annotator, reason in study.quality.apply_rules().items()]
    return tuple(said)


class Tender:
    """Looks after the studies of a server, in the background."""

    def __init__(self, studies: Studies, watches: Watches, seconds: float = 5.0) -> None:
        self._studies = studies
        self._watches = watches
        self._seconds = seconds
        self._vetted_at: dict[str, int] = {}
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin."""
        self._task = asyncio.create_task(self._go_round())

    async def stop(self) -> None:
        """End."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _go_round(self) -> None:
        while True:
            await asyncio.sleep(self._seconds)
            for served in self._studies.all():
                try:
                    if await asyncio.to_thread(self._has_work, served):
                        for line in await self._watches.of(served).run(tend):
                            log.info("%s: %s", served.slug, line)
                except (SteelyardError, BrokenProcessPool) as error:
                    log.warning("%s could not be tended: %s", served.slug, error)
                except Exception:
                    # Every exception: the task serves all studies, and one that fails must not stop it for the others.
                    log.exception("%s could not be tended", served.slug)

    def _has_work(self, served: Served) -> bool:
        study = served.study
        if study.quality.is_analysis_due():
            return True
        if not any(study.config.quality.rules.model_dump().values()):
            return False
        answers = study.status().judgments
        if answers < max(_LEAST_ANSWERS, _GROWTH * self._vetted_at.get(served.slug, 0)):
            return False
        self._vetted_at[served.slug] = answers
        return True
