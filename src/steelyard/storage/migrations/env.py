"""Alembic's entry: runs the migrations on the connection that the store hands over."""

from alembic import context

from steelyard.storage.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table="steelyard_version",
)
context.run_migrations()
