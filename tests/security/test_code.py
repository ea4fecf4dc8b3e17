"""What our own code must not do, read off the code."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "steelyard"
FILES = sorted(SOURCE.rglob("*.py"))
FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal", "yaml", "telnetlib", "ftplib"}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__"}
FETCHERS = {"urllib.request", "requests", "aiohttp", "http.client", "urllib3"}
SECRET_NAMES = re.compile(r"(^|_)(token|csrf|secret|mark|digest|password|cookie)($|_)")


@cache
def nodes(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def imported(path: Path) -> set[str]:
    modules = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            modules |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            modules.add(node.module)
    return modules


def test_there_is_code_to_look_at():
    assert len(FILES) > 200


@pytest.mark.slow
def test_nothing_is_unpickled_evaluated_or_run_in_a_shell():
    for path in FILES:
        assert not {name.partition(".")[0] for name in imported(path)} & FORBIDDEN_MODULES, path
        _check_calls(path)


def _check_calls(path):
    for node in nodes(path):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        attribute = ast.unparse(node.func) if isinstance(node.func, ast.Attribute) else ""
        assert name not in FORBIDDEN_CALLS, (path, node.lineno)
        assert attribute not in {"os.system", "os.popen", "joblib.load", "np.load", "numpy.load"}, (path, node.lineno)
        for given in node.keywords:
            shell = given.arg == "shell" and not (isinstance(given.value, ast.Constant) and given.value.value is False)
            assert not shell, (path, node.lineno)
            assert given.arg != "allow_pickle", (path, node.lineno)


def test_the_server_has_nothing_to_fetch_addresses_with():
    """Only the client speaks HTTP to others, and only to the server it was told."""
    fetching = {path.relative_to(SOURCE).as_posix() for path in FILES if imported(path) & (FETCHERS | {"httpx"})}
    # recruitment/ calls platforms at the researcher's command; judges/ and doctor are for the command line, and not for
    # the server. web/oidc.py calls the identity provider that the operator has configured.
    own = {"client.py", "judges/endpoint.py", "web/oidc.py", "cli/doctor.py"}
    assert {name for name in fetching if not name.startswith("recruitment/")} <= own
    served = [path for package in ("web", "analysis", "study", "report") for path in (SOURCE / package).rglob("*.py")]
    assert [path for path in served if "steelyard.judges" in path.read_text(encoding="utf-8")] == []


def test_secrets_are_compared_in_constant_time():
    """In the rooms that know tokens, nothing named like one is compared with == or !=."""
    places = []
    for path in [*SOURCE.glob("web/*.py"), SOURCE / "storage" / "access.py"]:
        for node in nodes(path):
            if isinstance(node, ast.Compare) and any(isinstance(op, ast.Eq | ast.NotEq) for op in node.ops):
                sides = [node.left, *node.comparators]
                named = [ast.unparse(side).rpartition(".")[2].strip("()") for side in sides]
                if any(SECRET_NAMES.search(name) for name in named) and "access.c." not in ast.unparse(node):
                    places.append(f"{path.name}:{node.lineno} {ast.unparse(node)}")
    assert places == []
    assert (SOURCE / "web" / "identity.py").read_text().count("hmac.compare_digest") >= 3


def test_templates_escape_by_themselves():
    for path in SOURCE.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"\|\s*safe\b|autoescape\s+false", text), path


def test_scripts_make_no_html_of_what_they_are_sent():
    """One place sets HTML, what the server has sanitised; nothing is evaluated or written into the document."""
    for path in SOURCE.rglob("*.js"):
        text = path.read_text(encoding="utf-8")
        uses = re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc", text)
        assert uses == (["innerHTML"] if path.name == "dom.js" else []), path
