"""Whole documents: each annotator gets the texts of a document in their order before another document begins.

A document has a version for each system (group). A version is divided into pages, in the order of the items file: one
text each, several consecutive texts, or the outputs of several systems for one source side by side.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from steelyard.designs.progress import Levels, Progress, ShownSets
from steelyard.designs.state import DesignState
from steelyard.protocols.base import Protocol
from steelyard.records import Item


class NextPage(NamedTuple):
    """The items of the next page, and the number of equally likely documents that it was drawn from."""

    items: tuple[int, ...]
    n_documents: int


class DocumentState(DesignState):
    """The pages of every document, and who works on which.

    An annotator who begins a document holds it: its other pages are kept for them. The document is free for others when
    one of its pages is released (skipped, or not answered in time), or when the annotator has been inactive for long
    and nothing else is left. Whoever continues gets the pages that still need judgments, in order.
    """

    def __init__(self, column: str, judgments: int, protocol: Protocol, hold_minutes: float) -> None:
        self._column = column
        self._judgments = judgments
        self._page_size = protocol.task_size
        self._is_contrastive = protocol.is_contrastive
        self._hold_time = hold_minutes * 60_000_000
        self.pages: list[list[list[int]]] = []
        """The items of each page, by document."""
        self.document_of: list[int] = []
        """The document of each item."""
        self._page_of: list[int] = []
        self._numbers: dict[tuple[str, str], int] = {}
        self._page_numbers: dict[tuple[int, str], int] = {}
        self._systems: defaultdict[str, dict[str, int]] = defaultdict(dict)
        self.places_taken = Levels()
        """Documents by the number of annotators who have judged them or hold them; full ones are at `judgments`."""
        self._assigned: list[list[int]] = []
        """Leases and answers of each page."""
        self._holders: list[dict[str, int]] = []
        """Annotators who hold a document, in the order in which they began it, with the time of their last lease."""
        self._pages_of: defaultdict[str, dict[int, set[int]]] = defaultdict(dict)
        """Pages that were assigned to an annotator, by document."""
        self._last_document: dict[str, int] = {}
        self.shared: dict[int, str] = {}
        """Documents that everybody gets, with the annotator who got them first."""
        self._set_aside: set[int] = set()
        self._last_annotator = ""
        """The annotator of the last pick."""
        self._is_pick_pending = False

    # Events

    def add_items(self, items: Sequence[Item]) -> None:
        """Add new items at the end of their documents."""
        changed: dict[int, None] = {}
        for code, item in enumerate(items, start=len(self.document_of)):
            document = self._document_for(item)
            page = self._page_for(document, item)
            self.pages[document][page].append(code)
            self.document_of.append(document)
            self._page_of.append(page)
            changed[document] = None
        for document in changed:
            self._update_places(document)

    def _document_for(self, item: Item) -> int:
        name = item.metadata.get(self._column)
        group = item.group or ""
        if name and self._is_contrastive:
            # As many systems side by side as a page shows; further systems have documents of their own.
            systems = self._systems[name]
            group = str(systems.setdefault(group, len(systems)) // self._page_size)
        key = (name, group) if name else ("", item.id)
        number = self._numbers.setdefault(key, len(self.pages))
        if number == len(self.pages):
            self.pages.append([])
            self._assigned.append([])
            self._holders.append({})
            self.places_taken.add_items(1)
        return number

    def _page_for(self, document: int, item: Item) -> int:
        """Return the page of a new item: that of its source, the last one if it has room, or a new one."""
        pages = self.pages[document]
        if self._is_contrastive and item.context is not None:
            page = self._page_numbers.setdefault((document, item.context), len(pages))
        else:
            has_room = bool(pages) and len(pages[-1]) < self._page_size and not self._is_contrastive
            page = len(pages) - 1 if has_room and not self._assigned[document][-1] else len(pages)
        if page == len(pages):
            pages.append([])
            self._assigned[document].append(0)
        return page

    def on_item_set_aside(self, item: int) -> None:
        """Leave an item out of its page."""
        self._set_aside.add(item)
        self._update_places(self.document_of[item])

    def on_item_restored(self, item: int) -> None:
        """Show an item again."""
        self._set_aside.discard(item)
        self._update_places(self.document_of[item])

    def start_round(self, number: int, progress: Progress, rng: np.random.Generator) -> None:
        """Record that the next lease comes from a pick, rather than from an import or a late answer."""
        self._is_pick_pending = True

    def on_leased(self, annotator: str, items: tuple[int, ...], slot: int | None) -> None:
        """Count a page; an annotator who gets it from a pick holds its document from now on."""
        is_pick, self._is_pick_pending = self._is_pick_pending, False
        for document, page in self._pages_with(items):
            self._assigned[document][page] += 1
            self._pages_of[annotator].setdefault(document, set()).add(page)
            if is_pick:
                holders = self._holders[document]
                if annotator not in holders:
                    self._holders[document] = holders = self._active_holders(document)
                holders[annotator] = self.now
                self._last_document[annotator] = document
                self._last_annotator = annotator
                if self._has_every_page(annotator, document):
                    del holders[annotator]
            self._update_places(document)

    def on_released(self, annotator: str, items: tuple[int, ...], slot: int | None) -> None:
        """Free the document of a page that was released, or whose answer no longer counts."""
        for document, page in self._pages_with(items):
            self._assigned[document][page] -= 1
            self._holders[document].pop(annotator, None)
            self._update_places(document)

    def on_shared(self, items: tuple[int, ...]) -> None:
        """Give a document to every annotator."""
        self.shared.setdefault(self.document_of[items[0]], self._last_annotator)

    def _pages_with(self, items: tuple[int, ...]) -> dict[tuple[int, int], None]:
        return dict.fromkeys((self.document_of[item], self._page_of[item]) for item in items)

    def _update_places(self, document: int) -> None:
        """Recount how many more annotators a document needs."""
        needed = [self._needed(document, page, self._holders[document]) for page in self._open_pages(document)]
        n_taken = self._judgments - max(needed, default=0)
        self.places_taken.move(document, max(n_taken, 0) - int(self.places_taken.level[document]))

    # Read by picks; nothing below changes the state

    def _open_pages(self, document: int) -> Iterator[int]:
        """Yield the pages of a document that need judgments, in order."""
        for page, assigned in enumerate(self._assigned[document]):
            if assigned < self._judgments and not self._set_aside.issuperset(self.pages[document][page]):
                yield page

    def _needed(self, document: int, page: int, holders: dict[str, int]) -> int:
        """Return how many judgments of a page are neither given nor kept for a holder of the document."""
        n_kept = sum(page not in self._pages_of[holder].get(document, ()) for holder in holders)
        return self._judgments - self._assigned[document][page] - n_kept

    def _active_holders(self, document: int) -> dict[str, int]:
        return {holder: time for holder, time in self._holders[document].items() if self.now - time <= self._hold_time}

    def _has_every_page(self, annotator: str, document: int) -> bool:
        """Whether an annotator was assigned every page of a document, apart from those set aside."""
        own = self._pages_of[annotator].get(document, set())
        return all(page in own or self._set_aside.issuperset(items) for page, items in enumerate(self.pages[document]))

    @property
    def is_taken(self) -> bool:
        """Whether all documents have been judged, or are held, by as many annotators as they need."""
        return bool(self.places_taken.level.min(initial=self._judgments) >= self._judgments)

    def has_begun(self, annotator: str, document: int) -> bool:
        """Whether an annotator was assigned a page of a document."""
        return document in self._pages_of.get(annotator, {})

    def is_overlap(self, annotator: str, document: int) -> bool:
        """Whether an annotator judges a document because everybody does."""
        return document in self.shared and self.shared[document] != annotator

    def next_items(
        self, annotator: str, document: int, seen: ShownSets, *, holders: dict[str, int] | None = None
    ) -> tuple[int, ...] | None:
        """Return the items of the first page of a document that an annotator may get; None if there is none.

        Pages that are kept for annotators who began before are left out. `holders` are those of the document, if not
        the present ones.
        """
        holders = self._holders[document] if holders is None else holders
        before: dict[str, int] = {}
        for holder, time in holders.items():
            if holder == annotator:
                break
            before[holder] = time
        is_overlap = self.is_overlap(annotator, document)
        for page in range(len(self.pages[document])) if is_overlap else self._open_pages(document):
            items = [item for item in self.pages[document][page] if item not in self._set_aside]
            unseen = tuple(item for item in items if (item,) not in seen)
            if unseen and (is_overlap or self._needed(document, page, before) > 0):
                return unseen
        return None

    def ordered(self, items: tuple[int, ...], rng: np.random.Generator) -> tuple[int, ...]:
        """Return a page's items as they are shown: texts of one system in order, outputs of several at random."""
        return tuple(rng.permutation(items).tolist()) if self._is_contrastive else items

    def continued(self, annotator: str, seen: ShownSets) -> tuple[int, ...] | None:
        """Return the next page of the document that an annotator got last."""
        document = self._last_document.get(annotator)
        return None if document is None else self.next_items(annotator, document, seen)

    def draw(self, annotator: str, seen: ShownSets, rng: np.random.Generator) -> NextPage | None:
        """Draw a document with the fewest annotators, and return its first page; None if there is none."""
        own = self._pages_of.get(annotator, {})
        for level in range(min(self._judgments, self.places_taken.height)):
            members = self.places_taken.members(level)
            closed = {
                document
                for document in own
                if self.places_taken.level[document] == level and self.next_items(annotator, document, seen) is None
            }
            candidates = [document for document in members if document not in closed] if closed else members
            if candidates:
                document = candidates[int(rng.integers(len(candidates)))]
                items = self.next_items(annotator, document, seen)
                if items is not None:
                    return NextPage(items, len(candidates))
        for document, holders in enumerate(self._holders):
            active = self._active_holders(document) if holders else holders
            if len(active) < len(holders) and annotator not in holders:
                items = self.next_items(annotator, document, seen, holders=active)
                if items is not None:
                    return NextPage(items, 1)
        return None
