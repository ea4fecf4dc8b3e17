"""The study's database: an append-only log and the leases, in SQLite or PostgreSQL."""

from steelyard.storage.access import Access, Grant
from steelyard.storage.events import StoredEvent
from steelyard.storage.snapshot import Snapshot
from steelyard.storage.store import Store, StoredTask, Writer

__all__ = ["Access", "Grant", "Snapshot", "Store", "StoredEvent", "StoredTask", "Writer"]
