"""How claims are written: as many digits as mean something, and whether two numbers agree as printed."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.experiments.base import Claim


def written(value: float | None, *, signed: bool = False) -> str:
    """Write a number: whole ones as they are, others with three digits or so after the point as they get smaller."""
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
    """Write the published number with the digits it was printed with."""
    if claim.published is None:
        return "–"
    return f"{round(claim.published, 3):,}".removesuffix(".0").replace("-", "−")


def difference(claim: Claim) -> str:
    """Write by how much ours differs; = where it does not, as far as the paper prints it."""
    return "=" if agrees(claim) else written(claim.difference, signed=True)


def interval(claim: Claim) -> str:
    """Write a claim's interval."""
    return "–" if claim.lower is None or claim.upper is None else f"{written(claim.lower)} … {written(claim.upper)}"


def agrees(claim: Claim) -> bool:
    """Say whether ours, rounded as the paper rounds, is the published number, to three decimals at most.

    Of a whole number it cannot be told how it was rounded: it is taken to be good to one decimal, and a 0 to three.
    """
    if claim.published is None:
        return False
    places = len(f"{claim.published:.10f}".rstrip("0").partition(".")[2])
    places = min(places, 3) or (1 if claim.published else 3)
    return abs(claim.ours - claim.published) <= 0.5 * 10.0**-places + 1e-12


def covers(claim: Claim) -> bool:
    """Say whether the published number lies within our interval."""
    ends = claim.lower, claim.upper
    return claim.published is not None and None not in ends and ends[0] <= claim.published <= ends[1]  # type: ignore[operator]


def numbered_reasons(claims: Sequence[Claim]) -> dict[str, int]:
    """Number the different reasons why ours and the published numbers differ, in the order of the claims."""
    return {why: number for number, why in enumerate(dict.fromkeys(claim.why for claim in claims if claim.why), 1)}
