"""Access tokens, of which only digests are stored."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "access",
        sa.Column("study", sa.Integer, sa.ForeignKey("studies.id"), primary_key=True),
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("annotator", sa.Text),
        sa.Column("note", sa.Text, nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.Column("expires", sa.BigInteger),
    )
    op.create_index("access_by_kind", "access", ["study", "kind", "annotator"])
