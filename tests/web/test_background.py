"""A served study closes itself at its target and applies its rules, with nobody looking."""

from __future__ import annotations

import time

import numpy as np


def test_the_target_closes_the_study_and_the_rules_exclude_the_careless(make_study, serve_study):
    folder = make_study(
        'name = "direct"',
        'name = "per_item"\njudgments = 6',
        items=30,
        extra='[stop]\nmeasure = "split_half"\ntarget = 0.5\ninterim_analyses = 2\n[quality.rules]\nconstant = 0.8\n',
    )
    server = serve_study(folder)
    rng, study = np.random.default_rng(0), server.study
    truth = {item.id: 3 * n for n, item in enumerate(study.items)}
    for annotator in ("spam", "ann", "bob", "cleo", "dan"):
        while (task := study.ask(annotator)) is not None:
            item = task.item_ids[0]
            value = 50 if annotator == "spam" else truth[item] + float(rng.normal(0, 3))
            study.tell(task, {item: float(np.clip(value, 0, 100))})
    patience = time.monotonic() + 60
    while (study.state == "open" or not study.annotators.excluded) and time.monotonic() < patience:
        time.sleep(0.2)
    assert list(study.annotators.excluded) == ["spam"]
    assert study.state == "closed"
    no_task = server.person("eve").post("/tasks", {"count": 1}).json()["no_task"]
    assert no_task["reason_code"] == "closed"
    assert "target was reached" in no_task["reason"]
