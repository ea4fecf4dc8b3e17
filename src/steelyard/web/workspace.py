"""The workspace: a folder of studies, with the drafts and the sign-ins of the server that serves it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from steelyard.errors import ConfigError
from steelyard.storage import Access, Store
from steelyard.study.config import CONFIG_FILE
from steelyard.study.core import now_in_microseconds

DEFAULT_WORKSPACE = Path("steelyard-studies")
HIDDEN_FOLDER = ".steelyard"
"""Folder of the server's own files beside the studies: drafts, and the database of sign-ins."""


class Workspace:
    """A folder of studies, created if it does not exist."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        try:
            (self.folder / HIDDEN_FOLDER).mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(
                f"the workspace {self.folder} cannot be created: {error.strerror}.",
                "Choose a folder that you may write to: --workspace DIR.",
            ) from None
        # Sign-ins need a database before the first study exists.
        self._store = Store.open(f"sqlite:///{self.folder / HIDDEN_FOLDER / 'server.db'}", "server")
        self.access: Access = self._store.access(now_in_microseconds)

    def study_folders(self) -> Iterator[Path]:
        """Yield the folders that hold a study.toml, in alphabetical order."""
        for folder in sorted(self.folder.iterdir()):
            if not folder.name.startswith(".") and (folder / CONFIG_FILE).is_file():
                yield folder

    def close(self) -> None:
        """Close the database."""
        self._store.close()
