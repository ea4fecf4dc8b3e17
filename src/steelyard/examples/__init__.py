"""Small studies the project wrote itself, for `steelyard demo` and `steelyard new`."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent

WORDS = (
    "joyful", "grateful", "calm", "hopeful", "proud", "curious", "content", "amused", "brave", "tender",
    "ordinary", "neutral", "quiet", "busy", "surprised", "serious", "distant", "restless", "tired", "bored",
    "lonely", "jealous", "angry", "afraid", "ashamed", "hopeless", "bitter", "cruel", "miserable", "furious",
)  # fmt: skip
"""What a new study asks about until its owner puts in other items."""
