"""From the runs of a result file to Markdown: a pure function, so any table can be made again."""

from __future__ import annotations

from statistics import median

from .estimate import Ratio, ratio

BASELINE = "weir"
# Above this, memory grows with requests: a tool that keeps anything of each keeps at least a byte.
GROWTH_LIMIT = 1.0
# Largest deviation from the intended rate that the engine's design allows, over 10 s.
RATE_LIMIT = 0.001


def markdown(document: dict) -> str:
    """The whole result."""
    parts = [head(document)]
    for name, title, show in (
        ("closed", closed_title, closed_table),
        ("open", open_title, open_table),
        ("rate", rate_title, rate_table),
        ("memory", memory_title, memory_table),
    ):
        section = document["sections"].get(name)
        if section is None:
            continue
        body = show(document, section["runs"]) if section["runs"] else "Nothing was measured."
        parts.append(f"## {title(document)}\n\n{body}")
        if section["failures"]:
            parts.append("\n".join(f"- {words}" for words in section["failures"]))
    if document["absent"]:
        parts.append("Not taking part: " + "; ".join(document["absent"]) + ".")
    return "\n\n".join(parts) + "\n"


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
        f"Generator on CPU {machine['generator_cpu']}, origin server on CPU"
        f" {machine['origin_cpu']}; seed {document['seed']}.",
        f"Load average at the start {machine['load_average'][0]:.2f}; CPU time taken by the"
        f" hypervisor in the worst run {steal}.",
    ]
    if machine["generator_cpu"] == machine["origin_cpu"]:
        lines.append("**One CPU for both: the rates mean nothing.**")
    elif machine["same_core"]:
        lines.append("**Both CPUs are one core: each slows the other down.**")
    return "\n".join(lines)


# --- closed loop ---


def closed_title(document: dict) -> str:
    return (
        f"Closed loop: HTTP/1.1 keep-alive, 1 KiB, {document['connections']} connections, one thread"
    )


def closed_table(document: dict, runs: list[dict]) -> str:
    rows = []
    for label, mine in by_tool(runs, cpu_per_request):
        rows.append([
            label,
            document["versions"].get(label, "?"),
            f"{median(map(cpu_per_request, mine)):.2f}",
            cell(against_baseline(runs, label)),
            f"{median(run['requests'] / run['wall_s'] for run in mine):,.0f}",
            busy(mine),
            mebibytes(mine),
        ])
    return table(
        ["tool", "version", "CPU µs/request", "ratio to weir", "requests/s", "busy: tool, origin",
         "peak memory"],
        rows,
    ) + footnote(runs)


# --- constant rate ---


def open_title(document: dict) -> str:
    return f"Constant rate: {document['open_rate']:,}/s over {document['connections']} connections"


def open_table(document: dict, runs: list[dict]) -> str:
    rows = []
    for label, mine in by_tool(runs, cpu_per_request):
        errors = sorted(map(rate_error, mine))
        rows.append([
            label,
            document["versions"].get(label, "?"),
            f"{median(errors):+.2%} ({errors[0]:+.2%} to {errors[-1]:+.2%})",
            f"{median(map(cpu_per_request, mine)):.2f}",
            cell(against_baseline(runs, label)),
            mebibytes(mine),
        ])
    return table(
        ["tool", "version", "rate error, median (range)", "CPU µs/request", "ratio to weir",
         "peak memory"],
        rows,
    ) + footnote(runs)


# --- weir's own promises ---


def rate_title(document: dict) -> str:
    return "Rate: what weir was asked for, and what it sent"


def rate_table(document: dict, runs: list[dict]) -> str:
    rows = []
    for run in runs:
        said = run["said"]
        offered = said["rates"]["offered"] / said["rates"]["intended"]
        lag = dict(map(tuple, said["dispatch_lag"]))
        rows.append([
            f"{run['rate_intended']:,}/s, {run['seconds']} s",
            f"{offered - 1:+.3%}",
            f"{rate_error(run):+.3%}",
            "yes" if abs(offered - 1) <= RATE_LIMIT else "NO",
            " / ".join(f"{lag[q] / 1e3:,.0f}" if q in lag else "?" for q in (0.5, 0.99, 1.0)),
        ])
    return table(
        ["asked for", "sent, as weir says", "received, as the server says", "within 0.1 %",
         "dispatch lag µs p50 / p99 / max"],
        rows,
    )


def memory_title(document: dict) -> str:
    return "Memory: does weir's grow with the number of requests?"


def memory_table(document: dict, runs: list[dict]) -> str:
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


# --- figures of runs ---


def cpu_per_request(run: dict) -> float:
    """Microseconds of the generator's user and system time per request the server counted."""
    return 1e6 * run["cpu_s"] / run["requests"]


def rate_error(run: dict) -> float:
    """Of the requests that the rate and the time given stand for, how many too many, as a share."""
    return run["requests"] / (run["rate_intended"] * run["seconds"]) - 1


def by_tool(runs: list[dict], figure) -> list[tuple[str, list[dict]]]:
    """Runs by tool, the smallest median first."""
    found: dict[str, list[dict]] = {}
    for run in runs:
        found.setdefault(run["tool"], []).append(run)
    return sorted(found.items(), key=lambda item: median(map(figure, item[1])))


def against_baseline(runs: list[dict], label: str) -> Ratio | None:
    """Of the rounds in which both were measured; None for the baseline itself and without such."""
    figures = {(run["tool"], run["round"]): cpu_per_request(run) for run in runs}
    rounds = sorted({run["round"] for run in runs})
    pairs = [
        (figures[label, number], figures[BASELINE, number])
        for number in rounds
        if (label, number) in figures and (BASELINE, number) in figures
    ]
    if label == BASELINE or not pairs:
        return None
    others, baseline = map(list, zip(*pairs, strict=True))
    return ratio(others, baseline)


# --- cells ---


def cell(found: Ratio | None) -> str:
    if found is None:
        return "1"
    if found.low is None:
        return f"{found.estimate:.2f} (no interval)"
    return f"{found.estimate:.2f} ({found.low:.2f} to {found.high:.2f})"


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


def busy(runs: list[dict]) -> str:
    """How much of their CPU the generator and the origin server used: the one near 100 % set the
    rate."""
    shares = (
        median(run[used] / run["wall_s"] for run in runs) for used in ("cpu_s", "origin_cpu_s")
    )
    return ", ".join(f"{share:.0%}" for share in shares)


def mebibytes(runs: list[dict]) -> str:
    return f"{median(run['peak_bytes'] for run in runs) / 2**20:.1f} MiB"


def table(names: list[str], rows: list[list[str]]) -> str:
    """A Markdown table that also reads well as plain text: the first column to the left,
    figures to the right."""
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]

    def line(cells: list[str]) -> str:
        padded = (
            text.ljust(width) if at == 0 else text.rjust(width)
            for at, (text, width) in enumerate(zip(cells, widths, strict=True))
        )
        return f"| {' | '.join(padded)} |"

    rule = ["-" * width if at == 0 else "-" * (width - 1) + ":" for at, width in enumerate(widths)]
    return "\n".join([line(names), line(rule), *map(line, rows)])
