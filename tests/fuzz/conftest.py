"""Servers for the fuzz tests, as the web tests have them."""

from tests.web.conftest import serve_study

__all__ = ["serve_study"]
