"""Single observations, as a protocol derives them from one answer."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias


class Rating(NamedTuple):
    """One value given to one item, in the user's scale."""

    item: str
    value: float
    criterion: str = ""


class Comparison(NamedTuple):
    """One pair as shown; `outcome` is 1 when left won, -1 when right won, 0 for a tie.

    `strength` is how clearly it won, from 1 upwards; 0 if that was not asked, and for ties.
    """

    left: str
    right: str
    outcome: int
    strength: int = 0
    criterion: str = ""


class Choice(NamedTuple):
    """One tuple as shown, with the item chosen as best and the one chosen as worst."""

    items: tuple[str, ...]
    best: str | None
    worst: str | None
    criterion: str = ""


class RankedItems(NamedTuple):
    """Items from best to worst; those in one tier are tied."""

    tiers: tuple[tuple[str, ...], ...]
    criterion: str = ""


class Label(NamedTuple):
    """One class given to one item."""

    item: str
    label: str
    criterion: str = ""


class Span(NamedTuple):
    """One mark in a text: half-open offsets in code points; None for an omission, which has no place in the text."""

    start: int | None
    end: int | None
    severity: str = ""
    category: str = ""


class MarkedText(NamedTuple):
    """What one annotator marked in the text of one item; no spans where nothing was found."""

    item: str
    spans: tuple[Span, ...]
    criterion: str = ""


Observation: TypeAlias = Rating | Comparison | Choice | RankedItems | Label | MarkedText
