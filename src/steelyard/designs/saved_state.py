"""States as bytes: of a stage's progress, of its design, and of the study that holds them.

The bytes are those of `pickle`, because the states of designs are graphs of objects of many kinds. Reading them creates
objects of the classes that states consist of and calls nothing else, so a file from elsewhere cannot run code.
"""

from __future__ import annotations

import io
import pickle
import zlib
from collections.abc import Iterator
from functools import cache
from typing import Any, Generic, TypeVar

from steelyard import registry

V = TypeVar("V")

_PURE_PACKAGES = ("designs", "models", "observations", "protocols")
"""Packages of ours whose classes neither read nor write anything (tests/test_layers.py, CONTRIBUTING.md)."""
_OWN_MODULES = {
    f"steelyard.{name}"
    for name in (
        "records",
        "quality.questions",
        "study.events",
        "study.limits",
        "study.quality_state",
        "study.recruitment_state",
        "study.state",
        "study.status",
        "analysis.tables",
        "analysis.verdict",
    )
}
_OTHERS = {
    "builtins": {"bytearray", "dict", "frozenset", "int", "list", "range", "set", "slice", "tuple"},
    "collections": {"Counter", "OrderedDict", "defaultdict", "deque"},
    "datetime": {"datetime", "timedelta", "timezone"},
    "msgspec._core": {"rebuild"},
    "msgspec._utils": {"rebuild"},
    "numpy": {"dtype", "ndarray"},
    "numpy._core.multiarray": {"_reconstruct", "scalar"},
    "numpy._core.numeric": {"_frombuffer"},
    "numpy.core.multiarray": {"_reconstruct", "scalar"},
    "numpy.core.numeric": {"_frombuffer"},
}
"""Classes and functions of other packages that saved states refer to. None of them runs or opens anything."""


class ForeignStateError(ValueError):
    """Bytes that are not a state: they refer to something that states do not consist of."""


@cache
def _plugin_packages() -> frozenset[str]:
    """Return the packages that provide designs or protocols besides our own."""
    kinds: tuple[registry.Kind, ...] = ("designs", "protocols")
    modules = {registry.find(kind, name).__module__ for kind in kinds for name in registry.names(kind)}
    return frozenset(module.partition(".")[0] for module in modules) - {"steelyard"}


class StateUnpickler(pickle.Unpickler):
    """Reads a state; refuses everything that is not a class of a state."""

    def find_class(self, module: str, name: str) -> Any:
        """Return a class by its name, or refuse it."""
        package, _, rest = module.partition(".")
        if name in _OTHERS.get(module, ()):
            return super().find_class(module, name)
        is_pure = package == "steelyard" and rest.partition(".")[0] in _PURE_PACKAGES
        is_own = is_pure or module in _OWN_MODULES
        if is_own or package in _plugin_packages():
            value = super().find_class(module, name)
            # A class defined elsewhere and only imported there is none of ours.
            if isinstance(value, type) and value.__module__ == module:
                return value
        raise ForeignStateError(f"{module}.{name} is not part of a state")


def save(value: Any) -> bytes:
    """Return a state as bytes."""
    return pickle.dumps(value, protocol=5)


def load(data: bytes) -> Any:
    """Read a state; raise an exception of any type if the bytes are not one."""
    return StateUnpickler(io.BytesIO(data)).load()


class SavedRecords(Generic[V]):
    """Records by annotator. Those that were read from a checkpoint stay bytes until somebody asks for them.

    So opening a study with a million judgments does not create a million objects, and neither does saving it again.
    Subclasses say what an empty record is, and may pack a record for saving.
    """

    __slots__ = ("_records", "_saved")

    def __init__(self) -> None:
        self._records: dict[str, V] = {}
        self._saved: dict[str, bytes] = {}

    def new(self) -> V:
        """Return an empty record."""
        raise NotImplementedError

    def pack(self, annotator: str, record: V) -> Any:
        """Return a record in a compact form."""
        return record

    def unpack(self, annotator: str, packed: Any) -> V:
        """Return the record of a compact form."""
        record: V = packed
        return record

    def __getitem__(self, annotator: str) -> V:
        record = self._records.get(annotator)
        if record is None:
            saved = self._saved.pop(annotator, None)
            record = self.new() if saved is None else self.unpack(annotator, load(zlib.decompress(saved)))
            self._records[annotator] = record
        return record

    def __contains__(self, annotator: str) -> bool:
        return annotator in self._records or annotator in self._saved

    def __iter__(self) -> Iterator[str]:
        yield from self._saved
        yield from self._records

    def __getstate__(self) -> dict[str, bytes]:
        packed = {name: zlib.compress(save(self.pack(name, record)), 1) for name, record in self._records.items()}
        return self._saved | packed

    def __setstate__(self, saved: dict[str, bytes]) -> None:
        self._records, self._saved = {}, saved
