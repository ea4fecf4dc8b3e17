"""The tables. `events` is the truth; `studies` and `tasks` can be rebuilt from it."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, MetaData, Table, Text

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
)
"""One row a study: the number and digest of its last event, and the number of its last configuration.

Writers lock this row, so events are in order. `secret` is what pseudonyms are made with; it is in no export.
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
)
"""The append-only log; `at` is in microseconds since 1970 (UTC), `data` is JSON, `digest` chains the rows."""

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
