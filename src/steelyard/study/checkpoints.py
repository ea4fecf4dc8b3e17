"""Checkpoints: files beside a study with what was computed from its log, so that it need not be computed again.

A checkpoint holds a value (the state, or results of the dashboard) as of one event. It is used only if it is complete,
was written by the same version of the code under the same settings, and the log still has the same events up to there.
Anything else is ignored. Deleting checkpoints changes nothing but the time it takes to open the study.
"""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

import steelyard
from steelyard.designs import saved_state
from steelyard.study.config import Stage
from steelyard.version import __version__

log = logging.getLogger("steelyard.study")

FOLDER = ".steelyard-cache"
"""Name of the folder in the study's folder. Backups leave it out."""
_MAGIC = b"steelyard checkpoint 1\n"
_ABANDONED_SECONDS = 3600
"""Unfinished files of processes that were killed are deleted after this time."""
_HASHED_PACKAGES = (
    "analysis",
    "designs",
    "models",
    "observations",
    "protocols",
    "quality",
    "reliability",
    "study",
    "web",
)


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """What a checkpoint was computed from."""

    seq: int
    digest: str
    """Digest of event `seq`, which covers all events before it."""
    code: str
    settings: str
    checksum: str = ""
    """Digest of the other fields and of the value."""


@cache
def code_digest() -> str:
    """Return a digest of the code that folds logs and computes results, and of what it depends on."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(f"{__version__} {sys.version_info[:2]} {np.__version__}".encode())
    root = Path(str(steelyard.__file__)).parent
    for package in _HASHED_PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def settings_digest(*settings: Any) -> str:
    """Return a digest of settings that have a complete `repr`, as stages and configurations do."""
    return hashlib.blake2b(repr(settings).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def stages_digest(stages: Sequence[Stage]) -> str:
    """Return a digest of the stages and of the code of designs and protocols that plug-ins provide."""
    digest = hashlib.blake2b(settings_digest(*stages).encode(), digest_size=16)
    for stage in stages:
        for part in (stage.design, stage.protocol):
            file = getattr(sys.modules.get(type(part).__module__), "__file__", None)
            if file is not None and not type(part).__module__.startswith("steelyard."):
                digest.update(Path(file).read_bytes())
    return digest.hexdigest()


class Checkpoints:
    """The checkpoints of one study. Nothing fails here: a file is written or not, and valid or ignored."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / FOLDER

    def write(self, name: str, value: Any, *, seq: int, digest: str, settings: str) -> bool:
        """Write a checkpoint, whole or not at all; return whether it was written."""
        try:
            data = saved_state.save(value)
            header = Header(seq=seq, digest=digest, code=code_digest(), settings=settings)
            header = msgspec.structs.replace(header, checksum=_checksum(header, data))
            self._replace(name, _MAGIC + msgspec.json.encode(header) + b"\n", data)
        except Exception as error:
            # Every exception: the study works without checkpoints (folder read-only, disk full, a plug-in's state
            # that cannot be saved).
            log.info("no checkpoint '%s' was written: %s: %s", name, type(error).__name__, error)
            return False
        return True

    def _replace(self, name: str, *parts: bytes) -> None:
        self.folder.mkdir(mode=0o700, exist_ok=True)
        for unfinished in self.folder.glob("*.part"):
            with suppress(OSError):
                if time.time() - unfinished.stat().st_mtime > _ABANDONED_SECONDS:
                    unfinished.unlink()
        path = self.folder / f"{name}-{secrets.token_hex(4)}.part"
        try:
            # Names of annotators are in it: only the owner may read it.
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                for part in parts:
                    file.write(part)
            path.replace(self.folder / name)
        except BaseException:
            path.unlink(missing_ok=True)
            raise

    def read(self, name: str, *, settings: str, digest_of: Callable[[int], str | None]) -> Any:
        """Return the value of a checkpoint; None if there is no valid one.

        `digest_of` returns the digest of an event of the log, None if there is no such event.
        """
        try:
            with (self.folder / name).open("rb") as file:
                if file.read(len(_MAGIC)) != _MAGIC:
                    return None
                header = msgspec.json.decode(file.readline(10_000), type=Header)
                is_of_log = header.digest == digest_of(header.seq)
                is_usable = is_of_log and (header.code, header.settings) == (code_digest(), settings)
                data = file.read() if is_usable else b""
            if not is_of_log:
                # Somebody was forgotten since; or it is another log.
                self.delete(before=header.seq + 1)
            if not is_usable:
                return None
            return saved_state.load(data) if _checksum(header, data) == header.checksum else None
        except FileNotFoundError:
            return None
        except Exception as error:
            # Every exception: whatever is in the file, the log has everything.
            log.info("the checkpoint '%s' is ignored: %s: %s", name, type(error).__name__, error)
            return None

    def seq(self, name: str, *, settings: str) -> int:
        """Return the event of a checkpoint of this code and these settings; 0 if there is none."""
        try:
            with (self.folder / name).open("rb") as file:
                file.read(len(_MAGIC))
                header = msgspec.json.decode(file.readline(10_000), type=Header)
        except (OSError, msgspec.MsgspecError):
            return 0
        return header.seq if (header.code, header.settings) == (code_digest(), settings) else 0

    def delete_if_rewritten(self, seq: int, digest: str, digest_of: Callable[[int], str | None]) -> None:
        """Delete the checkpoints up to event `seq` if an annotator was forgotten since it had this digest."""
        if digest_of(seq) != digest:
            self.delete(before=seq + 1)

    def delete(self, *, before: int | None = None) -> None:
        """Delete all checkpoints, or those of events before one: an annotator was forgotten whom they may name."""
        if self.folder.is_dir():
            for path in self.folder.iterdir():
                if before is None or _seq_of(path) < before:
                    with suppress(OSError):
                        path.unlink()


def _seq_of(path: Path) -> int:
    """Return the event of a checkpoint; 0 for any other file."""
    try:
        with path.open("rb") as file:
            file.read(len(_MAGIC))
            return msgspec.json.decode(file.readline(10_000), type=Header).seq
    except (OSError, msgspec.MsgspecError):
        return 0


def _checksum(header: Header, data: bytes) -> str:
    fields = f"{header.seq} {header.digest} {header.code} {header.settings} ".encode()
    digest = hashlib.blake2b(fields, digest_size=16)
    digest.update(data)
    return digest.hexdigest()
