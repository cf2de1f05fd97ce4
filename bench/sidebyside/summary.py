"""The last table: per section weir, the best other tool, and whether weir's aim is reached."""

from __future__ import annotations

from statistics import median

from .cells import ratio_cell, table
from .estimate import Ratio
from .figures import BASELINE, by_tool, cpu_per_request, is_weir, of_pair
from .loads import LOADS, Aim


def summary(document: dict) -> str | None:
    """None when nothing was measured side by side."""
    rows = [
        row(load.name, load.aim, section["runs"])
        for load in LOADS
        if (section := document["sections"].get(load.name)) is not None
    ]
    if not rows:
        return None
    return table(
        ["section", "weir, CPU µs/request", "best other", "weir / best other", "aim",
         "weir / aim's tool", "verdict"],
        rows,
    ) + (
        "\n\nRatios of CPU time per request, weir over other: below 1, weir is cheaper. An aim is"
        " reached when the whole\ninterval is within it, not reached when none of it is, and else"
        " undecided."
    )


def row(name: str, aim: Aim | None, runs: list[dict]) -> list[str]:
    """Of one section."""
    tools = dict(by_tool(runs))
    mine = tools.get(BASELINE)
    best = next((label for label in tools if not is_weir(label)), None)
    against = aim and of_pair(runs, BASELINE, aim.tool)
    return [
        name,
        f"{median(map(cpu_per_request, mine)):.2f}" if mine else "–",
        f"{best} {median(map(cpu_per_request, tools[best])):.2f}" if best else "–",
        ratio_cell(of_pair(runs, BASELINE, best)) if best and mine else "–",
        f"≤ {aim.share:.2f} × {aim.tool}" if aim else "–",
        ratio_cell(against) if against else "–",
        verdict(aim, against),
    ]


def verdict(aim: Aim | None, found: Ratio | None) -> str:
    """What the interval says of the aim; nothing is said from too few rounds."""
    if aim is None or found is None:
        return "no comparison"
    if found.low is None:
        return "undecided"
    if found.high <= aim.share:
        return "reached"
    return "NOT reached" if found.low > aim.share else "undecided"
