"""Conversations: what other programs write is read, and what is not one is refused by turn."""

from __future__ import annotations

import json

import pytest

from steelyard.errors import DataError
from steelyard.formats.conversations import Turn, conversation_text, is_conversation, parse_conversation

TURNS = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
EXPECTED = (Turn("user", "Hi"), Turn("assistant", "Hello"))


@pytest.mark.parametrize(
    "data",
    [
        TURNS,
        {"messages": TURNS},
        {"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"}]},
        [{"role": "User", "content": [{"type": "text", "text": "Hi"}]}, {"role": "assistant", "content": ["Hello"]}],
        # As a table of mixed types holds a list of parts.
        [{"role": "user", "content": '[{"type": "text", "text": "Hi"}]', "name": None}, TURNS[1]],
    ],
)
def test_the_forms_of_chat_programs_are_read_alike(data):
    assert parse_conversation(json.dumps(data)) == EXPECTED


def test_other_roles_keep_their_names_and_tool_calls_are_shown_as_code():
    call = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "add", "arguments": "`1`"}}]}
    turns = parse_conversation(json.dumps([{"role": "Alice", "content": "Add."}, call]))
    assert turns[0].role == "Alice"
    assert turns[1].text.startswith("```json\n")
    assert '"add"' in turns[1].text
    assert conversation_text(json.dumps(TURNS)) == "[user]\nHi\n\n[assistant]\nHello"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("hello", "not JSON"),
        ("[" * 20_000, "nested too deeply"),
        ("[]", "not a list of turns"),
        ('{"a": 1}', "not a list of turns"),
        ('["hello"]', "turn 1 .* not an object"),
        ('[{"content": "x"}]', "turn 1 .* no role"),
        ('[{"role": "user", "content": "x"}, {"role": "user", "content": "  "}]', "turn 2 .* no content"),
        ('[{"role": "user", "content": 3}]', "turn 1 .* not a text"),
        ('[{"role": "user", "content": [{"type": "video"}]}]', "turn 1 .* not a text"),
        (json.dumps(TURNS * 251), "502 turns; at most 500"),
        (json.dumps([{"role": "user", "content": "x" * 200_001}]), "200,001 characters; at most 200,000"),
        ("[" + " " * 800_001, "800,002 characters|800,001 characters"),
    ],
)
def test_what_is_no_conversation_is_refused_with_the_reason(text, reason):
    with pytest.raises(DataError, match=reason):
        parse_conversation(text)
    assert not is_conversation(text)
