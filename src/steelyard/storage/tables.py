"""The tables. `events` is the source of truth; `studies` and `tasks` can be rebuilt from it."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Index, Integer, MetaData, Table, Text

metadata = MetaData()

studies = Table(
    "studies",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("last_seq", BigInteger, nullable=False),
    Column("digest", Text, nullable=False),
    Column("config_seq", BigInteger, nullable=False),
    Column("secret", Text, nullable=False),
    Column("rewritten_seq", BigInteger, nullable=False, server_default="0"),
)
"""One row a study: the number and digest of its last event, and the number of its last configuration.

Writers lock this row, so events are in order. `secret` is what pseudonyms are made with; it is in no export.
`rewritten_seq` is the number of the last tombstone: events before it may have been replaced when it was written.
"""

events = Table(
    "events",
    metadata,
    Column("study", Integer, ForeignKey("studies.id"), primary_key=True),
    Column("seq", BigInteger, primary_key=True),
    Column("at", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("annotator", Text),
    Column("judgment_id", Text),
    Column("data", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("seal", Text),
)
"""The append-only log; `at` is in microseconds since 1970 (UTC), `data` is JSON, `digest` chains the rows.

`seal` is described in `steelyard.storage.events.StoredEvent`.
"""

erasures = Table(
    "erasures",
    metadata,
    Column("study", Integer, ForeignKey("studies.id"), primary_key=True),
    Column("annotator", Text, nullable=False),
    Column("stand_in", Text, nullable=False),
    Column("first", BigInteger, nullable=False),
    Column("events", Integer, nullable=False),
    Column("judgments", Integer, nullable=False),
    Column("replaced", Text, nullable=False),
    Column("before", Text, nullable=False),
    Column("member", Text, nullable=False),
    Column("is_replaced", Boolean, nullable=False),
    Column("process", Text, nullable=False),
    Column("touched", BigInteger, nullable=False),
)
"""The annotator who is being forgotten, if anyone is, and what was replaced so far: a few events at a time."""

imports = Table(
    "imports",
    metadata,
    Column("study", Integer, ForeignKey("studies.id"), primary_key=True),
    Column("batch", Text, primary_key=True),
    Column("process", Text, nullable=False),
    Column("touched", BigInteger, nullable=False),
    Column("is_complete", Boolean, nullable=False),
)
"""Judgments that are being imported, as batches. Only complete batches are moved to the log, a part at a time.

`process` is the one that imports, `touched` when it last did something, in microseconds.
"""

imported = Table(
    "imported",
    metadata,
    Column("study", Integer, ForeignKey("studies.id"), primary_key=True),
    Column("batch", Text, primary_key=True),
    Column("place", Integer, primary_key=True),
    Column("judgment_id", Text, nullable=False),
    Column("annotator", Text),
    Column("data", Text, nullable=False),
)
"""Judgments of these batches that are not in the log yet; `data` is JSON."""

tasks = Table(
    "tasks",
    metadata,
    Column("study", Integer, ForeignKey("studies.id"), primary_key=True),
    Column("judgment_id", Text, primary_key=True),
    Column("annotator", Text, nullable=False),
    Column("stage", Integer, nullable=False),
    Column("item_ids", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("lease_end", BigInteger, nullable=False),
    Column("picked_seq", BigInteger, nullable=False),
    Column("answer_seq", BigInteger),
    Index("tasks_by_lease", "study", "state", "lease_end"),
    Index("tasks_by_annotator", "study", "annotator", "state"),
)
"""Every task that went out, and whether it is open, answered, skipped or expired."""

access = Table(
    "access",
    metadata,
    Column("study", Integer, ForeignKey("studies.id"), primary_key=True),
    Column("digest", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("annotator", Text),
    Column("note", Text, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("expires", BigInteger),
    Index("access_by_kind", "study", "kind", "annotator"),
)
"""Tokens of annotators and managers, by their digests. Not part of the log: no result depends on them."""
