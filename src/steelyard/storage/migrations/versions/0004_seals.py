"""Seals of events, and tables for erasing and importing a few events at a time."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add the columns and tables; events that are there already stay without a seal, so this takes no time."""
    op.add_column("events", sa.Column("seal", sa.Text))
    op.add_column("studies", sa.Column("rewritten_seq", sa.BigInteger, nullable=False, server_default="0"))
    op.create_table(
        "erasures",
        sa.Column("study", sa.Integer, sa.ForeignKey("studies.id"), primary_key=True),
        sa.Column("annotator", sa.Text, nullable=False),
        sa.Column("stand_in", sa.Text, nullable=False),
        sa.Column("first", sa.BigInteger, nullable=False),
        sa.Column("events", sa.Integer, nullable=False),
        sa.Column("judgments", sa.Integer, nullable=False),
        sa.Column("replaced", sa.Text, nullable=False),
        sa.Column("before", sa.Text, nullable=False),
        sa.Column("member", sa.Text, nullable=False),
        sa.Column("is_replaced", sa.Boolean, nullable=False),
        sa.Column("process", sa.Text, nullable=False),
        sa.Column("touched", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "imports",
        sa.Column("study", sa.Integer, sa.ForeignKey("studies.id"), primary_key=True),
        sa.Column("batch", sa.Text, primary_key=True),
        sa.Column("process", sa.Text, nullable=False),
        sa.Column("touched", sa.BigInteger, nullable=False),
        sa.Column("is_complete", sa.Boolean, nullable=False),
    )
    op.create_table(
        "imported",
        sa.Column("study", sa.Integer, sa.ForeignKey("studies.id"), primary_key=True),
        sa.Column("batch", sa.Text, primary_key=True),
        sa.Column("place", sa.Integer, primary_key=True),
        sa.Column("judgment_id", sa.Text, nullable=False),
        sa.Column("annotator", sa.Text),
        sa.Column("data", sa.Text, nullable=False),
    )
