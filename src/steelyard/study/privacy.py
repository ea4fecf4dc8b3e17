"""Privacy: pseudonyms in exports and reports, and forgetting an annotator."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from steelyard.study.core import Core
from steelyard.study.pseudonyms import Names, pseudonym

if TYPE_CHECKING:
    from steelyard.study.forgetting import ForgetReport
    from steelyard.study.study import Study


class Privacy:
    """The protection of annotators' names, available as `study.privacy`."""

    def __init__(self, core: Core, study: Study) -> None:
        self._core = core
        self._study = study

    def pseudonym(self, annotator: str) -> str:
        """Return an annotator's name in the exports and reports of this study.

        People get pseudonyms; models keep their names.
        """
        return annotator if annotator in self._models() else pseudonym(self.secret, annotator)

    def names(self, *, real: bool = False) -> Names:
        """Return the names of all annotators in exports: pseudonyms, unless `real`."""
        with self._core.log.read() as state:
            names = state.names()
        return self.called(names, real=real)

    def called(self, annotators: Iterable[str], *, real: bool = False) -> Names:
        """Return the names of these annotators in exports: pseudonyms, unless `real` or models."""
        return Names.of(annotators, None if real else self.secret, models=self._models())

    def _models(self) -> set[str]:
        with self._core.log.read() as state:
            return set(state.judges)

    @property
    def secret(self) -> str:
        """The secret key of the pseudonyms. It is stored in the database and never exported."""
        return self._core.log.store.secret

    @property
    def generation(self) -> int:
        """A value that changes whenever an annotator is forgotten, which invalidates caches about annotators."""
        return self._core.log.generation

    def preview_forget(self, annotator: str) -> ForgetReport:
        """Return what forgetting an annotator would change, without changing anything."""
        from steelyard.study.forgetting import preview

        return preview(self._study, annotator)

    def forget(self, annotator: str) -> ForgetReport:
        """Remove an annotator from the study: judgments, consent, tokens, sessions and free texts."""
        from steelyard.study.forgetting import forget

        return forget(self._study, annotator)

    def complete_forgetting(self) -> None:
        """Complete the forgetting of an annotator that was interrupted, if there is one."""
        erasure = self._core.log.store.erasure()
        if erasure is not None and erasure.is_abandoned:
            from steelyard.study.forgetting import complete

            complete(self._study)
