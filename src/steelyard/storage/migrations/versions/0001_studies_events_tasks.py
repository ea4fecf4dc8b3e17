"""The first tables: studies, events, tasks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create them."""
    op.create_table(
        "studies",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        sa.Column("last_seq", sa.BigInteger, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("config_seq", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "events",
        sa.Column("study", sa.Integer, sa.ForeignKey("studies.id"), primary_key=True),
        sa.Column("seq", sa.BigInteger, primary_key=True),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("annotator", sa.Text),
        sa.Column("judgment_id", sa.Text),
        sa.Column("data", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
    )
    op.create_table(
        "tasks",
        sa.Column("study", sa.Integer, sa.ForeignKey("studies.id"), primary_key=True),
        sa.Column("judgment_id", sa.Text, primary_key=True),
        sa.Column("annotator", sa.Text, nullable=False),
        sa.Column("stage", sa.Integer, nullable=False),
        sa.Column("item_ids", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("lease_end", sa.BigInteger, nullable=False),
        sa.Column("picked_seq", sa.BigInteger, nullable=False),
        sa.Column("answer_seq", sa.BigInteger),
    )
    op.create_index("tasks_by_lease", "tasks", ["study", "state", "lease_end"])
    op.create_index("tasks_by_annotator", "tasks", ["study", "annotator", "state"])
