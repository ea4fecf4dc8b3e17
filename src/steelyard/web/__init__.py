"""The pages and the API. All HTTP of the service is in this package."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steelyard.web.app import create_app
    from steelyard.web.studies import Studies

__all__ = ["Studies", "create_app"]


def __getattr__(name: str) -> Any:
    # Imported when they are used: the calculator process belongs to this package and needs no web framework.
    if name == "create_app":
        from steelyard.web.app import create_app

        return create_app
    if name == "Studies":
        from steelyard.web.studies import Studies

        return Studies
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
