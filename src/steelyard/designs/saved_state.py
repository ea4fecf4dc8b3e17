"""States as bytes: of a stage's progress, of its design, and of the study that holds them.

States of designs are graphs of objects of many kinds. They are written as MessagePack with the class of each object.
Reading creates objects of the classes that states consist of and calls nothing but what sets their attributes, so a
file from elsewhere cannot run code.
"""

from __future__ import annotations

import sys
import zlib
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterator
from dataclasses import is_dataclass
from datetime import datetime, timedelta
from functools import cache
from importlib import import_module
from typing import Any, Generic, TypeVar

import msgspec
import numpy as np

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
        "study.unjudged_state",
        "analysis.tables",
        "analysis.verdict",
    )
}
_MAPPINGS: dict[str, Any] = {"dict": dict, "Counter": Counter, "OrderedDict": OrderedDict, "defaultdict": defaultdict}
_FACTORIES: dict[str, Any] = {"": None, **{kind.__name__: kind for kind in (dict, list, set, int, float, str)}}
_LARGEST = 1 << 63
"""Larger numbers are written as texts."""


class ForeignStateError(ValueError):
    """Bytes that are not a state: they refer to something that states do not consist of."""


@cache
def _plugin_packages() -> frozenset[str]:
    """Return the packages that provide designs or protocols besides our own."""
    kinds: tuple[registry.Kind, ...] = ("designs", "protocols")
    modules = {registry.find(kind, name).__module__ for kind in kinds for name in registry.names(kind)}
    return frozenset(module.partition(".")[0] for module in modules) - {"steelyard"}


def find_class(module: str, name: str) -> type[Any]:
    """Return a class that states consist of; refuse everything else."""
    package, _, rest = module.partition(".")
    is_pure = package == "steelyard" and rest.partition(".")[0] in _PURE_PACKAGES
    if is_pure or module in _OWN_MODULES or package in _plugin_packages():
        value = getattr(sys.modules.get(module) or import_module(module), name, None)
        # A class defined elsewhere and only imported there is none of ours.
        if isinstance(value, type) and value.__module__ == module:
            return value
    raise ForeignStateError(f"{module}.{name} is not part of a state")


def _has_own_form(kind: type[Any]) -> bool:
    """Whether a class defines what is saved of it; data classes get such methods automatically."""
    return hasattr(kind, "__setstate__") and not is_dataclass(kind)


def _slots(kind: type[Any]) -> tuple[str, ...]:
    names = (name for base in kind.__mro__ for name in getattr(base, "__slots__", ()))
    return tuple(name for name in names if name not in {"__dict__", "__weakref__"})


def _factory_form(factory: Any) -> str | list[str]:
    """Return the name of what makes missing values of a mapping: a class of Python's, or one of a state."""
    name = "" if factory is None else str(factory.__name__)
    if name in _FACTORIES and _FACTORIES[name] is factory:
        return name
    find_class(factory.__module__, name)
    return [factory.__module__, name]


class _Writer:
    """Turns objects into what MessagePack can hold. An object that is met again is referred to by its number."""

    def __init__(self) -> None:
        self._number: dict[int, int] = {}
        self._alive: list[Any] = []

    def plain(self, value: Any) -> Any:
        """Return a value in plain form: [tag, …], or the value itself if it is simple."""
        kind = type(value)
        if value is None or kind in {bool, float, str, bytes}:
            return value
        if kind is int:
            return value if -_LARGEST <= value < _LARGEST else ["int", str(value)]
        if kind is tuple:
            return ["tuple", [self.plain(one) for one in value]]
        if id(value) in self._number:
            return ["again", self._number[id(value)]]
        self._number[id(value)] = len(self._alive)
        self._alive.append(value)
        return self._container(value, kind) or self._leaf(value, kind) or self._object(value, kind)

    def _container(self, value: Any, kind: type[Any]) -> list[Any] | None:
        if kind is list:
            return ["list", [self.plain(one) for one in value]]
        if kind.__name__ in _MAPPINGS and kind is _MAPPINGS[kind.__name__]:
            factory = _factory_form(getattr(value, "default_factory", None))
            pairs = [[self.plain(key), self.plain(one)] for key, one in value.items()]
            return ["mapping", kind.__name__, factory, pairs]
        if kind in {set, frozenset}:
            return [kind.__name__, [self.plain(one) for one in value]]
        if kind is deque:
            return ["deque", value.maxlen, [self.plain(one) for one in value]]
        return None

    def _leaf(self, value: Any, kind: type[Any]) -> list[Any] | None:
        form: list[Any] | None = None
        if isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
            data = np.ascontiguousarray(value).tobytes()
            form = ["array", value.dtype.str, list(np.shape(value)), data, isinstance(value, np.generic)]
        elif kind is bytearray:
            form = ["bytearray", bytes(value)]
        elif kind is range:
            form = ["range", value.start, value.stop, value.step]
        elif kind is datetime:
            form = ["datetime", value.isoformat()]
        elif kind is timedelta:
            form = ["timedelta", value.days, value.seconds, value.microseconds]
        elif isinstance(value, type):
            find_class(value.__module__, value.__name__)
            form = ["class", value.__module__, value.__name__]
        return form

    def _object(self, value: Any, kind: type[Any]) -> list[Any]:
        find_class(kind.__module__, kind.__name__)
        if isinstance(value, tuple):
            return ["named", kind.__module__, kind.__name__, [self.plain(one) for one in value]]
        if _has_own_form(kind):
            return ["own", kind.__module__, kind.__name__, self.plain(value.__getstate__())]
        names = value.__struct_fields__ if isinstance(value, msgspec.Struct) else _slots(kind)
        fields = {name: getattr(value, name) for name in names if hasattr(value, name)} | getattr(value, "__dict__", {})
        pairs = [[name, self.plain(one)] for name, one in fields.items()]
        return ["object", kind.__module__, kind.__name__, pairs]


class _Reader:
    """Creates the objects that a writer has turned into plain form; they are numbered in the same order."""

    def __init__(self) -> None:
        self._objects: list[Any] = []

    def value(self, plain: Any) -> Any:
        """Return the value of a plain form."""
        if type(plain) is not list:
            return plain
        tag, *parts = plain
        if tag == "tuple":
            return tuple([self.value(one) for one in parts[0]])
        if tag == "int":
            return int(parts[0])
        if tag == "again":
            return self._objects[parts[0]]
        place = len(self._objects)
        self._objects.append(None)
        return self._FORMS[tag](self, place, *parts)

    def _list(self, place: int, parts: list[Any]) -> list[Any]:
        values: list[Any] = []
        self._objects[place] = values
        values += [self.value(one) for one in parts]
        return values

    def _mapping(self, place: int, kind: str, factory: str | list[str], pairs: list[Any]) -> Any:
        missing = _FACTORIES[factory] if isinstance(factory, str) else find_class(*factory)
        mapping = defaultdict(missing) if kind == "defaultdict" else _MAPPINGS[kind]()
        self._objects[place] = mapping
        for key, one in pairs:
            mapping[self.value(key)] = self.value(one)
        return mapping

    def _set(self, place: int, parts: list[Any]) -> Any:
        self._objects[place] = values = {self.value(one) for one in parts}
        return values

    def _frozenset(self, place: int, parts: list[Any]) -> Any:
        self._objects[place] = values = frozenset(self.value(one) for one in parts)
        return values

    def _deque(self, place: int, longest: int | None, parts: list[Any]) -> Any:
        self._objects[place] = values = deque((self.value(one) for one in parts), longest)
        return values

    def _array(self, place: int, dtype: str, shape: list[int], data: bytes, is_scalar: bool) -> Any:
        kind = np.dtype(dtype)
        if kind.hasobject:
            raise ForeignStateError("arrays of objects are not part of a state")
        array = np.frombuffer(data, kind).reshape(shape).copy()
        self._objects[place] = result = array[()] if is_scalar else array
        return result

    def _simple(self, place: int, value: Any) -> Any:
        self._objects[place] = value
        return value

    def _named(self, place: int, module: str, name: str, parts: list[Any]) -> Any:
        kind = find_class(module, name)
        if not issubclass(kind, tuple):
            raise ForeignStateError(f"{name} is no tuple")
        self._objects[place] = result = tuple.__new__(kind, [self.value(one) for one in parts])
        return result

    def _own(self, place: int, module: str, name: str, state: Any) -> Any:
        kind = find_class(module, name)
        if not _has_own_form(kind):
            raise ForeignStateError(f"{name} has no form of its own")
        self._objects[place] = result = object.__new__(kind)
        result.__setstate__(self.value(state))
        return result

    def _object(self, place: int, module: str, name: str, pairs: list[Any]) -> Any:
        kind = find_class(module, name)
        if issubclass(kind, msgspec.Struct):
            self._objects[place] = result = kind(**{key: self.value(one) for key, one in pairs})
            return result
        self._objects[place] = result = object.__new__(kind)
        for key, one in pairs:
            object.__setattr__(result, key, self.value(one))
        return result

    _FORMS: dict[str, Any] = {  # noqa: RUF012 - never changed
        "list": _list,
        "mapping": _mapping,
        "set": _set,
        "frozenset": _frozenset,
        "deque": _deque,
        "array": _array,
        "bytearray": lambda self, place, data: self._simple(place, bytearray(data)),
        "range": lambda self, place, *parts: self._simple(place, range(*parts)),
        "datetime": lambda self, place, text: self._simple(place, datetime.fromisoformat(text)),
        "timedelta": lambda self, place, *parts: self._simple(place, timedelta(*parts)),
        "class": lambda self, place, *parts: self._simple(place, find_class(*parts)),
        "named": _named,
        "own": _own,
        "object": _object,
    }


def save(value: Any) -> bytes:
    """Return a state as bytes."""
    return msgspec.msgpack.encode(_Writer().plain(value))


def load(data: bytes) -> Any:
    """Read a state; raise an exception of any type if the bytes are not one."""
    return _Reader().value(msgspec.msgpack.decode(data))


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
