"""Labels of single items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from steelyard.observations.base import Observations
from steelyard.observations.index import Index, IntArray


@dataclass(frozen=True, eq=False, kw_only=True)
class Labels(Observations):
    """Classes given to items one by one; `label` codes `classes`."""

    kind: ClassVar[str] = "labels"
    item_fields: ClassVar[tuple[str, ...]] = ("item",)
    row_fields: ClassVar[tuple[str, ...]] = ("item", "label")

    item: IntArray
    label: IntArray
    classes: Index

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_codes("item", self.item, self.items)
        self._check_codes("label", self.label, self.classes)

    def __len__(self) -> int:
        return len(self.item)

    def incidence(self) -> tuple[IntArray, IntArray]:
        """Each label concerns one item."""
        return self.item, self._rows()

    def answer_at(self, row: int) -> str:
        """Return the class of a label."""
        return self.classes[int(self.label[row])]
