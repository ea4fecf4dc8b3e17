"""Cache of replies that were already paid for, keyed by the content of the request."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from steelyard.judges.endpoint import Reply


class ReplyCache:
    """A file of replies, one JSON object per line; a line that was cut off by a crash is ignored.

    With `path` None replies are kept in memory.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._replies: dict[str, Reply] = {}
        self._is_torn = False
        if path is not None and path.exists():
            text = path.read_text(encoding="utf-8")
            self._is_torn = bool(text) and not text.endswith("\n")
            for line in text.split("\n"):
                try:
                    entry = json.loads(line)
                    key = entry.pop("key")
                    self._replies[key] = Reply(**entry)
                except (ValueError, TypeError, KeyError, AttributeError):
                    continue

    def get(self, key: str) -> Reply | None:
        """Return the reply to a request, if it was answered before."""
        return self._replies.get(key)

    def add(self, key: str, reply: Reply) -> None:
        """Store a reply."""
        self._replies[key] = reply
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                if self._is_torn:
                    file.write("\n")
                    self._is_torn = False
                file.write(json.dumps({"key": key, **asdict(reply)}, ensure_ascii=False) + "\n")

    def __len__(self) -> int:
        return len(self._replies)


def request_key(request: Mapping[str, Any]) -> str:
    """Return a digest of everything that a reply depends on."""
    return hashlib.blake2b(json.dumps(request, sort_keys=True).encode(), digest_size=16).hexdigest()
