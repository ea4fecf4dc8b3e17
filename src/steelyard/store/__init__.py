"""The study's memory: an append-only log and the leases, in SQLite or PostgreSQL."""

from steelyard.store.access import Access, Grant
from steelyard.store.events import Event
from steelyard.store.frozen import Frozen
from steelyard.store.store import Store, StoredTask, Writer

__all__ = ["Access", "Event", "Frozen", "Grant", "Store", "StoredTask", "Writer"]
