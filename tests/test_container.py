"""The container's entry point and health check work without Docker, and its files keep their promises."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml

DEPLOY = Path(__file__).resolve().parent.parent / "deploy"
TOKEN = "a-manager's-token-of-the-container-test"


@pytest.fixture(scope="module")
def dockerfile() -> str:
    return (DEPLOY / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    return content


def instruction(dockerfile: str, name: str) -> str:
    return str(re.findall(rf"^{name} +(.*)$", dockerfile, re.M)[-1])


@pytest.mark.server
def test_the_entry_point_serves_a_healthy_workspace(dockerfile, tmp_path):
    arguments = json.loads(instruction(dockerfile, "CMD"))
    replacements = {"/data": str(tmp_path), "0.0.0.0": "127.0.0.1", "8000": "0"}
    command = [*json.loads(instruction(dockerfile, "ENTRYPOINT")), *(replacements.get(a, a) for a in arguments)]
    command[0] = str(Path(sys.executable).parent / command[0])
    environment = {**os.environ, "STEELYARD_TOKEN": TOKEN, "STEELYARD_PUBLIC_URL": "https://judge.example.org"}
    # As in the image: output is not buffered.
    environment["PYTHONUNBUFFERED"] = "1"
    log = (tmp_path / "log").open("w")
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
    )
    deadline = threading.Timer(60, process.kill)
    deadline.start()
    try:
        assert process.stdout is not None
        link = next(line for line in process.stdout if "https://judge.example.org/manage/" in line)
        assert TOKEN in link
        check = json.loads(re.search(r"HEALTHCHECK .*CMD (\[.*\])", dockerfile)[1])
        port = _port_of(process.pid)
        healthy = subprocess.run([sys.executable, *(part.replace("8000", str(port)) for part in check[1:])])
        assert healthy.returncode == 0
    finally:
        deadline.cancel()
        process.terminate()
        process.wait(timeout=30)
        process.stdout.close()
        log.close()
    # Without a server, the same check fails.
    done = subprocess.run([sys.executable, *(p.replace("8000", str(port)) for p in check[1:])], capture_output=True)
    assert done.returncode != 0


def _port_of(pid: int) -> int:
    """Return the port on which a process listens, from /proc."""
    inodes = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        if match := re.fullmatch(r"socket:\[(\d+)\]", os.readlink(entry)):
            inodes.add(match[1])
    rows = [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    return next(int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A" and row[9] in inodes)


def test_the_image_runs_as_an_unprivileged_user_with_its_data_on_a_volume(dockerfile):
    assert instruction(dockerfile, "USER") == "10001"
    assert instruction(dockerfile, "VOLUME") == "/data"


def test_every_service_restarts_and_the_database_is_not_reachable_from_outside(compose):
    services = compose["services"]
    assert set(services) == {"proxy", "server", "database"}
    assert all(service["restart"] == "unless-stopped" for service in services.values())
    assert all("ports" not in services[name] for name in ("server", "database"))
    assert services["database"]["networks"] == ["back"]
    assert compose["networks"]["back"]["internal"] is True


def test_the_server_trusts_the_network_of_its_proxy(compose):
    (subnet,) = compose["networks"]["front"]["ipam"]["config"]
    assert compose["services"]["server"]["environment"]["STEELYARD_TRUSTED_PROXIES"] == subnet["subnet"]


def test_every_variable_of_the_compose_file_is_in_the_example(compose):
    text = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    example = (DEPLOY / ".env.example").read_text(encoding="utf-8")
    variables = set(re.findall(r"\$\{(\w+)", text))
    assert variables == set(re.findall(r"^(\w+)=", example, re.M))


def test_the_image_copies_what_the_build_reads(dockerfile):
    """hatchling needs the readme and the licence, and the wheel the pages of the documentation."""
    copied = " ".join(re.findall(r"^COPY (?!--from)(.*)$", dockerfile, re.M))
    assert all(name in copied.split() for name in ("pyproject.toml", "README.md", "LICENSE", "src", "docs"))
