"""§4.5: the one expert label that the annotators contradict, and that was found to be wrong."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

from reproductions.base import Claim, Experiment, Outcome, Progress
from reproductions.cheap_fast.recordings import PAPER, read_labels
from steelyard.models.gold import disputed_gold
from steelyard.reliability import meta_annotator

NAMED = "24:0@24@wsj/23/wsj_2381@wsj@en@on"
"""The item that footnote 6 says was disputed."""


@dataclass(frozen=True, slots=True)
class DisputedGold(Experiment):
    """List the word-sense items whose gold most labels contradict, and score the vote against the mended gold."""

    name: ClassVar[str] = "cheap_fast.disputed_gold"
    paper: ClassVar[str] = PAPER
    title: ClassVar[str] = "§4.5: gold that the annotators contradict"
    data: ClassVar[tuple[str, ...]] = ("snow2008/wsd.csv.gz",)

    share: float = 0.8

    def small(self) -> Self:
        """Return itself: it takes no time."""
        return self

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Find the disputed items, mend their gold by the vote, and measure again."""
        labels, gold = read_labels(data, "wsd")
        disputes = disputed_gold(labels, gold, share=self.share)
        mended = gold | dict(disputes.select("item", "label").iter_rows())
        after = meta_annotator(labels, mended, sizes=(10,))[10]
        progress(1, 1)
        most = disputes.row(0, named=True)
        code = labels.items.code(NAMED)
        against = sum(labels.classes[label] != gold[NAMED] for label in labels.label[labels.item == code].tolist())
        claims = (
            Claim("word-sense items with disputed gold", disputes.height, published=1),
            Claim("labels against the gold of the most disputed", most["judgments"] - most["gold_votes"], published=9),
            Claim(
                "labels against the gold of the item named in footnote 6",
                against,
                published=9,
                why=f"the footnote names a different item; the disputed one is {most['item']} in the data",
            ),
            Claim(
                "accuracy of the majority of 10 with that gold corrected",
                after.value or 0.0,
                after.lower,
                after.upper,
                published=1.0,
            ),
        )
        return Outcome(
            claims,
            disputes,
            None,
            (f"disputed: at least {100 * self.share:.0f} % of the labels agree on a label other than the gold",),
        )
