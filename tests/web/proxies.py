"""nginx and Caddy with the configurations of the folder deploy/proxies, in front of a server of the tests."""

from __future__ import annotations

import contextlib
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.conftest import ROOT, missing_tool
from tests.waiting import wait_until

CONFIGURATIONS = ROOT / "deploy" / "proxies"
DOCUMENTED_PATH = "/tools/annotation"


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def certificate(folder: Path) -> tuple[Path, Path]:
    """Create a certificate for 127.0.0.1, signed by itself; return it and its key."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost",
         "-keyout", str(key), "-out", str(certificate)],
        check=True,
        capture_output=True,
    )  # fmt: skip
    return certificate, key


def _is_up(port: int) -> bool:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with (
        contextlib.suppress(OSError),
        socket.create_connection(("127.0.0.1", port), 1) as plain,
        context.wrap_socket(plain),
    ):
        return True
    return False


def _binary(name: str) -> str:
    path = shutil.which(name, path="/usr/sbin:/usr/bin:/usr/local/bin:/bin")
    if path is None:
        missing_tool(f"{name} is not installed (scripts/install-tools)")
    return str(path)


def _nginx(folder: Path, port: int, site: str) -> list[str]:
    pem, key = certificate(folder)
    site = (
        site.replace("listen 443 ssl", f"listen 127.0.0.1:{port} ssl")
        .replace("/etc/ssl/certs/www.example.org.pem", str(pem))
        .replace("/etc/ssl/private/www.example.org.key", str(key))
    )
    temporary = "".join(
        f"{name}_temp_path {folder}/{name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    # gzip on, as in Debian's nginx.conf.
    (folder / "nginx.conf").write_text(
        f"daemon off;\npid {folder}/pid;\nerror_log {folder}/error.log;\nevents {{}}\n"
        f"http {{\naccess_log off;\ngzip on;\ngzip_types *;\n{temporary}\n{site}\n}}\n"
    )
    return [_binary("nginx"), "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]


def _caddy(folder: Path, port: int, site: str) -> list[str]:
    pem, key = certificate(folder)
    site = site.replace("www.example.org {", f"https://127.0.0.1:{port} {{\n\ttls {pem} {key}")
    (folder / "Caddyfile").write_text(f"{{\n\tadmin off\n\tauto_https disable_redirects\n}}\n{site}")
    return [_binary("caddy"), "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]


@contextlib.contextmanager
def proxy(name: str, folder: Path, backend: int, path: str) -> Iterator[str]:
    """Run a proxy that serves the backend under a path; yield its address with the path."""
    folder.mkdir()
    port = free_port()
    command, file = {"nginx": (_nginx, "nginx.conf"), "caddy": (_caddy, "Caddyfile")}[name]
    site = (CONFIGURATIONS / file).read_text()
    site = site.replace(DOCUMENTED_PATH, path).replace("127.0.0.1:8000", f"127.0.0.1:{backend}")
    home = {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(command(folder, port, site), stdout=output, stderr=output, env=home)
    try:
        wait_until(lambda: process.poll() is not None or _is_up(port), seconds=20)
        assert process.poll() is None, (folder / "output").read_text()
        yield f"https://127.0.0.1:{port}{path}"
    finally:
        process.terminate()
        process.wait(10)
