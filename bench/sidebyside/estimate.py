"""Estimates with exact intervals, for a handful of noisy rounds.

The same method as weir-stats, written a second time and independently: the Hodges-Lehmann estimate
(the median of all Walsh averages) and the exact interval that Wilcoxon's signed-rank distribution
gives it (Hollander, Wolfe & Chicken, "Nonparametric Statistical Methods", 3rd ed., 3.1-3.4). No
distribution of the noise is assumed, only that it is symmetric in its logarithm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Ratio:
    """A ratio, and where it lies with the confidence stated; no interval from too few rounds."""

    estimate: float
    low: float | None
    high: float | None
    confidence: float | None
    rounds: int


def walsh_averages(sample: list[float]) -> list[float]:
    """Means of all pairs, each value with itself included, ascending."""
    n = len(sample)
    return sorted((sample[i] + sample[j]) / 2 for i in range(n) for j in range(i, n))


def signed_rank_tail(n: int) -> list[float]:
    """P(W <= w) for w = 0, 1, …: each sign of each rank 1..n is a fair coin."""
    ways = [1]
    for rank in range(1, n + 1):
        longer = ways + [0] * rank
        for w, count in enumerate(ways):
            longer[w + rank] += count
        ways = longer
    tail, total = [], 0
    for count in ways:
        total += count
        tail.append(total / 2**n)
    return tail


def interval(sample: list[float], confidence: float) -> tuple[float, float, float] | None:
    """(low, high, the confidence it really has, which is at least the one asked for).

    None when even the whole range of the sample is not that sure: below 6 values for 0.95.
    """
    tail = signed_rank_tail(len(sample))
    ranks = [k for k, p in enumerate(tail) if 2 * p <= 1 - confidence]
    if not ranks:
        return None
    k = ranks[-1]
    walsh = walsh_averages(sample)
    return walsh[k], walsh[-1 - k], 1 - 2 * tail[k]


def ratio(others: list[float], baseline: list[float], confidence: float = 0.95) -> Ratio:
    """Of pairs measured in the same round, how many times the baseline the others are."""
    logs = [math.log(other / base) for other, base in zip(others, baseline, strict=True)]
    bounds = interval(logs, confidence)
    low, high, sure = bounds if bounds else (None, None, None)
    return Ratio(
        estimate=math.exp(median(walsh_averages(logs))),
        low=None if low is None else math.exp(low),
        high=None if high is None else math.exp(high),
        confidence=sure,
        rounds=len(logs),
    )
