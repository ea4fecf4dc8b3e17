"""The studies a server serves, each under a name for its addresses."""

from __future__ import annotations

import gc
import logging
import re
import statistics
import threading
import time
import unicodedata
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from steelyard.errors import SteelyardError
from steelyard.quality import Question
from steelyard.recruitment.ledger import PlatformLedger
from steelyard.recruitment.links import Ending, ending_for, link_secret
from steelyard.study import Study
from steelyard.study.annotators import AnnotatorProgress
from steelyard.web.content import MediaFolder, render_page_text

log = logging.getLogger("steelyard.web")

_REOPEN_SECONDS = 5.0


class Pace:
    """How long answers take, from what passed through this process: an annotator's own, and everybody's."""

    ENOUGH = 5
    """From so many answers on, an annotator's own times say more than the others'."""

    _OWN, _ALL, _PEOPLE = 30, 300, 10_000

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._own: dict[str, deque[float]] = {}
        self._all: deque[float] = deque(maxlen=self._ALL)

    def know(self, annotator: str) -> bool:
        """Whether an annotator's times are known here."""
        return annotator in self._own

    def begin(self, annotator: str, latest_first: Iterable[float | None]) -> None:
        """Take in the times of an annotator who worked here before."""
        times = [seconds for seconds in latest_first if seconds]
        with self._lock:
            if len(self._own) >= self._PEOPLE:
                self._own.clear()
            self._own.setdefault(annotator, deque(reversed(times), maxlen=self._OWN))

    def note(self, annotator: str, seconds: float | None) -> None:
        """Take in the time of one answer."""
        if seconds:
            with self._lock:
                self._own.setdefault(annotator, deque(maxlen=self._OWN)).append(seconds)
                self._all.append(seconds)

    def seconds(self, annotator: str) -> float | None:
        """The median time of an answer: the annotator's own, or everybody's while there are few of them."""
        with self._lock:
            own = self._own.get(annotator, ())
            times = list(own if len(own) >= self.ENOUGH else self._all or own)
        return statistics.median(times) if times else None


class Served:
    """One study on a server: the study, its name in addresses, and what is read from its folder once."""

    def __init__(self, folder: Path, slug: str, database: str | None) -> None:
        self.folder = folder
        self.slug = slug
        self.pace = Pace()
        self.joining = threading.Lock()
        """Held while a name is looked up and taken, so that two people cannot get the same one."""
        self._database = database
        self._lock = threading.Lock()
        self._tried = 0.0
        self._ready: set[str] = set()
        self._ready_since = 0
        self._platform_ledger: tuple[int, PlatformLedger] | None = None
        self._open()

    def _open(self) -> None:
        self.study = Study.open(self.folder, database=self._database)
        self._tried = time.monotonic()
        page, link = self.study.config.page, self.study.config.link
        if link is not None and link.signed:
            # Said before anybody comes, rather than to the first who does.
            link_secret()
        self.media = MediaFolder(self.folder / page.media, f"{self.url}media/")
        texts = self.study.annotators.texts()
        self.consent_html = None if texts.consent is None else render_page_text(texts.consent, self.media.url)
        self.instructions_html = (
            None if texts.instructions is None else render_page_text(texts.instructions, self.media.url)
        )
        self.training: list[Question] = self.study.annotators.training()
        self._ready = set()
        # The log is read now, so that the first annotator need not wait for it. What it adds up to stays: to go
        # through millions of judgments in search of garbage now and then would hold everybody up for seconds.
        _ = self.study.state
        gc.freeze()

    @property
    def database(self) -> str | None:
        """Where its judgments are kept, if not where its study.toml says."""
        return self._database

    @property
    def url(self) -> str:
        """Where annotators find it."""
        return f"/s/{self.slug}/"

    def platform_ledger(self) -> PlatformLedger:
        """What was agreed with Prolific; read anew only when there is something new in the log."""
        notes = self.study.recruitment.steps()
        if self._platform_ledger is None or self._platform_ledger[0] != len(notes):
            self._platform_ledger = (len(notes), PlatformLedger.of(notes))
        return self._platform_ledger[1]

    def ending(self, annotator: str, because: str) -> Ending | None:
        """How somebody who is asked nothing more goes back to where they came from."""
        return ending_for(self.study, annotator, because, self.platform_ledger().codes)

    def reopen(self) -> None:
        """Read the study's folder again; requests under way keep what they have."""
        with self._lock:
            before = self.study
            self._open()
            before.close()

    def reopen_soon(self) -> None:
        """Open the study anew after its configuration changed, but not at every request."""
        with self._lock:
            if time.monotonic() - self._tried < _REOPEN_SECONDS:
                return
            self._tried = time.monotonic()
            try:
                fresh = Study.open(self.folder, database=self._database)
            except SteelyardError as error:
                log.error("study %s cannot be opened anew: %s", self.slug, error)
                return
            fresh.close()
        self.reopen()

    def lacks(self, annotator: str) -> Literal["consent", "training", "qualification"] | None:
        """What an annotator must do before the first task. Who has done it all is not looked up again."""
        if self._ready_since != self.study.privacy.generation:
            # Somebody was forgotten: who comes under that name now is new here.
            self._ready, self._ready_since = set(), self.study.privacy.generation
        if annotator in self._ready:
            return None
        standing = self.study.annotators.progress(annotator)
        if not standing.consented:
            return "consent"
        if not standing.trained:
            return "training"
        if standing.qualified is None:
            return "qualification"
        self._ready.add(annotator)
        return None

    def state_reason(self) -> str:
        """Why the study is paused or closed, as its manager put it; nothing while it is open."""
        return "" if self.study.state == "open" else self.study.status().state_reason

    def minutes_left(self, annotator: str, standing: AnnotatorProgress) -> float | None:
        """How long an annotator has yet to work, if their share is limited and anybody's pace is known."""
        if standing.limit is None:
            return None
        if not self.pace.know(annotator):
            recent = self.study.annotators.recent_answers(annotator, 30) if standing.answered else []
            self.pace.begin(annotator, (answered.judgment.seconds for answered in recent))
        seconds = self.pace.seconds(annotator)
        left = max(0, standing.limit - standing.answered)
        return 0.0 if left == 0 else None if seconds is None else round(left * seconds / 60, 1)


class Studies:
    """All studies of a server. `listing` is a file of their folders that its worker processes share."""

    def __init__(
        self, folders: Iterable[Path] = (), *, database: str | None = None, listing: Path | None = None
    ) -> None:
        self._database = database
        self._listing = listing
        self._lock = threading.Lock()
        self._by_slug: dict[str, Served] = {}
        for folder in folders:
            self._open(folder)
        self._read_listing()

    def all(self) -> list[Served]:
        """Every study, in the order they were given."""
        self._read_listing()
        return list(self._by_slug.values())

    def get(self, slug: str) -> Served | None:
        """Find a study by its name in addresses."""
        if slug not in self._by_slug:
            self._read_listing()
        return self._by_slug.get(slug)

    def add(self, folder: Path) -> Served:
        """Serve one more study, in every worker process."""
        served = self._open(folder)
        if self._listing is not None:
            with self._listing.open("a", encoding="utf-8") as file:
                file.write(f"{folder.resolve()}\n")
        return served

    def reopen_soon(self, slug: str | None) -> None:
        """Open a study anew after another process changed its configuration."""
        served = self._by_slug.get(slug or "")
        if served is not None:
            served.reopen_soon()

    def close(self) -> None:
        """Give the databases back."""
        for served in self._by_slug.values():
            served.study.close()

    def _open(self, folder: Path) -> Served:
        folder = folder.resolve()
        with self._lock:
            for served in self._by_slug.values():
                if served.folder == folder:
                    return served
            name = slug_of(folder)
            slug, number = name, 1
            while slug in self._by_slug:
                number += 1
                slug = f"{name}-{number}"
            served = Served(folder, slug, self._database)
            # A new dict, so that those who are going through the old one are not disturbed.
            self._by_slug = {**self._by_slug, slug: served}
            return served

    def _read_listing(self) -> None:
        if self._listing is None:
            return
        for line in self._listing.read_text(encoding="utf-8").splitlines():
            if line and not any(served.folder == Path(line) for served in self._by_slug.values()):
                self._open(Path(line))


def slug_of(folder: Path) -> str:
    """Return a study's name in addresses: its configured name, or its folder's, in plain characters."""
    from steelyard.study.config import CONFIG_FILE, read_config

    name = read_config(folder / CONFIG_FILE).name or folder.resolve().name
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-") or "study"
