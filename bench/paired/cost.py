"""What an interval costs: from block log ratios to half-widths, and from two of them to times.

Intervals of both ways come from independent blocks, so their half-widths shrink with the square
root of the time. A way that reached half-width h in t seconds therefore needs t·(h/w)² for a
half-width of w, and the *time factor* of one way over another is the ratio of what both need for
the same w, whatever it is: (h₁/h₂)²·t₁/t₂. The time is all that passes, restarts and preparation
included.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import mean, median, stdev

from sidebyside.estimate import Ratio, interval, walsh_averages

CONFIDENCE = 0.95
# An exact 95 % interval takes as many (estimate.interval).
LEAST_BLOCKS = 6


@dataclass(frozen=True)
class Width:
    """An interval of a log ratio, and the time that it took."""

    half: float
    """Half of the interval, as a log ratio: 0.02 is about ±2 %."""
    seconds: float


def from_blocks(log_ratios: list[float]) -> dict[str, object]:
    """What a metric came to: the same fields as weir's report gives of slices. Bounds are None with
    fewer blocks than an exact interval takes."""
    bounds = interval(log_ratios, CONFIDENCE) if log_ratios else None
    low, high, sure = bounds or (None, None, None)
    return {
        "n": len(log_ratios),
        "estimate": median(walsh_averages(log_ratios)) if log_ratios else None,
        "low": low,
        "high": high,
        "confidence": sure,
        "standard_error": standard_error(log_ratios),
        "log_ratios": log_ratios,
    }


def standard_error(log_ratios: list[float]) -> float | None:
    """Of their mean; None for fewer than two."""
    if len(log_ratios) < 2:
        return None
    return stdev(log_ratios) / math.sqrt(len(log_ratios))


def half_width(found: dict) -> float | None:
    """Of a metric's interval, if it has one."""
    if found.get("low") is None or found.get("high") is None:
        return None
    return (found["high"] - found["low"]) / 2


def time_factor(one: Width, other: Width) -> float:
    """How many times the other's time `one` takes for an interval of the same width."""
    return (one.half / other.half) ** 2 * one.seconds / other.seconds


def time_needed(width: Width, half: float) -> float:
    """Seconds until the interval is as narrow as `half`."""
    return width.seconds * (width.half / half) ** 2


def over_rounds(factors: list[float]) -> Ratio | None:
    """The Hodges-Lehmann estimate of time factors, one for each round, with its exact interval;
    None of none."""
    if not factors:
        return None
    found = from_blocks([math.log(factor) for factor in factors])

    def ratio_of(log: float | None) -> float | None:
        return None if log is None else math.exp(log)

    return Ratio(math.exp(found["estimate"]), ratio_of(found["low"]), ratio_of(found["high"]),
                 found["confidence"], len(factors))


def pooled_halves(widths: list[Width]) -> Width | None:
    """The interval of all rounds together, from that of each: independent rounds of like length."""
    if not widths:
        return None
    half = math.sqrt(mean(width.half**2 for width in widths) / len(widths))
    return Width(half, sum(width.seconds for width in widths))


def pooled_blocks(rounds: list[tuple[list[float], float]]) -> Width | None:
    """The interval of all rounds' blocks (log ratios, seconds) taken together: also of rounds that
    had too few for one of their own."""
    blocks = [ratio for log_ratios, _ in rounds for ratio in log_ratios]
    half = half_width(from_blocks(blocks))
    return Width(half, sum(seconds for _, seconds in rounds)) if half else None


def miss(estimates: list[float]) -> float | None:
    """Root mean square of log ratios of equal arms, whose truth is 0: how far off they were."""
    return math.sqrt(mean(value**2 for value in estimates)) if estimates else None


def verdict(found: Ratio | None, least: float) -> str:
    """Whether a time factor is as high as aimed at: by its whole interval, or not at all."""
    if found is None:
        return "no comparison"
    if found.low is None:
        return "undecided"
    if found.low >= least:
        return "reached"
    return "NOT reached" if found.high < least else "undecided"
