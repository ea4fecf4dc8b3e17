"""How reliable judgments are: do annotators agree, with others and with themselves."""

from __future__ import annotations

from steelyard.reliability.agreement import Agreement, agreement
from steelyard.reliability.alpha import krippendorff_alpha
from steelyard.reliability.figure import Figure

__all__ = ["agreement", "Agreement", "Figure", "krippendorff_alpha"]
