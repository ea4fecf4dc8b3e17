"""The studies of a server, each with a slug for its addresses."""

from __future__ import annotations

import atexit
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

import polars as pl

from steelyard.analysis.tables import item_columns
from steelyard.errors import SteelyardError
from steelyard.quality import Question
from steelyard.recruitment.ledger import PlatformLedger
from steelyard.recruitment.links import Ending, ending_for, link_secret
from steelyard.storage import Access
from steelyard.study import Study
from steelyard.study.annotators import AnnotatorProgress
from steelyard.study.config import CONFIG_FILE, read_config
from steelyard.web.content import Contents, MediaFolder, contents_of, render_page_text
from steelyard.web.documents import Documents
from steelyard.web.workspace import Workspace

log = logging.getLogger("steelyard.web")

_REOPEN_SECONDS = 5.0
_RESERVED = {"drafts", "new"}
"""Names that addresses below /manage/ use for something else."""

# Frozen objects would survive the last garbage collection, and DuckDB reports what survives as a leak.
atexit.register(gc.unfreeze)


class AnswerTimes:
    """Recent times of answers in this process: of each annotator, and of all."""

    ENOUGH = 5
    """From this many answers on, an annotator's own times are used rather than everybody's."""

    _OWN, _ALL, _ANNOTATORS = 30, 300, 10_000

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._own: dict[str, deque[float]] = {}
        self._all: deque[float] = deque(maxlen=self._ALL)

    def has_times(self, annotator: str) -> bool:
        """Whether there are times of an annotator."""
        return annotator in self._own

    def begin(self, annotator: str, latest_first: Iterable[float | None]) -> None:
        """Add the times of an annotator's earlier answers."""
        times = [seconds for seconds in latest_first if seconds]
        with self._lock:
            if len(self._own) >= self._ANNOTATORS:
                self._own.clear()
            self._own.setdefault(annotator, deque(reversed(times), maxlen=self._OWN))

    def note(self, annotator: str, seconds: float | None) -> None:
        """Add the time of one answer."""
        if seconds:
            with self._lock:
                self._own.setdefault(annotator, deque(maxlen=self._OWN)).append(seconds)
                self._all.append(seconds)

    def seconds(self, annotator: str) -> float | None:
        """Return the median time of an answer: the annotator's own, or that of all annotators if there are few."""
        with self._lock:
            own = self._own.get(annotator, ())
            times = list(own if len(own) >= self.ENOUGH else self._all or own)
        return statistics.median(times) if times else None


class ServedStudy:
    """One study on a server: the open study, its slug, and the texts of its folder."""

    def __init__(self, folder: Path, slug: str, database: str | None, root_path: str = "") -> None:
        self.folder = folder
        self.slug = slug
        self.root_path = root_path
        self.answer_times = AnswerTimes()
        self.joining = threading.Lock()
        """Held while a name is looked up and assigned, so that two annotators cannot get the same one."""
        self._database = database
        self._lock = threading.Lock()
        self._tried = 0.0
        self._ready: set[str] = set()
        self._ready_since = 0
        self._platform_ledger: tuple[int, PlatformLedger] | None = None
        self._documents: dict[str, Documents] = {}
        self._contents: tuple[int, Contents] | None = None
        self._item_columns: pl.DataFrame | None = None
        self._open()

    def _open(self, member: str = "") -> None:
        self.study = Study.open(self.folder, database=self._database, member=member)
        self._tried = time.monotonic()
        self._contents = None
        self._item_columns = None
        page, link = self.study.config.page, self.study.config.link
        if link is not None and link.signed:
            # Raises now if the secret is missing, rather than at the first arrival.
            link_secret()
        self.media = MediaFolder(self.folder / page.media, f"{self.url}media/")
        texts = self.study.annotators.texts()
        self.consent_html = None if texts.consent is None else render_page_text(texts.consent, self.media.url)
        self.instructions_html = (
            None if texts.instructions is None else render_page_text(texts.instructions, self.media.url)
        )
        self.training: list[Question] = self.study.annotators.training()
        self._ready = set()
        # The log is read now, so that the first annotator does not wait for it. Its state is exempt from garbage
        # collection, because traversing millions of judgments would delay requests by seconds.
        _ = self.study.state
        gc.freeze()

    @property
    def database(self) -> str | None:
        """The database, if it is not the one in study.toml."""
        return self._database

    def documents(self, column: str) -> Documents:
        """Return the documents that a column of the items names; they are read again only if there are new items."""
        items = self.study.items
        if column not in self._documents or self._documents[column].count != len(items):
            self._documents[column] = Documents(items, column)
        return self._documents[column]

    def contents(self) -> Contents:
        """Return what the items contain, as far as the page loads something for it; cached until there are new ones."""
        if self._contents is None or self._contents[0] != len(self.study.items):
            self._contents = (len(self.study.items), contents_of(self.study.items, self.study.config.page))
        return self._contents[1]

    def item_columns(self) -> pl.DataFrame:
        """Return the items' further columns, for tables of scores; cached until there are new items."""
        if self._item_columns is None or self._item_columns.height != len(self.study.items):
            self._item_columns = item_columns(self.study.items)
        return self._item_columns

    @property
    def url(self) -> str:
        """Path of the annotators' page."""
        return f"{self.root_path}/s/{self.slug}/"

    @property
    def manage_url(self) -> str:
        """Path of the dashboard."""
        return f"{self.root_path}/manage/{self.slug}/"

    @property
    def api_url(self) -> str:
        """Path of the study's API, without a slash at its end."""
        return f"{self.root_path}/api/v1/studies/{self.slug}"

    def platform_ledger(self) -> PlatformLedger:
        """Return the ledger of the exchange with Prolific; it is read again only if the log has new steps."""
        notes = self.study.recruitment.steps()
        if self._platform_ledger is None or self._platform_ledger[0] != len(notes):
            self._platform_ledger = (len(notes), PlatformLedger.of(notes))
        return self._platform_ledger[1]

    def ending(self, annotator: str, reason_code: str) -> Ending | None:
        """Return how an annotator without further tasks returns to the panel."""
        return ending_for(self.study, annotator, reason_code, self.platform_ledger().codes)

    def reopen(self, member: str = "") -> None:
        """Read the study's folder again, which `member` changed; running requests keep the study that they have."""
        with self._lock:
            before = self.study
            self._open(member)
            before.close()

    def reopen_soon(self) -> None:
        """Reopen the study after its configuration changed, but not at every request."""
        with self._lock:
            if time.monotonic() - self._tried < _REOPEN_SECONDS:
                return
            self._tried = time.monotonic()
            try:
                fresh = Study.open(self.folder, database=self._database)
            except SteelyardError as error:
                log.error("study %s cannot be reopened: %s", self.slug, error)
                return
            fresh.close()
        self.reopen()

    def next_step(self, annotator: str) -> Literal["consent", "questionnaire", "training", "qualification"] | None:
        """Return what an annotator must do before the first task; the result is cached once it is None."""
        if self._ready_since != self.study.privacy.generation:
            # An annotator was forgotten: whoever uses that name now is a new annotator.
            self._ready, self._ready_since = set(), self.study.privacy.generation
        if annotator in self._ready:
            return None
        progress = self.study.annotators.progress(annotator)
        if not progress.consented:
            return "consent"
        if not progress.questioned:
            return "questionnaire"
        if not progress.trained:
            return "training"
        if progress.qualified is None:
            return "qualification"
        self._ready.add(annotator)
        return None

    def state_reason(self) -> str:
        """Return the manager's reason why the study is paused or closed; empty while it is open."""
        return "" if self.study.state == "open" else self.study.status().state_reason

    def minutes_left(self, annotator: str, progress: AnnotatorProgress) -> float | None:
        """Estimate the remaining minutes of an annotator with a limit; None if there are no times yet."""
        if progress.limit is None:
            return None
        if not self.answer_times.has_times(annotator):
            recent = self.study.annotators.recent_answers(annotator, 30) if progress.answered else []
            self.answer_times.begin(annotator, (answered.judgment.seconds for answered in recent))
        seconds = self.answer_times.seconds(annotator)
        left = max(0, progress.limit - progress.answered)
        return 0.0 if left == 0 else None if seconds is None else round(left * seconds / 60, 1)


class Studies:
    """All studies of a server: the given ones, and those of a workspace.

    `listing` is a file of folders that the server's worker processes share. `root_path` is the path under which a proxy
    serves them, such as /annotation; every link begins with it.
    """

    def __init__(
        self,
        folders: Iterable[Path] = (),
        *,
        database: str | None = None,
        listing: Path | None = None,
        workspace: Path | None = None,
        root_path: str = "",
    ) -> None:
        self.root_path = root_path
        self._database = database
        self._listing = listing
        self._workspace = None if workspace is None else Workspace(workspace)
        self._lock = threading.Lock()
        self._by_slug: dict[str, ServedStudy] = {}
        self._unreadable: dict[Path, tuple[int, str]] = {}
        """Folders of the workspace that could not be opened: when their study.toml was written, and why."""
        for folder in folders:
            self._open(folder)
        self._read_listing()
        self._read_workspace()

    def all(self) -> list[ServedStudy]:
        """Every study, in the order they were given."""
        self._read_listing()
        self._read_workspace()
        return list(self._by_slug.values())

    def get(self, slug: str) -> ServedStudy | None:
        """Find a study by its slug."""
        if slug not in self._by_slug:
            self._read_listing()
            self._read_workspace()
        return self._by_slug.get(slug)

    @property
    def database(self) -> str | None:
        """The database of all studies, if it is not the one in each study.toml."""
        return self._database

    @property
    def home(self) -> Path | None:
        """The folder in which new studies are created: the workspace, or the one that holds the first study."""
        if self._workspace is not None:
            return self._workspace.folder
        return next((served.folder.parent for served in self._by_slug.values()), None)

    @property
    def workspace_folder(self) -> Path | None:
        """The folder of the workspace, if the server has one."""
        return None if self._workspace is None else self._workspace.folder

    @property
    def unreadable(self) -> dict[str, str]:
        """Folders of the workspace that cannot be served, with the reason."""
        return {folder.name: reason for folder, (_, reason) in self._unreadable.items() if folder.exists()}

    def access_stores(self) -> list[Access]:
        """The stores of managers' sign-ins; new ones go into the first."""
        own = [] if self._workspace is None else [self._workspace.access]
        return own + [served.study.access for served in self.all()]

    def add(self, folder: Path) -> ServedStudy:
        """Serve one more study, in every worker process."""
        served = self._open(folder)
        if self._listing is not None:
            with self._listing.open("a", encoding="utf-8") as file:
                file.write(f"{folder.resolve()}\n")
        return served

    def reopen_soon(self, slug: str | None) -> None:
        """Reopen a study after another process changed its configuration."""
        served = self._by_slug.get(slug or "")
        if served is not None:
            served.reopen_soon()

    def close(self) -> None:
        """Close every study."""
        for served in self._by_slug.values():
            served.study.close()
        if self._workspace is not None:
            self._workspace.close()

    def _open(self, folder: Path) -> ServedStudy:
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
            served = ServedStudy(folder, slug, self._database, self.root_path)
            # A new dict, so that loops over the old one are not disturbed.
            self._by_slug = {**self._by_slug, slug: served}
            return served

    def _read_listing(self) -> None:
        if self._listing is None:
            return
        for line in self._listing.read_text(encoding="utf-8").splitlines():
            if line and not any(served.folder == Path(line) for served in self._by_slug.values()):
                self._open(Path(line))

    def _read_workspace(self) -> None:
        """Open studies that were added to the workspace; one that cannot be opened does not affect the others."""
        if self._workspace is None:
            return
        for folder in self._workspace.study_folders():
            if any(served.folder == folder for served in self._by_slug.values()):
                continue
            written = (folder / CONFIG_FILE).stat().st_mtime_ns
            if self._unreadable.get(folder, (0, ""))[0] == written:
                continue
            try:
                self._open(folder)
                self._unreadable.pop(folder, None)
            except SteelyardError as error:
                self._unreadable[folder] = (written, str(error.problems[0]) if error.problems else str(error))
                log.error("study %s cannot be opened: %s", folder.name, error)


def slug_of(folder: Path) -> str:
    """Return the slug of a study: its configured name, or its folder's, in lower-case ASCII."""
    name = read_config(folder / CONFIG_FILE).name or folder.resolve().name
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9]+", "-", plain).strip("-") or "study"
    return f"{slug}-study" if slug in _RESERVED else slug
