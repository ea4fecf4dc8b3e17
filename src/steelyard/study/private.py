"""The part of a study that keeps people's names to itself."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from steelyard.store import Writer
from steelyard.study.journal import Journal
from steelyard.study.pseudonyms import Names, pseudonym


class Private:
    """Pseudonyms for what leaves the study, and the means to take a person out of it."""

    _journal: Journal
    _clock: Callable[[], int]

    def pseudonym(self, annotator: str) -> str:
        """What an annotator is called in exports and reports, the same in all of this study's."""
        return pseudonym(self.secret, annotator)

    def annotators(self) -> list[str]:
        """Everybody who was ever asked anything, agreed to take part, took the test, was excluded or recruited."""
        with self._journal.reading() as ledger:
            recruited = (ledger.recruits.arrivals, ledger.recruits.quotas)
            known = (
                ledger.tasks_of,
                ledger.consented,
                ledger.trained,
                ledger.test_answers,
                ledger.excluded,
                *recruited,
            )
            named = {name: None for part in known for name in (sorted(part) if isinstance(part, set) else part)}
            # What begins with a space stands in for somebody who was forgotten.
            return [name for name in named if name and not name.startswith(" ")]

    def names(self, *, real: bool = False) -> Names:
        """What everybody is called outside the study: by pseudonyms, unless `real`."""
        return Names.of(self.annotators(), None if real else self.secret)

    @property
    def secret(self) -> str:
        """What the pseudonyms are made with. It is in the database, and in no export."""
        return self._journal.secret

    @property
    def generation(self) -> int:
        """Changes when somebody was forgotten: what was remembered of people before may no longer be so."""
        return self._journal.generation

    def counted_of(self, annotator: str) -> int:
        """How many of an annotator's judgments count."""
        with self._journal.reading() as ledger:
            return ledger.counted_of(annotator)

    def now(self) -> int:
        """The time as the log writes it."""
        return self._clock()

    def rewriting(self) -> AbstractContextManager[Writer]:
        """Hold the study to change what its log says of the past (see `steelyard.study.forgetting`)."""
        return self._journal.rewriting()

    def wipe(self) -> str:
        """Take what was deleted off the disk, too; return what is left to do about that, if anything."""
        return self._journal.wipe()
