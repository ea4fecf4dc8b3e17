"""The methods paragraph of a report, ready to paste, and the works that it cites."""

from __future__ import annotations

import re
from dataclasses import dataclass

import polars as pl

from steelyard.analysis.analysis import Analysis
from steelyard.analysis.reliability import CURVE
from steelyard.analysis.tables import Estimate
from steelyard.protocols import ErrorSpans, Protocol
from steelyard.reliability.statistic import Statistic
from steelyard.report.formatting import format_interval, format_number
from steelyard.report.references import REFERENCES, cite
from steelyard.version import __version__

_DESIGNS: dict[str, tuple[str, tuple[str, ...]]] = {
    "per_item": ("each item was judged by several annotators", ("snow2008",)),
    "random_tuples": ("items were combined at random", ()),
    "balanced_tuples": ("items were shown in tuples such that each item appears equally often", ("kiritchenko2017",)),
    "all_pairs": ("every pair of items was compared", ()),
    "tournament": ("the items of each source were compared in a tournament", ("pighin2012",)),
    "propagation": (
        "items were judged in order of dominance, and labels were propagated to dominating or dominated items",
        ("pighin2012",),
    ),
    "match_quality": ("items were selected by uncertainty and match quality", ("sakaguchi2018",)),
    "adaptive": (
        "each task was selected by its expected variance reduction",
        ("lindley1956",),
    ),
}
_MODELS: dict[str, tuple[str, tuple[str, ...]]] = {
    "mean": ("the mean of the ratings", ()),
    "median": ("the median of the ratings", ()),
    "mode": ("the most frequent rating", ()),
    "easl": ("EASL, which treats each rating as fractional counts of a Beta distribution", ("sakaguchi2018",)),
    "bounded_ranking": ("bounded online ranking", ("sakaguchi2018",)),
    "trueskill": ("TrueSkill", ("herbrich2006",)),
    "elo": ("Elo ratings", ("elo1978",)),
    "bradley_terry": ("the Bradley–Terry model", ("bradley1952",)),
    "thurstone": ("Thurstone’s model (Case V)", ("thurstone1927",)),
    "cumulative_link": ("a cumulative link model of graded comparisons", ("agresti1992",)),
    "plackett_luce": ("the Plackett–Luce model", ("plackett1975", "luce1959")),
    "counting": (
        "counting (the proportion of times an item was chosen as best minus that as worst)",
        ("kiritchenko2017",),
    ),
    "maxdiff": ("the maxdiff model of best–worst choices", ("marley2005",)),
    "win_rate": ("the proportion of comparisons won", ()),
    "dominance": ("dominance in the graph of comparisons", ("pighin2012",)),
    "majority": ("majority vote", ("snow2008",)),
    "dawid_skene": ("the Dawid–Skene model", ("dawid1979",)),
    "mace": ("MACE", ("hovy2013",)),
    "gold_calibrated": ("votes weighted by the annotators’ confusion matrices on gold items", ("snow2008",)),
    "weighted_vote": ("votes weighted by the log-odds of accuracy on gold items", ("snow2008",)),
    "calibrated_scale": ("a hierarchical Bayesian model with annotator effects (calibrated scale)", ()),
    "gaussian_calibration": ("ratings corrected for each annotator’s bias and noise on gold items", ("snow2008",)),
}


_RULES = {
    "too_fast": "for answering faster than the text can be read",
    "constant": "for giving nearly always the same answer",
    "one_sided": "for choosing one screen position far more often than by chance",
    "disagreement": "for agreeing far less with the other annotators than average",
}


@dataclass(frozen=True, slots=True)
class MethodsText:
    """The paragraph, and the keys of the cited works."""

    text: str
    cited: tuple[str, ...]


def methods_text(analysis: Analysis) -> MethodsText:
    """Describe in plain sentences the task, the annotators, the model and the reliability of the scores."""
    sentences = [
        *_collected(analysis),
        *_asked(analysis),
        *_quality(analysis),
        *_scored(analysis),
        *_reliable(analysis),
        f"The study was run and analysed with Steelyard {__version__}.",
    ]
    text = " ".join(sentences)
    cited = tuple(key for key, work in REFERENCES.items() if re.search(rf"[(;] ?{re.escape(work.cited)}[;)]", text))
    return MethodsText(text, cited)


def _cited(text: str, keys: tuple[str, ...]) -> str:
    return f"{text} {cite(*keys)}" if keys else text


def _collected(analysis: Analysis) -> list[str]:
    judgments = analysis.history.judgments
    counted = analysis.history.counted
    people = counted.filter(pl.col("annotator") != "")["annotator"].n_unique()
    text = f"We collected {judgments.height:,} answers about {len(analysis.study.items):,} items"
    text += f", of which {counted.height:,} by {people:,} annotators are included in the analysis."
    return [text] if judgments.height else []


def _asked(analysis: Analysis) -> list[str]:
    stages = analysis.study.config.stages
    sentences = []
    for place, stage in enumerate(stages):
        lead = "Annotators" if len(stages) == 1 else f"In stage {place + 1} ({stage.name}), annotators"
        sentence = f"{lead} {_task(stage.protocol)} in answer to “{analysis.study.config.question_of(stage)}”"
        how, keys = _DESIGNS.get(stage.design.name, (f"tasks were chosen by the design {stage.design.name}", ()))
        sentences.append(f"{sentence}; {_cited(how, keys)}.")
    return sentences


def _task(protocol: Protocol) -> str:
    """Describe what annotators did in one task."""
    size = protocol.task_size
    scales = list(protocol.scales().items())
    scale = ""
    if scales:
        ends = [f"{name} {low:g} to {high:g}".strip() for name, (low, high) in scales]
        scale = f" on a scale from {ends[0]}" if len(ends) == 1 and not scales[0][0] else f" ({'; '.join(ends)})"
    several = f"{size} items at a time" if size > 1 else "one item at a time"
    return {
        "direct": f"rated {several}{scale}",
        "likert": f"rated {several} by labelled steps{scale}",
        "choice": f"labelled {several}",
        "pairwise": _compared(protocol),
        "best_worst": f"chose the best and the worst of {size} items {cite('kiritchenko2017')}",
        "scored_ranking": f"rated {size} items side by side{scale} {cite('sakaguchi2018')}",
        "ranking": f"ranked {size} items at a time",
        "error_spans": _marking(protocol, several, scale),
    }.get(protocol.name, f"answered tasks of {size} items under the protocol {protocol.name}")


def _compared(protocol: Protocol) -> str:
    steps = f" on {getattr(protocol, 'steps', 3)} steps" if protocol.strengths > 1 else ""
    return f"compared two items at a time{steps}" + (", ties allowed," if getattr(protocol, "ties", False) else "")


def _marking(protocol: Protocol, several: str, scale: str) -> str:
    if not isinstance(protocol, ErrorSpans):
        return ""
    text = f"marked errors in {several} by severity ({', '.join(protocol.severities)})"
    if protocol.categories:
        text += f" and category ({len(protocol.categories)} categories)"
    if protocol.score == "mqm":
        weights = ", ".join(f"{name} {weight:g}" for name, weight in protocol.severities.items())
        return f"{text}, from which scores were calculated (MQM; penalties: {weights}) {cite('freitag2021')}"
    return f"{text} and then scored it{scale} {cite('kocmi2024')}"


def _quality(analysis: Analysis) -> list[str]:
    quality = analysis.study.config.quality
    sentences: list[str] = []
    history = analysis.history
    if quality.qualification is not None:
        sentences.append(
            f"Annotators first had to answer {100 * quality.qualification.min_accuracy:g} % of a qualification "
            "test correctly."
        )
    if quality.checks is not None:
        rule = quality.checks
        text = (
            f"About {100 * rule.rate:g} % of the tasks were checks with known answers "
            f"{cite('snow2008', 'kiritchenko2017')}"
        )
        if rule.rule == "posterior":
            text += (
                f"; annotators whose accuracy on the checks was below {100 * rule.min_accuracy:g} % with a posterior "
            )
            text += (
                f"probability of {100 * rule.confidence:g} %, after at least {rule.min_checks} checks, were excluded"
            )
        else:
            text += f"; annotators with an accuracy below {100 * rule.min_accuracy:g} %, after at least "
            text += f"{rule.min_checks} checks, were excluded"
        sentences.append(text + ", their judgments were not used, and their tasks were reassigned.")
    rules = [words for key, words in _RULES.items() if getattr(quality.rules, key)]
    if rules:
        sentences.append(f"Annotators were also excluded {', or '.join(rules)}, each tested with a 95 % interval.")
    if history.excluded:
        count = len(history.excluded)
        aside = history.judgments.filter(pl.col("excluded") & ~pl.col("purpose").is_in(["check", "repeat"])).height
        sentences.append(
            f"In total, {count:,} annotator{'s were' if count > 1 else ' was'} excluded, "
            f"and {aside:,} judgments were discarded."
        )
    stop = analysis.study.config.stop
    if stop is not None:
        sentences.append(
            f"There were at most {stop.interim_analyses} interim analyses of the stopping rule, equally spaced over "
            "the planned judgments, with group-sequential bounds (Pocock 1977) for an overall error rate of "
            f"{stop.alpha:g}."
        )
    return sentences


def _scored(analysis: Analysis) -> list[str]:
    fit = analysis.fit
    if isinstance(fit, str):
        return []
    how, keys = _MODELS.get(fit.model, (f"the model {fit.model}", ()))
    noun = "Labels" if "label" in fit.scores.columns else "Scores"
    text = f"{noun} were estimated by {_cited(how, keys)}"
    intervals = (
        fit.scores["interval"].drop_nulls().unique().sort().to_list() if "interval" in fit.scores.columns else []
    )
    if intervals:
        ways = ", ".join(interval_in_words(str(one)) for one in intervals)
        text += f", with {100 * fit.level:g} % intervals {ways}"
        text += f" {cite('wilson1927')}" if "wilson" in intervals else ""
    return [text + "."]


_INTERVALS = {
    "bootstrap": "from a bootstrap over {}",
    "t": "from the t distribution over {}",
    "sandwich": "from the sandwich variance over {}",
    "clustered": "from variances clustered by {}",
    "jackknife": "from the jackknife over {}",
    "posterior": "from the posterior",
    "wilson": "by Wilson’s method",
    "model": "from the model",
}


def interval_in_words(interval: str) -> str:
    """Describe how intervals were computed, which tables write as `bootstrap(annotators)`."""
    how, _, units = interval.partition("(")
    return _INTERVALS.get(how, f"by {interval}").format(units.removesuffix(")") or "judgments")


def _reliable(analysis: Analysis) -> list[str]:
    sentences = []
    several = len(analysis.reliability) > 1
    for part in analysis.reliability:
        of = f" of {' '.join(part for part in (part.stage, part.criterion) if part)}" if several else ""
        statistics = {statistic.key: statistic for statistic in part.statistics}
        half = statistics.get(CURVE)
        if half is not None and half.value is not None:
            text = f"Split-half reliability{of} (Spearman’s ρ, without Spearman–Brown correction) was {_interval(half)}"
            text += f" {cite('kiritchenko2017')}"
            corrected = statistics.get("split_half_spearman_corrected")
            if corrected is not None and corrected.value is not None:
                text += f"; with Spearman–Brown correction it was {format_number(corrected.value)}"
                text += f" {cite('spearman1910', 'brown1910')}"
            sentences.append(text + ".")
        alpha = next((s for key, s in statistics.items() if key.startswith("alpha") and s.value), None)
        if alpha is not None:
            level = alpha.key.removeprefix("alpha_").replace("_", ", ")
            sentences.append(f"Krippendorff’s α{of} ({level}) was {_interval(alpha)} {cite('krippendorff2004')}.")
    if sentences:
        sentences.append("Numbers in parentheses are 95 % intervals.")
    return sentences


def _interval(figure: Statistic) -> str:
    return (
        "undefined" if figure.value is None else format_interval(Estimate(figure.value, figure.lower, figure.upper), 2)
    )
