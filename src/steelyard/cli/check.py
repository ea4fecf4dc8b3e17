"""steelyard check: check a study's configuration and items."""

from __future__ import annotations

import os

from steelyard.cli.options import DATABASE_VARIABLE, StudyFolder, existing_folder


def check(folder: StudyFolder) -> None:
    """Check a study's configuration and items, and list every problem.

    Example: steelyard check words
    """
    from rich.console import Console

    from steelyard.cli.output import print_done, print_warnings
    from steelyard.designs.description import describe_plan
    from steelyard.storage.engine import DATABASE_FILE
    from steelyard.study import Study
    from steelyard.study.check_plan import describe_checks
    from steelyard.study.config import CONFIG_FILE
    from steelyard.study.display import shown_columns, unblinding_warnings
    from steelyard.study.opening import check_study, read_checks

    config, items = check_study(existing_folder(folder))
    if DATABASE_VARIABLE not in os.environ and config.database is None and (folder / DATABASE_FILE).exists():
        # People have begun: what was changed since must fit what they were asked.
        Study.open(folder).close()
    console = Console(highlight=False, markup=False)
    print_done(f"{CONFIG_FILE} and {len(items):,} items are valid.")
    if config.page.fields:
        console.print(f"  annotators see: {', '.join(field.column for field in config.page.fields)}", soft_wrap=True)
    columns = shown_columns(config.page)
    extras = dict.fromkeys(name for item in items for name in item.metadata if name not in columns)
    if extras:
        console.print(f"  further columns, not shown to annotators: {', '.join(extras)}", soft_wrap=True)
    warnings = unblinding_warnings(config.page, items)
    for stage in config.stages:
        size = stage.protocol.task_size
        task_size = f"{size} items per task" if size > 1 else "one item per task"
        share = f", {stage.share:.0%} of the tasks" if stage.share else ""
        name = stage.protocol.name if stage.name == stage.protocol.name else f"{stage.name} ({stage.protocol.name})"
        plan = describe_plan(stage.design, stage.protocol, items)
        console.print(f"  {name}: {task_size}, chosen by {stage.design.name}{share}", soft_wrap=True)
        for sentence in plan.sentences:
            console.print(f"    {sentence}", soft_wrap=True)
        warnings += [warning for warning in plan.warnings if warning not in warnings]
    check_plan = describe_checks(config, len(read_checks(folder, config, items)))
    for sentence in check_plan.sentences:
        console.print(f"  checks: {sentence}", soft_wrap=True)
    console.print(f"  scores: {config.model.name}", soft_wrap=True)
    print_warnings([*warnings, *check_plan.warnings])
