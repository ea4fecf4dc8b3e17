"""Health, readiness, metrics and JSON logs."""

from __future__ import annotations

import json
import logging

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import create_engine, text

from steelyard.errors import ConfigError
from steelyard.web.app import configure_logging
from steelyard.web.observation import Metrics

MONITOR = "the-token-of-the-monitoring"
BEARER = {"Authorization": f"Bearer {MONITOR}"}


def samples(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Read metrics with Prometheus' own parser."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.mark.server
def test_a_server_is_ready_while_its_databases_are_reachable_and_current(make_study, serve_study, database_url):
    server = serve_study(make_study(), database=database_url)
    assert httpx.get(f"{server.url}/api/v1/ready").json() == {"status": "ready"}
    engine = create_engine(database_url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        connection.execute(text("UPDATE steelyard_version SET version_num = '0002'"))
    response = httpx.get(f"{server.url}/api/v1/ready")
    assert (response.status_code, response.json()["error"]["code"]) == (503, "not_ready")
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE steelyard_version"))
    engine.dispose()
    assert httpx.get(f"{server.url}/api/v1/ready").status_code == 503
    # The process itself is well: a restart would not help.
    assert httpx.get(f"{server.url}/api/v1/health").status_code == 200


@pytest.mark.server
def test_metrics_count_requests_and_judgments_and_name_no_annotator(make_study, serve_study):
    server = serve_study(make_study(), metrics_token=MONITOR)
    assert httpx.get(f"{server.url}/metrics").status_code == 401
    assert httpx.get(f"{server.url}/metrics", headers={"Authorization": f"Bearer {server.token}"}).status_code == 401
    ann = server.person("Annabel Lee")
    for _ in range(2):
        task = ann.task()
        ann.tell(task, {task["items"][0]["id"]: 60})
    httpx.get(f"{server.url}/no/such/Annabel Lee")
    response = httpx.get(f"{server.url}/metrics", headers=BEARER)
    assert "Annabel" not in response.text
    values = samples(response.text)
    route = ("route", "/api/v1/studies/{study}/judgments")
    assert values["steelyard_requests_total", (("method", "POST"), route, ("status", "200"))] == 2
    assert values["steelyard_response_seconds_count", (route,)] == 2
    assert values["steelyard_response_seconds_bucket", (("le", "+Inf"), route)] == 2
    assert values["steelyard_requests_total", (("method", "GET"), ("route", "unmatched"), ("status", "404"))] == 1
    assert values["steelyard_study_judgments", (("study", "study"),)] == 2
    assert values["steelyard_study_annotators", (("study", "study"),)] == 1
    assert values["steelyard_study_tasks_planned", (("study", "study"),)] >= 2


@pytest.mark.server
def test_there_are_no_metrics_unless_a_token_is_set(make_study, serve_study):
    server = serve_study(make_study())
    for headers in ({}, BEARER, {"Authorization": f"Bearer {server.token}"}):
        assert httpx.get(f"{server.url}/metrics", headers=headers).status_code == 404
    with pytest.raises(ConfigError, match="STEELYARD_METRICS_TOKEN is too easy"):
        serve_study(server.folders[0], metrics_token="secret")


def test_metrics_of_several_processes_are_added_also_of_those_that_ended(tmp_path):
    first, second = Metrics(tmp_path), Metrics(tmp_path)
    for seconds in (0.004, 0.2):
        first.note("GET", "/", 200, seconds)
    first.totals()
    second.note("GET", "/", 200, 20)
    requests, buckets, seconds = second.totals()
    assert requests["GET", "/", "200"] == 3
    assert seconds["/"] == pytest.approx(20.204)
    # Bounds are 5 ms … 10 s: the first, the sixth and the last, +Inf.
    assert buckets == {("/", "0"): 1, ("/", "5"): 1, ("/", "11"): 1}


@pytest.mark.server
def test_logs_are_json_on_demand_without_queries_or_line_breaks(make_study, serve_study, monkeypatch, capsys):
    monkeypatch.setenv("STEELYARD_LOG_FORMAT", "json")
    log = logging.getLogger("steelyard")
    before = (log.handlers[:], log.level, log.propagate)
    try:
        configure_logging()
        server = serve_study(make_study())
        httpx.get(f"{server.url}/manage/study/", params={"token": "a-wrong-token-of-somebody"})
        httpx.get(f"{server.url}/no%0Aforged/line")
    finally:
        log.handlers[:], log.level, log.propagate = before
        logging.getLogger("steelyard.requests").setLevel(logging.WARNING)
    output = capsys.readouterr().err
    assert "a-wrong-token" not in output
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    request = next(line for line in lines if line["message"] == "request")
    assert (request["method"], request["route"], request["status"]) == ("GET", "/manage/{study}/", 403)
    assert request["seconds"] >= 0
    refusal = next(line for line in lines if line.get("code") == "token_wrong")
    assert (refusal["level"], refusal["status"]) == ("warning", 403)


def test_an_unknown_format_of_the_log_is_refused(monkeypatch):
    monkeypatch.setenv("STEELYARD_LOG_FORMAT", "xml")
    with pytest.raises(ConfigError, match="Use text or json"):
        configure_logging()
