"""The numbers of a report, worked out again from the exported log by other code than the report's."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from itertools import combinations, pairwise
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
from scipy import stats

from steelyard import BradleyTerry, Comparisons, Index, Mean, Ratings, agreement, cycle_consistency, split_half
from steelyard.reliability.bootstrap import Bootstrap, weighted_proportion
from steelyard.reliability.proportions import proportion
from steelyard.reliability.residuals import residuals
from steelyard.reliability.severity import fit_facets, places_in_work

Rows = list[dict[str, Any]]
HOUR = 3600 * 1_000_000
ABOUT_ANNOTATORS = {"check", "repeat"}


class Log:
    """What the lines of an exported log add up to."""

    def __init__(self, path: Path) -> None:
        self.events = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        self.answers: dict[str, dict[str, Any]] = {}
        self.excluded: dict[str, str] = {}
        for event in self.events:
            if event["kind"] in {"judgment", "revision"}:
                first = self.answers.get(event["judgment_id"])
                self.answers[event["judgment_id"]] = {
                    "purpose": "judgment",
                    **event["data"],
                    "id": event["judgment_id"],
                    "annotator": event["annotator"],
                    "at": first["at"] if first else event["at"],
                    "revised": first is not None,
                }
            elif event["kind"] == "exclusion":
                self.excluded[event["annotator"]] = event["data"]["reason"]
            elif event["kind"] == "readmission":
                del self.excluded[event["annotator"]]
        config = [event for event in self.events if event["kind"] == "config"][-1]["data"]["config"]
        self.pay, self.config = config["pay"], config
        self.items = [
            item["id"] for event in self.events if event["kind"] == "items" for item in event["data"]["items"]
        ]
        self.texts = {i["id"]: i["text"] for e in self.events if e["kind"] == "items" for i in e["data"]["items"]}
        self.checks = [row for e in self.events if e["kind"] == "checks" for row in e["data"]["questions"]]

    def all(self) -> list[dict[str, Any]]:
        return list(self.answers.values())

    def counted(self) -> list[dict[str, Any]]:
        return [a for a in self.all() if a["annotator"] not in self.excluded and a["purpose"] not in ABOUT_ANNOTATORS]

    def set_aside(self) -> list[dict[str, Any]]:
        return [a for a in self.all() if a["annotator"] in self.excluded and a["purpose"] not in ABOUT_ANNOTATORS]

    def of_purpose(self, purpose: str) -> list[dict[str, Any]]:
        return [a for a in self.all() if a["purpose"] == purpose]

    def kinds(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["kind"] == kind]

    @property
    def scored(self) -> bool:
        return bool(self.config["protocol"]["name"] == "scored_ranking")


def wilson(hits: float, total: float) -> tuple[float, float]:
    z = stats.norm.ppf(0.975)
    share = hits / total
    middle = (share + z**2 / (2 * total)) / (1 + z**2 / total)
    reach = z / (1 + z**2 / total) * math.sqrt(share * (1 - share) / total + z**2 / (4 * total**2))
    return middle - reach, middle + reach


def ratings(log: Log, answers: list[dict[str, Any]], tasks: bool = False) -> Ratings:
    rows = [(a["id"], a["annotator"], item, float(a["answer"][item])) for a in answers for item in a["items"]]
    return Ratings(
        item=_codes(log.items, [r[2] for r in rows]),
        value=np.array([r[3] for r in rows]),
        scale=(0, 100),
        **_who(log, rows, tasks),
    )


def comparisons(log: Log, answers: list[dict[str, Any]], tasks: bool = False) -> Comparisons:
    rows = []
    for a in answers:
        for left, right in combinations(a["items"], 2):
            if log.scored:
                gap = a["answer"][left] - a["answer"][right]
                rows.append((a["id"], a["annotator"], left, right, (gap > 0) - (gap < 0)))
            else:
                winner = a["answer"]["winner"]
                rows.append((a["id"], a["annotator"], left, right, {left: 1, right: -1, None: 0}[winner]))
    return Comparisons(
        left=_codes(log.items, [r[2] for r in rows]),
        right=_codes(log.items, [r[3] for r in rows]),
        outcome=np.array([r[4] for r in rows], np.int8),
        **_who(log, rows, tasks),
    )


def _codes(names: list[str], values: list[str]) -> np.ndarray:
    return np.array([names.index(value) for value in values], np.int32)


def _who(log: Log, rows: list[tuple[Any, ...]], tasks: bool) -> dict[str, Any]:
    people = sorted({row[1] for row in rows})
    fields: dict[str, Any] = {"items": Index(log.items), "annotators": Index(people)}
    fields["annotator"] = _codes(people, [row[1] for row in rows])
    if tasks:
        ids = list(dict.fromkeys(row[0] for row in rows))
        fields |= {"tasks": Index(ids), "task": _codes(ids, [row[0] for row in rows])}
    return fields


def observations(log: Log, answers: list[dict[str, Any]] | None = None, tasks: bool = False) -> Any:
    answers = log.counted() if answers is None else answers
    return (ratings if log.scored else comparisons)(log, answers, tasks)


# Tables, by name: the numbers of every row


def summary(log: Log) -> Rows:
    counted = log.counted()
    each = Counter(item for a in counted for item in a["items"])
    rows = [len(log.items), len({a["annotator"] for a in counted}), len(counted), median(each.values())]
    summary_rows = [{"value": float(value)} for value in rows]
    statistics = {row["statistic"]: row for row in reliability(log)}
    names = ["split_half_spearman", "alpha_interval" if log.scored else "alpha_nominal"]
    summary_rows += [statistics[name] for name in names]
    return [*summary_rows, {"value": costs(log)[0]["cost"]}, {}]


def stages(log: Log) -> Rows:
    return [{}]


def annotators_answered(log: Log) -> Rows:
    each = Counter(a["annotator"] for a in log.all())
    return [{"value": len(each)}, {"value": median(each.values())}, {"value": len(log.excluded)}]


def answers(log: Log) -> Rows:
    numbers = [
        len(log.all()),
        len(log.counted()),
        sum(a["purpose"] == "overlap" for a in log.counted()),
        len(log.set_aside()),
        len(log.of_purpose("check")),
        len(log.of_purpose("repeat")),
        sum(bool(a.get("late", False)) for a in log.all()),
        sum(a["revised"] for a in log.all()),
        len(log.kinds("skip")),
        len(log.kinds("flag")),
        len(log.kinds("expired")),
    ]
    return [{"value": number} for number in numbers if number]


def time(log: Log) -> Rows:
    at = [a["at"] for a in log.all()]
    seconds = [a["seconds"] for a in log.all() if "seconds" in a]
    between = (max(at) - min(at)) / HOUR
    rows: Rows = [{}, {}, {"value": between}, {"value": median(seconds)}, {"value": sum(seconds) / 3600}]
    each = [a["seconds"] / len(a["items"]) for a in log.all() if "seconds" in a and len(a["items"]) > 1]
    return [*rows, {"value": median(each)}] if each else rows


def scores(log: Log) -> Rows:
    data = observations(log, tasks=True)
    table = {row["item"]: row for row in (Mean() if log.scored else BradleyTerry()).fit(data).scores.to_dicts()}
    rows = []
    for item, row in table.items():
        about = [a for a in log.counted() if item in a["items"]]
        row |= {"score_lower": row["lower"], "score_upper": row["upper"]}
        row |= {"judgments": len(about), "annotators": len({a["annotator"] for a in about})}
        if log.scored:
            row["score"] = mean(a["answer"][item] for a in about)
        rows.append(row)
    rows.sort(key=lambda row: (-row["score"], row["item"]))
    for row in rows:
        row["rank"] = 1 + sum(other["score"] > row["score"] for other in rows)
    return rows


def _figure(figure: Any, **more: Any) -> dict[str, Any]:
    return {
        "statistic": figure.key,
        "value": figure.value,
        "value_lower": figure.lower,
        "value_upper": figure.upper,
        "n": figure.n,
        **more,
    }


ORDER = {"cyclic_graphs", "items_in_no_cycle", "circular_triads", "coefficient_of_consistence"}


def reliability(log: Log) -> Rows:
    data = observations(log)
    statistics = list(agreement(data).statistics)
    halves = [f for f in statistics if f.key.startswith("split_half")]
    if all(figure.value is None for figure in halves):
        halves = list(split_half(data, by="annotator").statistics)
    rest = [f for f in statistics if not f.key.startswith(("split_half", "position_bias")) and f.key not in ORDER]
    rows = [_figure(figure) for figure in [*halves, *rest]]
    by_hand = _agreement_by_hand(log)
    for row in rows:
        row["value"] = by_hand.get(row["statistic"], row["value"])
    return rows


def _agreement_by_hand(log: Log) -> dict[str, float]:
    if log.scored:
        gaps = []
        for item in log.items:
            ratings = [(a["annotator"], a["answer"][item]) for a in log.counted() if item in a["items"]]
            gaps += [abs(x - y) for (p, x), (q, y) in combinations(ratings, 2) if p != q]
        return {"mean_absolute_difference": mean(gaps)}
    pairs = defaultdict(list)
    for a in log.counted():
        pairs[tuple(sorted(a["items"]))].append((a["annotator"], a["answer"]["winner"]))
    same = [x == y for ratings in pairs.values() for (p, x), (q, y) in combinations(ratings, 2) if p != q]
    share = sum(same) / len(same)
    return {"observed_agreement": share, "kappa_fixed_chance": (share - 1 / 3) / (2 / 3)}


def soft_labels(log: Log) -> Rows:
    """Count the answers to each item: tenths of the scale, or wins, ties and losses."""
    counts: dict[str, Counter[Any]] = defaultdict(Counter)
    for a in log.counted():
        for item in a["items"]:
            if log.scored:
                counts[item][min(int(a["answer"][item] // 10), 9)] += 1
            else:
                winner = a["answer"]["winner"]
                counts[item]["tie" if winner is None else winner == item] += 1
    rows = []
    for item in log.items:
        total = sum(counts[item].values())
        entropy = round(-sum(n / total * math.log2(n / total) for n in counts[item].values()), 12)
        rows.append({"item": item, "judgments": total, "entropy": entropy})
    return sorted(rows, key=lambda row: (-row["entropy"], -row["judgments"]))


def order(log: Log) -> Rows:
    data = comparisons(log, log.counted())
    statistics = [f for f in cycle_consistency(data).statistics if f.value is not None]
    rows = [_figure(figure) for figure in statistics]
    decided = [(who, outcome > 0) for who, outcome in zip(data.annotator, data.outcome, strict=True) if outcome]
    share = sum(left for _, left in decided) / len(decided)
    by_person = defaultdict(list)
    for who, left in decided:
        by_person[who].append(left)
    people = len(by_person)
    off = [sum(left) - share * len(left) for left in by_person.values()]
    spread = math.sqrt(sum(x * x for x in off) * people / (people - 1)) / len(decided)
    reach = stats.t.ppf(0.975, people - 1) * spread
    ends = {"value_lower": max(0.0, share - reach), "value_upper": min(1.0, share + reach)}
    return [*rows, {"statistic": "position_bias", "value": share, "n": people, **ends}]


def annotators(log: Log) -> Rows:
    rows = []
    effects = _rater_effects(log)
    every = [a for a in log.all() if a["purpose"] != "check"]
    judged = [a for a in every if a["purpose"] != "repeat"]
    letters = {item: len(text) for item, text in log.texts.items()}
    for name in sorted({a["annotator"] for a in log.all()}):
        own = [a for a in log.all() if a["annotator"] == name]
        timed = [a for a in own if "seconds" in a]
        seconds = [a["seconds"] for a in timed]
        fast = [a["seconds"] < 0.4 + sum(letters.get(i, 0) for i in a["items"]) / 75 for a in timed]
        checks = [a["right"] for a in own if a["purpose"] == "check"]
        lower, upper = wilson(sum(checks), len(checks)) if checks else (None, None)
        row = {
            "annotator": name,
            "judgments": len(own),
            "median_seconds": median(seconds),
            "accuracy": sum(checks) / len(checks) if checks else None,
            "accuracy_lower": lower,
            "accuracy_upper": upper,
            "checks": len(checks) or None,
            "too_fast": sum(fast) / len(fast),
        }
        row |= (_rater if log.scored else _comparer)(log, name, judged, own)
        row |= effects.get(name, {"infit": None, "severity": None, "drift": None})
        row |= _with_self(log, [a for a in every if a["annotator"] == name])
        rows.append(row)
    return sorted(rows, key=lambda row: (-row["judgments"], row["annotator"]))


def _rater_effects(log: Log) -> dict[str, dict[str, Any]]:
    part = observations(log, tasks=True)
    result = residuals(part)
    assert result is not None
    table = result.by_annotator()
    if log.scored:
        order = np.array([float(list(log.answers).index(task)) for task in part.tasks.ids])
        facets = fit_facets(part, places_in_work(part.annotator, order[part.task])).annotators
        table = table.join(facets, on="annotator", how="left")
    return {row["annotator"]: row for row in table.drop("answers").iter_rows(named=True)}


def _rater(log: Log, name: str, judged: list[dict[str, Any]], own: list[dict[str, Any]]) -> dict[str, Any]:
    mine: Any = defaultdict(list)
    theirs: Any = defaultdict(lambda: defaultdict(list))
    for a in judged:
        for item in a["items"]:
            if a["annotator"] == name:
                mine[item].append(a["answer"][item])
            elif a["annotator"] not in log.excluded:
                theirs[item][a["annotator"]].append(a["answer"][item])
    shared = [item for item in mine if theirs[item]]
    x = np.array([mean(mine[item]) for item in shared])
    y = np.array([mean(mean(values) for values in theirs[item].values()) for item in shared])
    r = float(np.corrcoef(x, y)[0, 1])
    z, reach = math.atanh(r), stats.norm.ppf(0.975) / math.sqrt(len(shared) - 3)
    values = Counter(value for a in own for value in a["answer"].values())
    return {
        "agreement": r,
        "agreement_lower": math.tanh(z - reach),
        "agreement_upper": math.tanh(z + reach),
        "bias": float((x - y).mean()),
        "noise": float((x - y).std(ddof=1)),
        "constant": values.most_common(1)[0][1] / values.total(),
    }


def _comparer(log: Log, name: str, judged: list[dict[str, Any]], own: list[dict[str, Any]]) -> dict[str, Any]:
    credit: Any = Counter()
    counts: Counter[str] = Counter()
    for a in judged:
        if a["annotator"] != name and a["annotator"] not in log.excluded:
            for item in a["items"]:
                counts[item] += 1
                credit[item] += {item: 1.0, None: 0.5}.get(a["answer"]["winner"], 0.0)
    hits = []
    for a in judged:
        winner = a["answer"]["winner"]
        if a["annotator"] == name and winner is not None and all(counts[item] for item in a["items"]):
            loser = next(item for item in a["items"] if item != winner)
            gap = credit[winner] / counts[winner] - credit[loser] / counts[loser]
            hits.append(0.5 + 0.5 * ((gap > 0) - (gap < 0)))
    lower, upper = wilson(sum(hits), len(hits))
    places = Counter(a["items"].index(a["answer"]["winner"]) for a in own if a["answer"]["winner"] is not None)
    return {
        "agreement": sum(hits) / len(hits),
        "agreement_lower": lower,
        "agreement_upper": upper,
        "place_share": places.most_common(1)[0][1] / places.total(),
    }


def _with_self(log: Log, every: list[dict[str, Any]]) -> dict[str, Any]:
    answers = defaultdict(list)
    for a in every:
        if log.scored:
            for item in a["items"]:
                answers[item].append(a["answer"][item] / 100)
        else:
            answers[tuple(sorted(a["items"]))].append(a["answer"]["winner"])
    pairs = [(x, y) for values in answers.values() for x, y in combinations(values, 2)]
    if not pairs:
        return {"self_consistency": None}
    return {"self_consistency": 1 - mean(abs(x - y) if log.scored else float(x != y) for x, y in pairs)}


def checks_answered(log: Log) -> Rows:
    answers = log.of_purpose("check")
    disputed = sum(row["state"] == "disputed" for row in checks(log))
    people = len({a["annotator"] for a in answers})
    return [{"value": v} for v in (len(answers), sum(a["right"] for a in answers) / len(answers), people, disputed)]


def checks(log: Log) -> Rows:
    by_key = defaultdict(list)
    for a in log.of_purpose("check"):
        by_key[a["about"]].append(a["right"])
    rows = []
    for key, right in by_key.items():
        hits, total = sum(right), len(right)
        lower, upper = wilson(hits, total)
        state = "disputed" if total >= 5 and 2 * hits < total else "counts"
        row = {"check": key, "right": hits, "wrong": total - hits, "share": hits / total, "state": state}
        rows.append(row | {"share_lower": lower, "share_upper": upper})
    return sorted(rows, key=lambda row: (row["share"], row["check"]))


def _repeats(log: Log) -> list[dict[str, Any]]:
    pairs = []
    for again in log.of_purpose("repeat"):
        if again["annotator"] in log.excluded:
            continue
        first = log.answers[again["about"]]
        hours = (again["at"] - first["at"]) / HOUR
        for question in again["items"] if log.scored else ["winner"]:
            x, y = first["answer"][question], again["answer"][question]
            gap = abs(x - y) if log.scored else None
            pairs.append({"annotator": again["annotator"], "hours": hours, "differs": float(x != y), "gap": gap})
    return pairs


def _resampled(pairs: list[dict[str, Any]], key: str) -> Any:
    names, code = np.unique([pair["annotator"] for pair in pairs], return_inverse=True)
    part, whole = np.array([pair[key] for pair in pairs], float), np.ones(len(pairs))
    shared: dict[str, Any] = {"unit": "annotators", "note": "", "undefined": ""}
    shared |= {"cluster": code.astype(np.int64), "names": lambda: tuple(map(str, names))}
    if key == "differs":
        return proportion("", part, whole, Bootstrap(), counted="repeats", **shared)
    return Bootstrap().statistic("", weighted_proportion(part, whole), len(names), low=0.0, high=math.inf, **shared)


def repeats(log: Log) -> Rows:
    pairs = _repeats(log)
    rate = _figure(_resampled(pairs, "differs")) | {"value": mean(pair["differs"] for pair in pairs)}
    if not log.scored:
        return [rate]
    apart = [pair for pair in pairs if pair["differs"]]
    gaps = [_figure(_resampled(some, "gap")) | {"value": mean(p["gap"] for p in some)} for some in (apart, pairs)]
    return [rate, *gaps]


def repeats_by_time(log: Log) -> Rows:
    pairs = _repeats(log)
    hours = np.array([pair["hours"] for pair in pairs])
    classes = min(5, max(1, len(pairs) // 20))
    edges = np.unique(np.quantile(hours, np.linspace(0, 1, classes + 1)))
    rows = []
    for low, high in pairwise(edges):
        here = [p for p in pairs if low <= p["hours"] < high or (high == edges[-1] and p["hours"] == high)]
        rate = _resampled(here, "differs")
        row = {"from": low, "to": high, "pairs": len(here), "rate": mean(p["differs"] for p in here)}
        row |= {"rate_lower": rate.lower, "rate_upper": rate.upper}
        if log.scored:
            gap = _resampled(here, "gap")
            row |= {"difference": mean(p["gap"] for p in here)}
            row |= {"difference_lower": gap.lower, "difference_upper": gap.upper}
        rows.append(row)
    return rows


def interim_analyses(log: Log) -> Rows:
    return [event["data"] for event in log.kinds("interim_analysis")]


def exclusions(log: Log) -> Rows:
    aside = Counter(a["annotator"] for a in log.set_aside())
    events = [event for event in log.events if event["kind"] in {"exclusion", "readmission"}]
    return [{"set_aside": aside[event["annotator"]]} for event in events]


def _bonuses(log: Log) -> float:
    """Three cents a check that is right and counts, and half a unit where nine in ten are."""
    disputed = {row["check"] for row in checks(log) if row["state"] == "disputed"}
    total = 0
    for person in {a["annotator"] for a in log.all()} - set(log.excluded):
        right = [a["right"] for a in log.of_purpose("check") if a["annotator"] == person and a["about"] not in disputed]
        total += 3 * sum(right) + (50 if right and 10 * sum(right) >= 9 * len(right) else 0)
    return total / 100


def costs(log: Log) -> Rows:
    times = [a["seconds"] for a in log.all() if "seconds" in a]
    hours = mean(times) * len(log.all()) / 3600
    bonuses = _bonuses(log)
    cost = (0.05 * len(log.all()) + 0.4 * len({a["annotator"] for a in log.all()}) + 1.5 * hours + bonuses) * 1.2
    labels = len(log.counted()) * (3 if log.scored else 1)
    at = [a["at"] for a in log.all()]
    elapsed = (max(at) - min(at)) / HOUR
    row = {
        "answers": len(log.all()),
        "labels": labels,
        "bonus": bonuses * 1.2,
        "cost": cost,
        "hours": hours,
        "elapsed": elapsed,
    }
    return [row | {"labels_per_unit": labels / cost, "labels_per_hour": labels / elapsed}]


TABLES = {
    "summary": summary,
    "stages": stages,
    "annotators-answered": annotators_answered,
    "answers": answers,
    "time": time,
    "scores": scores,
    "reliability": reliability,
    "soft-labels": soft_labels,
    "order": order,
    "annotators": annotators,
    "checks-answered": checks_answered,
    "checks": checks,
    "repeats": repeats,
    "repeats-by-time": repeats_by_time,
    "interim_analyses": interim_analyses,
    "exclusions": exclusions,
    "costs": costs,
}
WITHOUT_NUMBERS = {"settings", "software"}
SENTENCES = {"findings"}
"""Tables of sentences, which are there only if there is something to say."""
