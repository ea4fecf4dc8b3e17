"""Background jobs of a server: interim analyses when they are due, and exclusion rules as answers arrive."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress

from steelyard.errors import SteelyardError
from steelyard.study import Study
from steelyard.web.calculator_process import Source
from steelyard.web.dashboard import Dashboards
from steelyard.web.studies import ServedStudy, Studies

log = logging.getLogger("steelyard.web")

_GROWTH = 1.05
"""Rules are applied again when the number of judgments has grown by 5 %: fewer would rarely change a decision."""
_MIN_JUDGMENTS = 20
_EVENTS_BETWEEN_CHECKPOINTS = 20_000
"""So many events at most are replayed after the server was killed: about half a second."""


def run_due_jobs(source: Source) -> tuple[str, ...]:
    """Run the interim analysis if it is due and apply the rules; return a line for the log for each result."""
    lines = []
    with Study.open(source.folder, database=source.database) as study:
        analysis = study.quality.interim_analysis()
        if analysis is not None:
            closed = "; the study is closed" if analysis.reached else ""
            lines.append(f"interim analysis {analysis.number}: {analysis.summary}{closed}")
        lines += [f"{annotator} is excluded: {reason}" for annotator, reason in study.quality.apply_rules().items()]
    return tuple(lines)


def save_checkpoint(source: Source) -> bool:
    """Save the state of a study, so that the next opening need not read the whole log."""
    with Study.open(source.folder, database=source.database) as study:
        study.status()
        return study.save_checkpoint()


class BackgroundJobs:
    """Checks every few seconds whether a study of the server has jobs that are due, and runs them."""

    def __init__(self, studies: Studies, dashboards: Dashboards, seconds: float = 5.0) -> None:
        self._studies = studies
        self._dashboards = dashboards
        self._seconds = seconds
        self._judgments_at_last_run: dict[str, int] = {}
        self._seq_at_checkpoint: dict[str, int] = {}
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the loop as an asyncio task."""
        self._task = asyncio.create_task(self._loop())

    async def stop(self) -> None:
        """Cancel the loop and wait until it has ended."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _loop(self) -> None:
        while True:
            await asyncio.sleep(self._seconds)
            for served in self._studies.all():
                try:
                    await asyncio.to_thread(served.study.resume)
                    if await asyncio.to_thread(self._is_due, served):
                        for line in await self._dashboards.of(served).run(run_due_jobs):
                            log.info("%s: %s", served.slug, line)
                    if await asyncio.to_thread(self._needs_checkpoint, served):
                        await self._dashboards.of(served).run(save_checkpoint)
                except (SteelyardError, BrokenProcessPool) as error:
                    log.warning("background jobs of %s failed: %s", served.slug, error)
                except Exception:
                    # Every exception: the loop serves all studies, and one that fails must not stop the others' jobs.
                    log.exception("background jobs of %s failed", served.slug)

    def _needs_checkpoint(self, served: ServedStudy) -> bool:
        seq = served.study.last_seq()
        if seq - self._seq_at_checkpoint.setdefault(served.slug, 0) < _EVENTS_BETWEEN_CHECKPOINTS:
            return False
        self._seq_at_checkpoint[served.slug] = seq
        return True

    def _is_due(self, served: ServedStudy) -> bool:
        study = served.study
        if study.quality.is_analysis_due():
            return True
        if not any(study.config.quality.rules.model_dump().values()):
            return False
        judgments = study.status().judgments
        if judgments < max(_MIN_JUDGMENTS, _GROWTH * self._judgments_at_last_run.get(served.slug, 0)):
            return False
        self._judgments_at_last_run[served.slug] = judgments
        return True
