"""Former names of designs, protocols, models and settings, so that an old study.toml is refused with the new name."""

from __future__ import annotations

RENAMED: dict[str, str] = {
    "people": "annotators",
    "people.tasks": "max_tasks",
    "people.revise": "revisable_answers",
    "quality.repeats": "repeat_rate",
    "quality.overlap": "overlap_rate",
    "quality.checks.at_least": "min_checks",
    "quality.checks.loud": "feedback",
    "quality.checks.pass": "min_accuracy",
    "quality.checks.rule.plain": "threshold",
    "quality.qualification.pass": "min_accuracy",
    "stop.looks": "interim_analyses",
    "link.participant": "participant_parameter",
    "link.study": "study_parameter",
    "link.session": "session_parameter",
    "prolific.approved": "min_approved",
    "prolific.approval_rate": "min_approval_rate",
    "prolific.minutes": "estimated_minutes",
    "designs.information_gain": "adaptive",
    "designs.redundant": "per_item",
    "design.adaptive.annotators": "max_annotators_per_task",
    "design.all_pairs.annotators": "annotators_per_task",
    "design.balanced_tuples.annotators": "annotators_per_task",
    "design.propagation.annotators": "annotators_per_task",
    "design.random_tuples.annotators": "annotators_per_task",
    "design.tournament.annotators": "annotators_per_source",
    "design.aim": "objective",
    "design.source": "across_contexts",
    "design.together": "across_contexts",
    "design.first_looks": "initial_views",
    "design.patience_minutes": "hold_minutes",
    "population.noise_spread": "noise_cv",
    "population.spam": "careless",
    "population.spread": "item_sd",
}
"""New names by former path.

`designs.NAME`, `protocols.NAME` and `models.NAME` are registered names. Other paths are keys of study.toml:
`design.KEY`, `protocol.KEY` and `model.KEY` for settings (`design.NAME.KEY` for those of one design), `TABLE.KEY` for
keys of a table, `KEY` at the top level, `TABLE.KEY.VALUE` for a value.
`population.KEY` are settings of a simulated population.
"""


def new_name(path: str) -> str | None:
    """Return the new name of a registered name or key, by its former path; None if it was never renamed."""
    return RENAMED.get(path)


def renamed_remedy(path: str) -> str | None:
    """Return what to write instead of a former name, for error messages; None if it was never renamed."""
    name = new_name(path)
    return None if name is None else f"It is now called '{name}'."
