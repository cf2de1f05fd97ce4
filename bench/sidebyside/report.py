"""From the runs of a result file to Markdown: a pure function, so any table can be made again."""

from __future__ import annotations

from statistics import median

from .cells import busy, lag, mebibytes, ratio_cell, table
from .figures import (
    BASELINE,
    by_tool,
    cpu_per_request,
    is_weir,
    lag_quantiles,
    of_pair,
    origin_cpu_per_request,
    rate_error,
)
from .loads import CONNECTIONS, FLOOR, LOADS, ORIGIN_AIM, PUNCTUAL, Load
from .summary import summary

# Above this, memory grows with requests: a tool that keeps anything of each keeps at least a byte.
GROWTH_LIMIT = 1.0
# Largest deviation from the intended rate that the engine's design allows.
RATE_LIMIT = 0.001
LAG_QUANTILES = (0.5, 0.99, 0.999, 1.0)


def markdown(document: dict) -> str:
    """The whole result."""
    parts = [head(document)]
    for load in LOADS:
        show = open_table if load.rate else closed_table
        parts += section(document, load.name, title(document, load), show)
        found = document["sections"].get(load.name, {"runs": []})
        parts += bullets(reopened(load, found["runs"]))
    for name, words, show in (
        ("punctual", "Punctuality and its price: an even load, one thread", punctual_table),
        ("rate", "Rate: what weir was asked for, and what it sent", rate_table),
        ("memory", "Memory: does weir's grow with the number of requests?", memory_table),
        ("origin", "Origin server: requests in a second of CPU time, beside nginx", origin_table),
        ("hold", "Held connections: user memory of one that carries nothing", hold_table),
    ):
        parts += section(document, name, words, show)
    if document["absent"]:
        parts.append("Not taking part: " + "; ".join(document["absent"]) + ".")
    last = summary(document)
    if last is not None:
        parts.append(f"## Summary\n\n{last}")
    return "\n\n".join(parts) + "\n"


def section(document: dict, name: str, words: str, show) -> list[str]:
    """Its title, table and failures; nothing of one that was not begun."""
    found = document["sections"].get(name)
    if found is None:
        return []
    body = show(document, found["runs"]) if found["runs"] else "Nothing was measured."
    return [f"## {words}\n\n{body}", *bullets(found["failures"])]


def bullets(lines: list[str]) -> list[str]:
    """A list, as one part of the text; no part when it is empty."""
    return ["\n".join(f"- {line}" for line in lines)] if lines else []


def reopened(load: Load, runs: list[dict]) -> list[str]:
    """A word on tools that reconnect where connections were to stay open: another measurement. A
    probe or two are part of some tools."""
    if load.fresh:
        return []
    lines = []
    for label, mine in by_tool(runs):
        run = max(mine, key=lambda run: run["connections"])
        if run["connections"] > 2 * CONNECTIONS:
            lines.append(
                f"{label}: {run['connections']:,} connections for {run['requests']:,} requests,"
                " which is another load"
            )
    return lines


def title(document: dict, load: Load) -> str:
    return f"{load.title}, {document['connections']} connections, one thread"


def head(document: dict) -> str:
    """Where and when, and whether the machine was left alone."""
    machine = document["machine"]
    runs = [run for section in document["sections"].values() for run in section["runs"]]
    steal = f"{max(run['steal'] for run in runs):.1%}" if runs else "?"
    lines = [
        "# Load generators side by side",
        "",
        f"{document['started_at']}, {machine['cpu']}, {machine['cpus']} CPUs"
        f"{' (virtual)' if machine['virtual'] else ''}, Linux {machine['kernel']}.",
        f"Generator on CPU {machine['generator_cpu']}, server on CPU"
        f" {machine['origin_cpu']}; seed {document['seed']}.",
        f"Load average at the start {machine['load_average'][0]:.2f}; CPU time taken by the"
        f" hypervisor in the worst run {steal}.",
    ]
    if machine["generator_cpu"] == machine["origin_cpu"]:
        lines.append("**One CPU for both: the rates mean nothing.**")
    elif machine["same_core"]:
        lines.append("**Both CPUs are one core: each slows the other down.**")
    return "\n".join(lines)


# --- side by side ---


def closed_table(document: dict, runs: list[dict]) -> str:
    rows = [
        [
            label,
            document["versions"].get(label, "?"),
            f"{median(map(cpu_per_request, mine)):.2f}",
            against_weir(runs, label),
            f"{median(run['requests'] / run['wall_s'] for run in mine):,.0f}",
            busy(mine),
            mebibytes(mine),
        ]
        for label, mine in by_tool(runs)
    ]
    return table(
        ["tool", "version", "CPU µs/request", "ratio to weir", "requests/s", "busy: tool, server",
         "peak memory"],
        rows,
    ) + footnote(runs) + over_floor(runs)


def open_table(document: dict, runs: list[dict]) -> str:
    rows = []
    for label, mine in by_tool(runs):
        errors = sorted(map(rate_error, mine))
        rows.append([
            label,
            document["versions"].get(label, "?"),
            f"{median(errors):+.2%} ({errors[0]:+.2%} to {errors[-1]:+.2%})",
            f"{median(map(cpu_per_request, mine)):.2f}",
            against_weir(runs, label),
            mebibytes(mine),
        ])
    return table(
        ["tool", "version", "rate error, median (range)", "CPU µs/request", "ratio to weir",
         "peak memory"],
        rows,
    ) + footnote(runs) + median_lag(runs)


def punctual_table(_document: dict, runs: list[dict]) -> str:
    rows = []
    for rate in (load.rate for load in PUNCTUAL):
        at_rate = [run for run in runs if run["rate_intended"] == rate]
        for label, mine in by_tool(at_rate):
            told = [lag_quantiles(run) for run in mine]
            rows.append([
                f"{rate:,}/s {label}",
                lag(middle([dict(map(tuple, run["late_ns"])) for run in mine]), (0.5, 0.99)),
                lag(middle(told), (0.5, 0.99)) if is_weir(label) else "",
                f"{median(map(cpu_per_request, mine)):.2f}",
                against_weir(at_rate, label),
                f"{median(map(rate_error, mine)):+.2%}",
            ])
    return table(
        ["rate and tool", "late, µs p50 / p99", "by its own word", "CPU µs/request",
         "ratio to weir", "rate error"],
        rows,
    ) + footnote(runs) + (
        " Late: beyond the most punctual request of the same schedule, stamped by the kernel."
    )


def middle(each: list[dict]) -> dict[float, float]:
    """The median of each quantile that all runs have."""
    shared = set.intersection(*map(set, each)) if each else set()
    return {q: median(found[q] for found in each) for q in shared}


def against_weir(runs: list[dict], label: str) -> str:
    return "1" if label == BASELINE else ratio_cell(of_pair(runs, label))


def footnote(runs: list[dict]) -> str:
    """What the intervals are; says so when there were too few rounds for any."""
    number = len({run["round"] for run in runs})
    words = (
        f"\n\nMedians of {number} rounds. Ratio: of CPU time per request, other over weir,"
        " Hodges-Lehmann of the rounds' ratios"
    )
    if number < 6:
        return words + "; an exact 95 % interval takes 6 rounds."
    return words + " with its exact 95 % interval."


def over_floor(runs: list[dict]) -> str:
    """What weir costs beyond bytes that nobody looks at."""
    found = of_pair(runs, BASELINE, FLOOR)
    return f"\n\nweir over its own floor: {ratio_cell(found)}." if found else ""


def median_lag(runs: list[dict]) -> str:
    """weir's own word on how late it sent, each quantile's median over rounds."""
    lines = []
    for label, mine in by_tool(runs):
        told = [found for run in mine if is_weir(label) and (found := lag_quantiles(run))]
        if told:
            lines.append(f"{label} {lag(middle(told), LAG_QUANTILES)}")
    if not lines:
        return ""
    return f"\n\nDispatch lag, µs p50 / p99 / p99.9 / max: {'; '.join(lines)}."


# --- weir's own promises ---


def rate_table(_document: dict, runs: list[dict]) -> str:
    rows = []
    for run in runs:
        said = run["said"]
        offered = said["rates"]["offered"] / said["rates"]["intended"]
        rows.append([
            f"{run['rate_intended']:,}/s, {run['seconds']} s",
            f"{offered - 1:+.3%}",
            f"{rate_error(run):+.3%}",
            "yes" if abs(offered - 1) <= RATE_LIMIT else "NO",
            lag(lag_quantiles(run), LAG_QUANTILES),
        ])
    return table(
        ["asked for", "sent, as weir says", "received, as the server says", "within 0.1 %",
         "dispatch lag µs p50 / p99 / p99.9 / max"],
        rows,
    )


def memory_table(_document: dict, runs: list[dict]) -> str:
    rows = [
        [f"{run['seconds']} s", f"{run['requests']:,}", f"{run['peak_bytes'] / 1024:,.0f} KiB"]
        for run in runs
    ]
    body = table(["run", "requests", "peak memory"], rows)
    if len(runs) < 2:
        return body
    short, long = runs[0], runs[-1]
    more = long["requests"] - short["requests"]
    growth = long["peak_bytes"] - short["peak_bytes"]
    answer = "no" if growth < GROWTH_LIMIT * more else "YES"
    return body + f"\n\n{growth / 1024:+,.0f} KiB for {more:,} more requests: {answer}."


def origin_table(document: dict, runs: list[dict]) -> str:
    rows = [
        [
            label,
            f"{median(map(origin_cpu_per_request, mine)):.2f}",
            f"{1e6 / median(map(origin_cpu_per_request, mine)):,.0f}",
            f"{median(run['origin_cpu_s'] / run['wall_s'] for run in mine):.0%}",
        ]
        for label, mine in by_tool(runs, origin_cpu_per_request)
    ]
    body = table(["server", "CPU µs/request", "requests per CPU second", "busy"], rows)
    found = of_pair(runs, "nginx", "weir origin", origin_cpu_per_request)
    if found is None:
        return body
    reached = "undecided"
    if found.low is not None:
        reached = ("reached" if found.low >= ORIGIN_AIM
                   else "NOT reached" if found.high < ORIGIN_AIM else "undecided")
    return body + (
        f"\n\nweir origin answers {ratio_cell(found)} times as many requests in the same CPU time;"
        f" aim ≥ {ORIGIN_AIM}: {reached}."
    )


def hold_table(document: dict, runs: list[dict]) -> str:
    rows = []
    for label, mine in by_tool(runs, lambda run: run["peak_bytes"]):
        few, many = (pick(mine, key=lambda run: run["connections_intended"]) for pick in (min, max))
        more = many["connections_intended"] - few["connections_intended"]
        rows.append([
            label,
            document["versions"].get(label, "?"),
            *(f"{run['connections_intended']:,}: {run['peak_bytes'] / 1024:,.0f} KiB"
              for run in (few, many)),
            f"{(many['peak_bytes'] - few['peak_bytes']) / more:,.0f}" if more else "?",
        ])
    return table(
        ["tool", "version", "peak memory with few", "with many", "bytes per connection"], rows
    ) + (
        "\n\nPeak resident memory of the process, without what the kernel keeps for its sockets."
    )
