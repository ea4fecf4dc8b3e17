"""The preregistration section: the frozen plan, and deviations from it."""

from __future__ import annotations

from steelyard.analysis.analysis import Analysis
from steelyard.report.document import Block, Prose, Section

TITLE = "Preregistration"


def section(analysis: Analysis) -> Section:
    """Return the hash of the preregistration, its hypotheses, and the deviations."""
    event = next(iter(analysis.study.events(("frozen",))), None)
    if event is None:
        return Section(
            "preregistration", TITLE, absent=("Preregistration: the study was not frozen (steelyard freeze).",)
        )
    frozen, status = event.data, analysis.study.status()
    design = frozen.config.get("design") or {}
    model = (
        analysis.study.config.model.name if not frozen.config.get("model") else frozen.config["model"].get("name", "")
    )
    blocks: list[Block] = [
        Prose(
            f"The plan, hypotheses, exclusion rules and analysis were recorded in the study's log "
            f"{'before the first answer' if not frozen.judgments else f'after {frozen.judgments:,} answers'}: "
            f"{frozen.planned:,} judgments{' by the design ' + str(design['name']) if 'name' in design else ''}, "
            f"scored by the model {model}. SHA-256 of the preregistration: {frozen.digest}."
        )
    ]
    blocks += [Prose(f"Hypothesis {number}: {text}") for number, text in enumerate(frozen.hypotheses, 1)]
    blocks += [Prose(f"Deviation {number}: {text}") for number, text in enumerate(status.deviations, 1)]
    if not status.deviations:
        blocks.append(Prose("There are no deviations from the preregistration."))
    return Section("preregistration", TITLE, tuple(blocks))
