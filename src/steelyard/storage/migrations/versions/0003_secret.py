"""A secret for each study, from which its annotators' pseudonyms are made."""

from __future__ import annotations

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the column, and draw a secret for every study there is."""
    op.add_column("studies", sa.Column("secret", sa.Text, nullable=False, server_default=""))
    studies = sa.table("studies", sa.column("id", sa.Integer), sa.column("secret", sa.Text))
    connection = op.get_bind()
    for (study,) in connection.execute(sa.select(studies.c.id)).all():
        statement = studies.update().where(studies.c.id == study).values(secret=secrets.token_hex(32))
        connection.execute(statement)
