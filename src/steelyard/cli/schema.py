"""steelyard schema: the JSON Schema of study.toml."""

from __future__ import annotations

import typer


def schema() -> None:
    """Print the JSON Schema of study.toml, for editors and other programs.

    It includes the settings of plug-ins that are installed. `steelyard new` puts it into the study's folder.

    Example: steelyard schema
    """
    from steelyard.study.config.schema import schema_text

    typer.echo(schema_text(), nl=False)
