"""Backup of a whole study in one file, made while it is served and restored anywhere, its digests checked both times.

The file is a ZIP archive: `manifest.json`, `log.jsonl` (as `steelyard export --what log --real-ids` writes it),
`access.jsonl` (digests of the tokens that let people in), `secret.txt` (what pseudonyms are made with), and `folder/`
(study.toml, items, media and the rest).
"""

from __future__ import annotations

import json
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import IO

from steelyard.errors import DataError, StoreError
from steelyard.storage import Store
from steelyard.storage.engine import sqlite_files, study_url
from steelyard.storage.events import to_json
from steelyard.study.config import CONFIG_FILE, read_config
from steelyard.study.rebuild import parse_log, replay, unaltered, whole_file
from steelyard.version import __version__

FORMAT = 1
SUFFIX = ".steelyard"
_MANIFEST, _LOG, _ACCESS, _SECRET, _FOLDER = "manifest.json", "log.jsonl", "access.jsonl", "secret.txt", "folder/"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a backup holds: how many events, up to which digest, and when it was made."""

    format: int
    software: str
    name: str
    made: str
    events: int
    digest: str
    tokens: int
    files: int


def backup(folder: str | Path, path: str | Path, *, database: str | None = None) -> Manifest:
    """Write a snapshot of a study to one file, completely or not at all, while annotators continue to judge.

    The log's digests are checked on the way. A file that is there already is left alone.
    """
    folder, path = Path(folder), Path(path)
    config = read_config(folder / CONFIG_FILE)
    url = study_url(folder, config.database, database)
    with Store.open(url, config.name, create=False) as store, _new_file(path) as file, store.snapshot() as moment:
        tokens = moment.tokens()
        files = _files(folder, sqlite_files(url) | {path.resolve()})
        manifest = Manifest(
            format=FORMAT,
            software=__version__,
            name=store.name,
            made=datetime.now(UTC).isoformat(timespec="seconds"),
            events=moment.last_seq,
            digest=moment.digest,
            tokens=len(tokens),
            files=len(files),
        )
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(_MANIFEST, json.dumps(asdict(manifest), indent=1, ensure_ascii=False))
            for found in files:
                archive.write(found, f"{_FOLDER}{found.relative_to(folder).as_posix()}")
            archive.writestr(_ACCESS, "".join(f"{to_json(token)}\n" for token in tokens))
            archive.writestr(_SECRET, moment.secret)
            with archive.open(_LOG, "w", force_zip64=True) as log:
                for line in moment.log_lines():
                    log.write(f"{line}\n".encode())
    return manifest


def restore(path: str | Path, folder: str | Path, *, database: str | None = None) -> Manifest:
    """Build the study of a backup in a new folder: all of it, or nothing.

    Its judgments go where `database` says, else where its study.toml does, else beside it. Nothing is overwritten:
    the folder must not be there, and the database must not hold the study. Every event's digest is checked.
    """
    path, folder = Path(path), Path(folder)
    if folder.exists():
        raise DataError(f"{folder} already exists.", "Nothing is overwritten: choose a new folder.")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}-"))
    except OSError as error:
        raise DataError(f"{folder} cannot be created: {error.strerror}.", "Check the parent folder.") from None
    try:
        with _opened(path) as archive:
            manifest = _manifest(archive, path)
            _unpack_folder(archive, path, scratch)
            config = read_config(scratch / CONFIG_FILE)
            url = study_url(scratch, config.database, database)
            with Store.open(url, config.name or manifest.name or None) as store:
                _write_database(archive, path, manifest, store)
        scratch.chmod(0o755)
        scratch.rename(folder)
    except OSError as error:
        raise DataError(
            f"{folder} cannot be written: {error.strerror}.", "Check the folder and the free disk space."
        ) from None
    finally:
        if scratch.exists():
            shutil.rmtree(scratch)
    return manifest


def _write_database(archive: zipfile.ZipFile, path: Path, manifest: Manifest, store: Store) -> None:
    with store.write() as writer:
        with archive.open(_LOG) as lines:
            replay(unaltered(parse_log(lines, f"{path.name}: {_LOG}")), writer)
        if (writer.last_seq, writer.digest) != (manifest.events, manifest.digest):
            raise StoreError(
                f"{path} contains {writer.last_seq:,} events instead of {manifest.events:,}.",
                "Use another backup.",
            )
        # Annotators keep their pseudonyms.
        writer.keep_secret(archive.read(_SECRET).decode())
        writer.add_tokens(json.loads(line) for line in archive.read(_ACCESS).decode().splitlines())


def _files(folder: Path, without: set[Path]) -> list[Path]:
    """List what belongs to a study besides its database: every file in its folder but hidden ones and backups."""
    return [
        found
        for found in sorted(folder.rglob("*"))
        if found.is_file()
        and found.resolve() not in without
        and found.suffix != SUFFIX
        and not any(part.startswith(".") for part in found.relative_to(folder).parts)
    ]


@contextmanager
def _new_file(path: Path) -> Iterator[IO[bytes]]:
    """Write a new file at once, or not at all; an existing one is refused."""
    if path.exists():
        raise DataError(f"{path} already exists.", "Nothing is overwritten: choose another name.")
    with whole_file(path) as file:
        yield file


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except FileNotFoundError:
        raise DataError(f"there is no file {path}.", "Give the file that steelyard backup wrote.") from None
    except (zipfile.BadZipFile, EOFError, KeyError, zlib.error) as error:
        raise DataError(f"{path} is damaged or incomplete: {error}.", "Use another backup.") from None


def _manifest(archive: zipfile.ZipFile, path: Path) -> Manifest:
    try:
        content = json.loads(archive.read(_MANIFEST))
        if content["format"] > FORMAT:
            raise DataError(
                f"{path} was written by a newer version of Steelyard ({content['software']}; this is {__version__}).",
                "Upgrade Steelyard: pip install -U steelyard.",
            )
        return Manifest(**content)
    except (ValueError, TypeError, KeyError):
        raise DataError(f"{path} is not a backup of a study.", "Give the file that steelyard backup wrote.") from None


def _unpack_folder(archive: zipfile.ZipFile, path: Path, folder: Path) -> None:
    for name in archive.namelist():
        if not name.startswith(_FOLDER):
            continue
        parts = PurePosixPath(name.removeprefix(_FOLDER)).parts
        if not parts or any(part in {"..", "/"} or "\\" in part or ":" in part for part in parts):
            raise DataError(f"{path} contains a file with an invalid name, {name!r}.", "Use another backup.")
        place = folder.joinpath(*parts)
        place.parent.mkdir(parents=True, exist_ok=True)
        with archive.open(name) as packed, place.open("wb") as file:
            shutil.copyfileobj(packed, file)
