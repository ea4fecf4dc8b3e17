"""Format claims: significant digits, and whether two numbers agree as printed."""

from __future__ import annotations

from collections.abc import Sequence

from reproductions.base import Claim


def format_number(value: float | None, *, signed: bool = False) -> str:
    """Format a number: integers without decimals, others with one to three decimals depending on their size."""
    if value is None:
        return "–"
    size = abs(value)
    if size < 5e-4:
        return "0"
    if float(value).is_integer() and size < 1e6:
        text = f"{value:+,.0f}" if signed and value else f"{value:,.0f}"
    else:
        places = 1 if size >= 100 else 2 if size >= 10 else 3
        text = f"{value:+,.{places}f}" if signed else f"{value:,.{places}f}"
    return text.replace("-", "−")


def published(claim: Claim) -> str:
    """Format the published number with the digits that the paper prints."""
    if claim.published is None:
        return "–"
    return f"{round(claim.published, 3):,}".removesuffix(".0").replace("-", "−")


def difference(claim: Claim) -> str:
    """Format our difference from the published number; "=" if the two agree as printed."""
    return "=" if agrees(claim) else format_number(claim.difference, signed=True)


def interval(claim: Claim) -> str:
    """Format a claim's interval."""
    return (
        "–"
        if claim.lower is None or claim.upper is None
        else f"{format_number(claim.lower)} … {format_number(claim.upper)}"
    )


def agrees(claim: Claim) -> bool:
    """Return whether our number, rounded as in the paper, equals the published one, to at most three decimals.

    The rounding of an integer is unknown: assume one decimal, and three for 0.
    """
    if claim.published is None:
        return False
    places = len(f"{claim.published:.10f}".rstrip("0").partition(".")[2])
    places = min(places, 3) or (1 if claim.published else 3)
    return abs(claim.ours - claim.published) <= 0.5 * 10.0**-places + 1e-12


def covers(claim: Claim) -> bool:
    """Return whether our interval contains the published number."""
    ends = claim.lower, claim.upper
    return claim.published is not None and None not in ends and ends[0] <= claim.published <= ends[1]  # type: ignore[operator]


def numbered_reasons(claims: Sequence[Claim]) -> dict[str, int]:
    """Number the distinct reasons for a difference, in the order of the claims."""
    return {why: number for number, why in enumerate(dict.fromkeys(claim.why for claim in claims if claim.why), 1)}
