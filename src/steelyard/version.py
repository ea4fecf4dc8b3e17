"""The version of this software."""

from importlib.metadata import version

__version__ = version("steelyard")
