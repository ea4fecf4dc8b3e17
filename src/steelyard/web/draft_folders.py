"""Drafts: folders in which studies are prepared in the browser, step by step, before they are created or changed.

A draft is a folder with the files of the study to be (study.toml, items.csv, question files, media) and draft.json,
which keeps what study.toml does not: the uploaded file and the roles of its columns, the step, and the choices that
the server makes unless the researcher does (design and model). All names of files are chosen here.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path, PurePath, PurePosixPath
from typing import Annotated, Any, Literal

import polars as pl
import tomlkit
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from steelyard.errors import ConfigError, DataError, Problem, SteelyardError
from steelyard.formats import read_items, write_table
from steelyard.formats.item_columns import ROLES, ItemsReading, Role, guess_roles, hold_conversations, items_of_upload
from steelyard.formats.tables import open_table, strings
from steelyard.formats.toml_reading import parse_toml, refuse_extreme_values
from steelyard.formats.uploaded_judgments import UploadedJudgments, judgments_of_upload
from steelyard.formats.uploads import ReadingOptions, UploadedTable, read_upload
from steelyard.quality.questions import QUESTION_COLUMNS
from steelyard.records import Item
from steelyard.study import Study
from steelyard.study.config import CONFIG_FILE
from steelyard.study.config.tables import ItemsSource
from steelyard.study.confinement import MARKER_FILE, confine, confinement_problems, is_confined, plain_file
from steelyard.study.importing import import_file
from steelyard.study.recipes import choose_design, recipe_toml, recorded_judgments
from steelyard.web.content import MEDIA_ENDINGS, MediaFolder, begins_as_named, media_file
from steelyard.web.drafts import (
    SavedStudyOut,
    free_folder,
    problems_out,
    protocol_of,
    refuse_odd_characters,
    replace_files,
    toml_text,
)
from steelyard.web.errors import Refusal
from steelyard.web.settings_forms import forms
from steelyard.web.studies import ServedStudy, Studies
from steelyard.web.toml_merging import merged_toml
from steelyard.web.workspace import HIDDEN_FOLDER

ITEMS_FILE = "items.csv"
MEDIA_FOLDER = "media"
MAX_MEDIA_BYTES = 2_000_000_000
"""Total size of the media of one draft."""
MAX_DRAFTS = 200
_ABOUT_FILE = "draft.json"
_UPLOAD_STEM = "upload"
_LONGEST_NAME = 150
_ID = re.compile(r"[0-9a-f]{16}")

Step = Literal["items", "question", "plan", "quality", "share"]
QuestionsKind = Literal["checks", "qualification", "training"]
_QUESTION_ALIASES = {"item": "items", "text": "items", "gold": "answer", "source": "context"}
_QUESTION_KEYS: dict[QuestionsKind, tuple[str, ...]] = {
    "checks": ("quality", "checks", "file"),
    "qualification": ("quality", "qualification", "file"),
    "training": ("annotators", "training"),
}
"""Where study.toml names the file of each kind of questions."""


class _Stored(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Upload(_Stored):
    """The uploaded items file, and how it is read."""

    name: str
    file: str
    has_header: bool | None = None
    separator: str | None = None
    encoding: str | None = None
    sheet: str | None = None
    roles: dict[str, Role] = {}
    drop_repeats: bool = False


class StagePlan(_Stored):
    """How much a stage asks; `automatic` if the server chooses the design."""

    automatic: bool = True
    judgments: Annotated[int | None, Field(ge=1, le=1000)] = None
    document: Annotated[str, Field(max_length=1000, description="column of the documents; empty: single items")] = ""


class DraftAbout(_Stored):
    """Data of a draft that are not in study.toml."""

    study: str | None = None
    step: Step = "items"
    upload: Upload | None = None
    plan: list[StagePlan] = []
    automatic_model: bool = True
    annotators: Annotated[int | None, Field(ge=1, le=100_000)] = None
    seconds: Annotated[float | None, Field(gt=0, le=36_000)] = None
    base: Annotated[str, Field(description="digest of the study's configuration when the draft was made")] = ""
    changed: list[str] = []
    updated: float = 0.0


class DraftFolder:
    """One draft. `served` is the study that it changes; None for a new study."""

    def __init__(self, path: Path, about: DraftAbout, served: ServedStudy | None, root_path: str = "") -> None:
        self.path = path
        self.root_path = root_path
        self.about = about
        self.served = served

    @property
    def id(self) -> str:
        """The random name of the folder."""
        return self.path.name

    # study.toml

    def text(self) -> str:
        """The text of study.toml."""
        return (self.path / CONFIG_FILE).read_text(encoding="utf-8")

    def values(self) -> dict[str, Any]:
        """The contents of study.toml; raises ConfigError if it is not TOML."""
        return parse_toml(self.text(), field="text")

    def save_text(self, text: str) -> None:
        """Replace study.toml by what was typed; designs and models that differ from the automatic ones are kept."""
        refuse_odd_characters({"text": text})
        before = self._values_or_empty()
        _write(self.path / CONFIG_FILE, text.encode())
        self._note(CONFIG_FILE)
        values = self._values_or_empty()
        if values.get("model") != before.get("model"):
            self.about.automatic_model = False
        if [stage.get("design") for stage in stage_tables(values)] != [
            stage.get("design") for stage in stage_tables(before)
        ]:
            self.about.plan = [plan.model_copy(update={"automatic": False}) for plan in self.plans(values)]
        self.save()

    def save_values(self, values: Mapping[str, Any]) -> None:
        """Write the values of the form into study.toml; comments and the order of keys are kept."""
        refuse_odd_characters(values)
        refuse_extreme_values(values)
        arranged = self.arranged(dict(values))
        try:
            text = merged_toml(self.text(), arranged)
        except (ConfigError, tomlkit.exceptions.TOMLKitError):
            text = toml_text(arranged)
        _write(self.path / CONFIG_FILE, text.encode())
        self._note(CONFIG_FILE)
        self.save()

    def _values_or_empty(self) -> dict[str, Any]:
        try:
            return self.values()
        except ConfigError:
            return {}

    def plans(self, values: Mapping[str, Any]) -> list[StagePlan]:
        """The plan of each stage; stages of a study that exists are not planned automatically."""
        count = max(1, len(stage_tables(values)))
        default = StagePlan(automatic=self.served is None)
        return (self.about.plan + [default] * count)[:count]

    def arranged(self, values: dict[str, Any]) -> dict[str, Any]:
        """Fill in the design and the model where the researcher has not chosen them."""
        values.setdefault("items", ITEMS_FILE)
        items = self.items()
        self.about.plan = self.plans(values)
        protocols = []
        for stage, plan in zip(stage_tables(values), self.about.plan, strict=False):
            protocol = protocol_of(stage.get("protocol"))
            protocols.append(protocol)
            if protocol is not None and plan.automatic:
                stage["design"] = choose_design(protocol, items, plan.judgments, plan.document).settings
        first = next((protocol for protocol in protocols if protocol is not None), None)
        if first is not None:
            accepting = {name for p in protocols if p is not None for name in forms().protocols[p.name].models}
            own = values.get("model")
            name = own.get("name") if isinstance(own, Mapping) else None
            if (self.about.automatic_model and self.served is None) or (name is not None and name not in accepting):
                design: Mapping[str, Any] = next((stage.get("design", {}) for stage in stage_tables(values)), {})
                chosen = first.fitting_model() or first.model_of_new_studies(str(design.get("name", "")))
                values["model"] = {"name": chosen}
        return values

    # Items

    def items(self) -> list[Item]:
        """The items, as far as they can be read."""
        table = self._values_or_empty().get("items", ITEMS_FILE)
        try:
            source = ItemsSource(file=table) if isinstance(table, str) else ItemsSource.model_validate(table)
        except ValidationError:
            return []
        path = self.path / source.file
        if self.file_problems() or not path.is_file():
            return []
        status = path.stat()
        try:
            return _read_items_once(path, source.model_dump_json(), status.st_mtime_ns, status.st_size)
        except SteelyardError:
            return []

    def set_upload(self, data: bytes, name: str) -> None:
        """Store an uploaded file of items; it replaces the earlier one if it can be read."""
        name = plain_name(name)
        upload = read_upload(data, name)
        file = _UPLOAD_STEM + PurePath(name).suffix.lower()
        for earlier in self.path.glob(f"{_UPLOAD_STEM}.*"):
            earlier.unlink()
        _write(self.path / file, data)
        self._write_items(Upload(name=name, file=file, roles=guess_roles(upload)), upload)

    def set_columns(self, changes: Mapping[str, Any]) -> None:
        """Change how the uploaded file is read: header, separator, encoding, sheet, roles, repeated rows."""
        if self.about.upload is None:
            raise Refusal(409, "no_upload", "There is no file of items in this draft.", "Choose a file first.")
        try:
            about = Upload.model_validate({**self.about.upload.model_dump(), **changes})
        except ValidationError as error:
            raise Refusal(
                422, "columns_invalid", str(error.errors()[0]["msg"]), f"Roles: {', '.join(ROLES)}."
            ) from None
        upload = _upload(self.path, about)
        if set(about.roles) != set(upload.table.frame.columns):
            about.roles = guess_roles(upload)
        self._write_items(about, upload)

    def reading(self, about: Upload) -> tuple[UploadedTable, ItemsReading | None, list[Problem]]:
        """Return the uploaded table, its items, and what is wrong with them."""
        status = (self.path / about.file).stat()
        return _read_upload_once(self.path, about.model_dump_json(), status.st_mtime_ns, status.st_size)

    def judgments(self) -> UploadedJudgments | None:
        """The judgments in the uploaded file, if it has any; raises DataError if they cannot be used."""
        about = self.about.upload
        if about is None or self.served is not None:
            return None
        status = (self.path / about.file).stat()
        return _find_judgments_once(self.path, about.model_dump_json(), status.st_mtime_ns, status.st_size)

    def _write_items(self, about: Upload, upload: UploadedTable) -> None:
        self.about.upload = about
        name = self._items_name()
        path = self.path / name
        path.unlink(missing_ok=True)
        try:
            reading = items_of_upload(upload, about.roles, drop_repeats=about.drop_repeats)
        except DataError:
            # The problems are reported with the state of the draft.
            self.save()
            return
        write_table(reading.frame, path)
        self._note(name)
        values = {**self._values_or_empty(), "items": name}
        formats = _guess_formats(reading.items)
        if formats and not values.get("page"):
            values["page"] = formats
        self.save_values(values)

    def _items_name(self) -> str:
        """Choose the name under which items are saved; a file with another purpose is not overwritten."""
        if self.served is None:
            return ITEMS_FILE
        current = self.served.study.config.items.file
        if plain_file(current, (".csv",)) and not (self.served.folder / current).is_symlink():
            return current
        name, number = ITEMS_FILE, 1
        while os.path.lexists(self.served.folder / name):
            number += 1
            name = f"items-{number}.csv"
        return name

    # Questions with known answers

    def questions(self, kind: QuestionsKind) -> list[dict[str, str]]:
        """The rows of a file of questions."""
        name = _at(self._values_or_empty(), _QUESTION_KEYS[kind])
        if not isinstance(name, str) or self.file_problems() or not (self.path / name).is_file():
            return []
        try:
            return _question_rows(open_table(self.path / name).frame)
        except SteelyardError:
            return []

    def set_questions(self, kind: QuestionsKind, rows: list[dict[str, str]]) -> None:
        """Save questions typed in the browser; without any, study.toml no longer names them."""
        keys = _QUESTION_KEYS[kind]
        values = self._values_or_empty()
        rows = [row for row in rows if any(value.strip() for value in row.values())]
        name = self._questions_name(kind, _at(values, keys))
        if rows:
            columns = [column for column in QUESTION_COLUMNS if any(row.get(column) for row in rows)] or ["items"]
            frame = pl.DataFrame({column: [row.get(column, "") for row in rows] for column in columns})
            (self.path / name).unlink(missing_ok=True)
            write_table(frame, self.path / name)
            self._note(name)
            _put(values, keys, name)
        else:
            _put(values, keys, None)
            if kind != "training":
                _put(values, keys[:-1], None)
        self.save_values(values)

    def set_questions_file(self, kind: QuestionsKind, data: bytes, name: str) -> None:
        """Save an uploaded file of questions."""
        frame = read_upload(data, plain_name(name), ReadingOptions(has_header=True)).table.frame
        rows = _question_rows(frame)
        if not rows or not any(row.get("items") for row in rows):
            raise DataError(
                "there is no column items.",
                f"Give it the columns items and answer (or best, worst, marked); known: {', '.join(QUESTION_COLUMNS)}.",
                file=plain_name(name),
            )
        self.set_questions(kind, rows)

    def _questions_name(self, kind: str, current: object) -> str:
        if isinstance(current, str) and plain_file(current, (".csv",)):
            study = None if self.served is None else self.served.folder / current
            if study is None or not study.is_symlink():
                return current
        return f"{kind}.csv"

    # Media

    @property
    def media_folder(self) -> Path:
        """Where media files are: in the draft, or in the study that it changes."""
        if self.served is None:
            return self.path / MEDIA_FOLDER
        return self.served.folder / self.served.study.config.page.media

    @property
    def media(self) -> MediaFolder:
        """The media files, and the address that shows them to the manager."""
        api = f"{self.root_path}/api/v1" if self.served is None else self.served.api_url
        return MediaFolder(self.media_folder, f"{api}/manage/drafts/{self.id}/media/")

    def media_names(self) -> list[str]:
        """The names of all media files, with subfolders."""
        folder = self.media_folder
        if not folder.is_dir():
            return []
        paths = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
        return sorted(path.relative_to(folder).as_posix() for path in paths)

    def media_target(self, name: str) -> Path:
        """Return where an uploaded media file is saved: under the name by which an item refers to it, or its own."""
        base = PurePosixPath(name.replace("\\", "/")).name
        suffix = PurePath(base).suffix.lower()
        if suffix not in MEDIA_ENDINGS:
            raise DataError(
                f"browsers cannot show files with the suffix '{plain_name(suffix)}'.",
                f"Use one of {' '.join(sorted(MEDIA_ENDINGS))}.",
                file=plain_name(base),
            )
        if base.startswith(".") or not base.isprintable() or len(base) > _LONGEST_NAME:
            raise DataError("this is not a valid file name.", "Rename it.", file=plain_name(base))
        files = {media_file(item.media)[0] for item in self.items() if item.media}
        references = {file for file in files if PurePosixPath(file).name == base}
        folder = self.media_folder
        path = folder / (references.pop() if len(references) == 1 else base)
        if not path.resolve().is_relative_to(folder.resolve()):
            raise DataError(
                "an item refers to it outside the media folder.", "Correct the items.", file=plain_name(base)
            )
        if self.served is not None and not folder.resolve().is_relative_to(self.served.folder.resolve()):
            raise DataError(
                "the study's media are in another folder, which cannot be changed in the browser.",
                "Copy the files there on the server.",
                file=plain_name(base),
            )
        return path

    def add_media(self, part: Path, target: Path) -> None:
        """Move an uploaded media file to its place, if it is what its name says and there is room."""
        if not begins_as_named(part, target.name):
            raise DataError(
                "its content does not match its suffix.", "Save it again in the format of its suffix.", file=target.name
            )
        used = sum((self.media_folder / name).stat().st_size for name in self.media_names())
        if used + part.stat().st_size > MAX_MEDIA_BYTES:
            raise DataError(
                f"with it, the media have more than {MAX_MEDIA_BYTES / 1e9:g} GB.",
                "Upload smaller files.",
                file=target.name,
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(part, target)

    # Checks

    def file_problems(self) -> list[Problem]:
        """Name files and databases in study.toml that are not in the study's folder."""
        try:
            data = self.values()
        except ConfigError:
            return []
        if self.served is None:
            return confinement_problems(data, self.path)
        folder = self.served.folder
        unchanged = None if is_confined(folder) else self.served.study.config.source
        return confinement_problems(data, folder, unchanged)

    def save(self) -> None:
        """Write draft.json."""
        self.about.updated = time.time()
        _write(self.path / _ABOUT_FILE, self.about.model_dump_json().encode())

    def _note(self, name: str) -> None:
        if name not in self.about.changed:
            self.about.changed.append(name)

    def delete(self) -> None:
        """Delete the draft."""
        shutil.rmtree(self.path, ignore_errors=True)


class Drafts:
    """The drafts of a server, in a hidden folder beside its studies."""

    def __init__(self, studies: Studies) -> None:
        self._studies = studies

    def _home(self) -> Path:
        home = self._studies.home
        if home is None:
            raise Refusal(
                409, "nowhere", "There is no folder for new studies.", "Start the server with --workspace DIR."
            )
        return home

    def _folder(self) -> Path:
        folder = self._home() / HIDDEN_FOLDER / "drafts"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder

    def all(self) -> list[DraftFolder]:
        """Every draft, the one edited last first."""
        home = self._studies.home
        folder = None if home is None else home / HIDDEN_FOLDER / "drafts"
        if folder is None or not folder.is_dir():
            return []
        drafts = [draft for path in folder.iterdir() if (draft := self._read(path)) is not None]
        return sorted(drafts, key=lambda draft: -draft.about.updated)

    def get(self, draft_id: str) -> DraftFolder:
        """Find a draft."""
        draft = self._read(self._folder() / draft_id) if _ID.fullmatch(draft_id) else None
        if draft is None:
            raise Refusal(
                404, "no_such_draft", "There is no such draft.", "It may have been finished or deleted; see the list."
            )
        return draft

    def _read(self, path: Path) -> DraftFolder | None:
        try:
            about = DraftAbout.model_validate_json((path / _ABOUT_FILE).read_bytes())
        except (OSError, ValidationError):
            return None
        served = None if about.study is None else self._studies.get(about.study)
        return None if about.study is not None and served is None else self._draft(path, about, served)

    def _draft(self, path: Path, about: DraftAbout, served: ServedStudy | None) -> DraftFolder:
        return DraftFolder(path, about, served, self._studies.root_path)

    def create(self, served: ServedStudy | None = None) -> DraftFolder:
        """Create a draft of a new study, or of changes to a study; unfinished changes are continued."""
        if served is not None:
            for draft in self.all():
                if draft.served is served:
                    if draft.about.base == _config_digest(served):
                        return draft
                    draft.delete()
        elif sum(draft.served is None for draft in self.all()) >= MAX_DRAFTS:
            raise Refusal(409, "too_many_drafts", f"There are {MAX_DRAFTS} drafts.", "Delete some of them first.")
        path = self._folder() / secrets.token_hex(8)
        path.mkdir(mode=0o700)
        draft = self._draft(path, DraftAbout(), served)
        if served is None:
            _write(path / CONFIG_FILE, toml_text({"items": ITEMS_FILE}).encode())
        else:
            for file in served.folder.iterdir():
                if file.name not in {CONFIG_FILE, MARKER_FILE} and ".db" not in file.name:
                    (path / file.name).symlink_to(file.resolve())
            shutil.copyfile(served.folder / CONFIG_FILE, path / CONFIG_FILE)
            draft.about.study, draft.about.base = served.slug, _config_digest(served)
            draft.about.automatic_model = False
        draft.save()
        return draft

    def finish(self, draft: DraftFolder, *, member: str = "") -> SavedStudyOut:
        """Create the study of a draft, or change the study that it is about, on behalf of a member of its team."""
        problems = draft.file_problems()
        if problems:
            return SavedStudyOut(problems=problems_out(problems))
        result = self._create_study(draft) if draft.served is None else _change_study(draft, draft.served, member)
        if not result.problems:
            draft.delete()
        return result

    def create_from_judgments(self, draft: DraftFolder) -> SavedStudyOut:
        """Create a closed study from the judgments in the uploaded file, for its scores and report."""
        judgments = draft.judgments()
        if judgments is None:
            raise Refusal(409, "no_judgments", "The uploaded file has no judgments.", "Continue with its items.")
        name = "the upload" if draft.about.upload is None else draft.about.upload.name
        recipe = recorded_judgments(
            judgments.judgments, judgments.texts, title=PurePath(name).stem or "Judgments", source=name
        )

        def fill(scratch: Path, study_name: str) -> None:
            recipe.items.write_csv(scratch / ITEMS_FILE)
            text = recipe_toml(replace(recipe, values={"name": study_name, **recipe.values}), ())
            (scratch / CONFIG_FILE).write_text(text, encoding="utf-8")

        def begin(study: Study) -> None:
            # The file would keep the names of annotators who are forgotten later.
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "judgments.csv"
                write_table(judgments.rows, path)
                import_file(study, path)
            study.set_state("closed", f"judgments imported from {name}")

        result = self._add_study(draft.id, str(recipe.values["title"]), fill, begin)
        if not result.problems:
            draft.delete()
        return result

    def _create_study(self, draft: DraftFolder) -> SavedStudyOut:
        values = draft.values()

        def fill(scratch: Path, name: str) -> None:
            for file in draft.path.iterdir():
                if file.name in {_ABOUT_FILE, CONFIG_FILE} or file.stem == _UPLOAD_STEM or file.name.startswith("."):
                    continue
                (shutil.copytree if file.is_dir() else shutil.copyfile)(file, scratch / file.name)
            # Studies that share a database need distinct names.
            text = draft.text() if values.get("name") else merged_toml(draft.text(), {**values, "name": name})
            (scratch / CONFIG_FILE).write_text(text, encoding="utf-8")

        return self._add_study(draft.id, str(values.get("title", "")), fill)

    def _add_study(
        self,
        draft_id: str,
        title: str,
        fill: Callable[[Path, str], None],
        begin: Callable[[Study], None] = lambda study: None,
    ) -> SavedStudyOut:
        """Add a study whose files `fill(folder, name)` writes, and whose log `begin(study)` begins."""
        home = self._home()
        folder = free_folder(home, title)
        scratch = home / HIDDEN_FOLDER / f"new-{draft_id}"
        shutil.rmtree(scratch, ignore_errors=True)
        try:
            scratch.mkdir(mode=0o755)
            # Written first, so that the folder is never opened without its restrictions.
            confine(scratch)
            fill(scratch, folder.name)
            # Opened before it gets its name: other processes serve a folder of the workspace as soon as they see it.
            with Study.open(scratch, database=self._studies.database) as study:
                begin(study)
            os.rename(scratch, folder)
        except SteelyardError as error:
            return SavedStudyOut(problems=problems_out(error.problems))
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        new = self._studies.add(folder)
        return SavedStudyOut(study=new.slug, url=new.manage_url)


def _change_study(draft: DraftFolder, served: ServedStudy, member: str) -> SavedStudyOut:
    if draft.about.base != _config_digest(served):
        raise Refusal(
            409,
            "changed_elsewhere",
            "The study was changed elsewhere while you edited it.",
            "Nothing was saved. Open it again to continue from its current state.",
        )
    new = {name: (draft.path / name).read_bytes() for name in draft.about.changed if (draft.path / name).is_file()}
    return replace_files(served, new, member=member)


def _config_digest(served: ServedStudy) -> str:
    return hashlib.sha256((served.folder / CONFIG_FILE).read_bytes()).hexdigest()


def _upload(folder: Path, about: Upload) -> UploadedTable:
    options = ReadingOptions(about.has_header, about.separator, about.encoding, about.sheet)
    return read_upload((folder / about.file).read_bytes(), about.name, options)


@lru_cache(maxsize=4)
def _read_upload_once(
    folder: Path, about_json: str, changed: int, size: int
) -> tuple[UploadedTable, ItemsReading | None, list[Problem]]:
    """Read an upload; `changed` and `size` tell when the file must be read again."""
    about = Upload.model_validate_json(about_json)
    upload = _upload(folder, about)
    try:
        return upload, items_of_upload(upload, about.roles, drop_repeats=about.drop_repeats), []
    except DataError as error:
        return upload, None, list(error.problems)


@lru_cache(maxsize=4)
def _find_judgments_once(folder: Path, about_json: str, changed: int, size: int) -> UploadedJudgments | None:
    """Find the judgments of an upload; `changed` and `size` tell when the file must be read again."""
    about = Upload.model_validate_json(about_json)
    return judgments_of_upload((folder / about.file).read_bytes(), about.name, _upload(folder, about))


@lru_cache(maxsize=8)
def _read_items_once(path: Path, settings: str, changed: int, size: int) -> list[Item]:
    """Read items; `settings`, `changed` and `size` tell when the file must be read again."""
    source = ItemsSource.model_validate_json(settings)
    return read_items(path, columns=source.columns, ignore=source.ignore)


def _guess_formats(items: list[Item]) -> dict[str, Any]:
    """Return the [page] table that shows conversations as turns; empty where there are none."""
    page: dict[str, Any] = {"content": "conversation"} if hold_conversations(item.text for item in items) else {}
    if hold_conversations(item.context for item in items):
        # Answers of language models are Markdown.
        page.setdefault("content", "markdown")
        page["fields"] = ["text", {"column": "context", "format": "conversation"}]
    return page


def stage_tables(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the tables of all stages; changing them changes `values`."""
    stages = values.get("stage")
    if isinstance(stages, list) and stages:
        return [stage for stage in stages if isinstance(stage, dict)]
    return [values] if isinstance(values, dict) and values.get("protocol") else []


def plain_name(name: str) -> str:
    """Return the last part of a path, without characters that cannot be shown, for messages."""
    base = PurePosixPath(name.replace("\\", "/")).name.encode("utf-8", "ignore").decode()
    return "".join(sign for sign in base if sign.isprintable())[:150] or "file"


def _question_rows(frame: pl.DataFrame) -> list[dict[str, str]]:
    names = {column: column.strip().lower() for column in frame.columns}
    names = {column: _QUESTION_ALIASES.get(name, name) for column, name in names.items()}
    fields = {column: name for column, name in names.items() if name in QUESTION_COLUMNS}
    columns = {
        name: strings(frame[column], "questions", column).fill_null("").str.strip_chars().to_list()
        for column, name in fields.items()
    }
    return [{name: column[row] for name, column in columns.items()} for row in range(frame.height)]


def _at(values: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    value: Any = values
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _put(values: dict[str, Any], keys: tuple[str, ...], value: Any) -> None:
    for key in keys[:-1]:
        inner = values.get(key)
        if not isinstance(inner, dict):
            if value is None:
                return
            inner = values[key] = {}
        values = inner
    if value is None:
        values.pop(keys[-1], None)
    else:
        values[keys[-1]] = value


def _write(path: Path, content: bytes) -> None:
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(content)
    os.replace(part, path)


def draft_titles(drafts: Drafts) -> Iterator[dict[str, Any]]:
    """Yield the drafts of new studies for the list: address, title, step and time of the last change."""
    for draft in drafts.all():
        if draft.served is None:
            try:
                values = draft.values()
            except ConfigError:
                values = {}
            yield {
                "id": draft.id,
                "url": f"{draft.root_path}/manage/drafts/{draft.id}#{draft.about.step}",
                "title": str(values.get("title") or "Untitled study"),
                "step": draft.about.step,
                "file": "" if draft.about.upload is None else draft.about.upload.name,
                "updated": draft.about.updated,
            }
