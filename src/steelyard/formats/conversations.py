"""Conversations as items: turns with roles, from the JSON of chat programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from steelyard.errors import DataError

MAX_TURNS = 500
MAX_CHARACTERS = 200_000
"""A page with more text than this takes seconds to draw on a phone."""
ROLES = ("user", "assistant", "system", "tool")
"""The usual roles, which pages name in the annotator's language; others are shown as they are."""
_ROLES = {"human": "user", "prompter": "user", "gpt": "assistant", "bot": "assistant", "model": "assistant",
          "developer": "system", "function": "tool"}  # fmt: skip
"""Names of other programs for the four usual roles."""
_EXAMPLE = '[{"role": "user", "content": "…"}, {"role": "assistant", "content": "…"}]'
_REMEDY = f"Write a list of turns: {_EXAMPLE}."
_PARTS_NOT_SHOWN = {
    "image_url": "image",
    "image": "image",
    "input_image": "image",
    "input_audio": "audio",
    "file": "file",
}
_LONGEST_ROLE = 40


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a conversation; the usual roles are user, assistant, system and tool."""

    role: str
    text: str


@lru_cache(maxsize=4096)
def parse_conversation(text: str) -> tuple[Turn, ...]:
    """Read a conversation: a JSON list of turns with role and content, or an object with such a list as messages.

    Content may be a list of parts as in OpenAI's messages; images in it are named, not shown. A turn without content
    shows its tool calls. The names `from` and `value` are read too.
    """
    if len(text) > 4 * MAX_CHARACTERS:
        raise _too_long(len(text))
    try:
        data = json.loads(text)
    except RecursionError:
        raise DataError("the conversation is nested too deeply.", _REMEDY) from None
    except ValueError as error:
        raise DataError(f"the conversation is not JSON ({error}).", _REMEDY) from None
    if isinstance(data, Mapping):
        data = data.get("messages", data.get("conversations"))
    if not isinstance(data, list) or not data:
        raise DataError("the conversation is not a list of turns.", _REMEDY)
    if len(data) > MAX_TURNS:
        raise DataError(
            f"the conversation has {len(data):,} turns; at most {MAX_TURNS} can be shown.", "Leave out earlier turns."
        )
    turns = tuple(_turn(turn, number) for number, turn in enumerate(data, 1))
    length = sum(len(turn.text) for turn in turns)
    if length > MAX_CHARACTERS:
        raise _too_long(length)
    return turns


def is_conversation(text: str) -> bool:
    """Whether a text is a conversation as `parse_conversation` reads it."""
    if not text.lstrip().startswith(("[", "{")):
        return False
    try:
        parse_conversation(text)
    except DataError:
        return False
    return True


def conversation_text(text: str) -> str:
    """Return a conversation as plain text, for terminals and language models."""
    return "\n\n".join(f"[{turn.role}]\n{turn.text}" for turn in parse_conversation(text))


def _too_long(length: int) -> DataError:
    return DataError(
        f"the conversation has {length:,} characters; at most {MAX_CHARACTERS:,} can be shown.", "Shorten it."
    )


def _turn(turn: Any, number: int) -> Turn:
    if not isinstance(turn, Mapping):
        raise DataError(f"turn {number} of the conversation is not an object with role and content.", _REMEDY)
    role = turn.get("role") or turn.get("from")
    if not isinstance(role, str) or not role.strip() or len(role) > _LONGEST_ROLE:
        raise DataError(f"turn {number} of the conversation has no role.", _REMEDY)
    content = turn.get("content")
    text = _text(turn.get("value") if content is None else content, number)
    calls = turn.get("tool_calls") or turn.get("function_call")
    if calls:
        text = "\n\n".join(part for part in (text, _calls(calls)) if part)
    if not text.strip():
        raise DataError(f"turn {number} of the conversation has no content.", _REMEDY)
    return Turn(_role(role.strip()), text)


def _role(name: str) -> str:
    usual = _ROLES.get(name.lower(), name.lower())
    return usual if usual in ROLES else name


def _text(content: Any, number: int) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        # Tables of mixed types hold lists of parts as JSON.
        return content if not content.startswith('[{"type"') else _text_of_parts(content, number)
    if isinstance(content, list):
        return "\n\n".join(filter(None, (_part(part, number) for part in content)))
    raise DataError(f"the content of turn {number} of the conversation is not a text.", _REMEDY)


def _text_of_parts(content: str, number: int) -> str:
    try:
        parts = json.loads(content)
        return _text(parts, number) if isinstance(parts, list) else content
    except (ValueError, RecursionError, DataError):
        return content


def _part(part: Any, number: int) -> str:
    if isinstance(part, str):
        return part
    kind = part.get("type") if isinstance(part, Mapping) else None
    if isinstance(part, Mapping) and isinstance(part.get("text"), str):
        return str(part["text"])
    if kind in _PARTS_NOT_SHOWN:
        return f"[{_PARTS_NOT_SHOWN[kind]}]"
    raise DataError(f"turn {number} of the conversation has a part that is not a text.", _REMEDY)


def _calls(calls: Any) -> str:
    """Write tool calls as a block of code."""
    body = json.dumps(calls, ensure_ascii=False, indent=2)
    fence = "`" * max(3, 1 + _longest_run(body))
    return f"{fence}json\n{body}\n{fence}"


def _longest_run(text: str) -> int:
    longest = run = 0
    for sign in text:
        run = run + 1 if sign == "`" else 0
        longest = max(longest, run)
    return longest
