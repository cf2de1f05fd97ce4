"""Figures of runs, and ratios of tools: what the tables show, before it is text."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

from .estimate import Ratio, ratio

BASELINE = "weir"

Run = dict
Figure = Callable[[Run], float]


def cpu_per_request(run: Run) -> float:
    """Microseconds of the generator's user and system time per request the server counted."""
    return 1e6 * run["cpu_s"] / run["requests"]


def origin_cpu_per_request(run: Run) -> float:
    """Microseconds of the server's user and system time per request it counted."""
    return 1e6 * run["origin_cpu_s"] / run["requests"]


def rate_error(run: Run) -> float:
    """Of the requests that the rate and the time given stand for, how many too many, as a share."""
    return run["requests"] / (run["rate_intended"] * run["seconds"]) - 1


def by_tool(runs: list[Run], figure: Figure = cpu_per_request) -> list[tuple[str, list[Run]]]:
    """Runs by tool, the smallest median first."""
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(run["tool"], []).append(run)
    return sorted(found.items(), key=lambda item: median(map(figure, item[1])))


def is_weir(label: str) -> bool:
    """Whether it is one of weir's rows: weir itself, again, or by other means."""
    return label == BASELINE or label.startswith(f"{BASELINE} (")


def of_pair(runs: list[Run], label: str, baseline: str = BASELINE,
            figure: Figure = cpu_per_request) -> Ratio | None:
    """CPU time per request, that tool's over the baseline's, of the rounds in which both were
    measured; None without such."""
    figures = {(run["tool"], run["round"]): figure(run) for run in runs}
    rounds = sorted({run["round"] for run in runs})
    pairs = [
        (figures[label, number], figures[baseline, number])
        for number in rounds
        if (label, number) in figures and (baseline, number) in figures
    ]
    if not pairs:
        return None
    others, base = map(list, zip(*pairs, strict=True))
    return ratio(others, base)


def lag_quantiles(run: Run) -> dict[float, float]:
    """weir's dispatch lag in nanoseconds, by quantile: how late it sent what was due."""
    return dict(map(tuple, (run["said"] or {}).get("dispatch_lag", [])))
