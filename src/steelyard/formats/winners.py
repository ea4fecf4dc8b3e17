"""Spellings of the outcome of a comparison: the words for the left side, the right side and a tie.

A word is compared without case, spaces, underscores, hyphens, full stops and brackets, so that 'model_a', 'Model A' and
'[[A]]' are one spelling. An id of an item comes before a spelling: `Spellings` leaves out the words that are ids.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

LEFT, TIE, RIGHT = 1, 0, -1
"""Outcomes, as in `Comparisons`."""

TIES = ("tie", "draw", "=")
"""Words for a tie that hold even where an item has such an id. At least one is not an item of the pair."""

STANDARD = {"left": LEFT, "right": RIGHT, **dict.fromkeys(TIES, TIE)}
"""The words we write. They name an outcome in every row whose items do not have that id."""

REMOVED = " _-.()[]"
"""Characters that do not distinguish spellings."""

NOUNS = (
    *("model", "system", "item", "option", "candidate", "choice", "assistant"),
    *("response", "answer", "output", "text", "summary", "translation", "completion"),
)
"""What the two sides are called: model_a and model_b, response 1 and response 2."""

BOTH_BAD = frozenset({"bothbad", "bothbadtie", "tiebothbad", "neither", "neitherisgood", "bothareequallybad"})
"""Ties in which both sides were judged bad. They count as ties; a note gives their number."""

_TIED = (
    *("tie", "tied", "draw", "=", "equal", "equallygood", "same", "both", "bothgood", "tiebothgood", "nopreference"),
    *("a=b", "b=a", "botharegood", "bothareequallygood", "aboutthesame", "equivalent"),
)
_SIDES = (
    ("left", "first", "a", *(f"{noun}{side}" for noun in NOUNS for side in "a1")),
    ("right", "second", "b", *(f"{noun}{side}" for noun in NOUNS for side in "b2")),
)
_DEGREES = {"": 2, "slightly": 1, "somewhat": 1, "clearly": 3, "much": 3, "significantly": 3}
"""Words for how much better, in order: a file that uses several of them has strengths."""


def plain_word(word: str) -> str:
    """Return a word as spellings are compared."""
    return word.casefold().translate(str.maketrans("", "", REMOVED))


def _spellings() -> dict[str, int]:
    outcomes = dict.fromkeys((*_TIED, *BOTH_BAD), TIE)
    for outcome, sides in zip((LEFT, RIGHT), _SIDES, strict=True):
        for side in sides:
            outcomes[side] = outcome
            outcomes |= dict.fromkeys((f"{side}is{degree}better" for degree in _DEGREES), outcome)
            outcomes |= dict.fromkeys((f"{side}{end}" for end in ("better", "wins", "won")), outcome)
    for better, worse, outcome in (("a", "b", LEFT), ("b", "a", RIGHT)):
        outcomes |= {f"{better}>{worse}": outcome, f"{better}>>{worse}": outcome}
        outcomes |= {f"{worse}<{better}": outcome, f"{worse}<<{better}": outcome}
    return outcomes


OUTCOMES = _spellings()
"""The outcome that each plain word names."""


def outcome_of(word: str) -> int | None:
    """Return the outcome that a word names: 1 for left, -1 for right, 0 for a tie; None if it names none."""
    return OUTCOMES.get(plain_word(word))


def degree_of(word: str) -> int:
    """Return how much better a word calls the winner: 1 slightly, 2 plainly or not said, 3 much."""
    plain = plain_word(word)
    if ">>" in plain or "<<" in plain:
        return 3
    name = plain.removesuffix("better").rpartition("is")[2] if plain.endswith("better") else ""
    return _DEGREES.get(name, 2)


def is_both_bad(word: str) -> bool:
    """Return whether a word names a tie in which both sides are bad."""
    return plain_word(word) in BOTH_BAD


@dataclass(frozen=True, slots=True)
class Spellings:
    """The outcomes of words in a file whose items may have such words as ids."""

    ids: frozenset[str]
    """The ids of items that are spellings too. Beyond the standard words they name items, never an outcome."""

    @classmethod
    def beside(cls, items: Iterable[str]) -> Spellings:
        """Leave out the words that are ids of items."""
        return cls(frozenset(name for name in items if outcome_of(name) is not None))

    def outcome(self, word: str) -> int | None:
        """Return the outcome that a word names, in a row where it is the id of neither item."""
        standard = STANDARD.get(word.casefold())
        return standard if standard is not None or word in self.ids else outcome_of(word)
