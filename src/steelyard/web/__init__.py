"""The pages and the API: HTTP lives here and nowhere else."""

from steelyard.web.app import create_app
from steelyard.web.studies import Studies

__all__ = ["Studies", "create_app"]
