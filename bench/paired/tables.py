"""From the runs of a result file to Markdown: a pure function, so any table can be made again."""

from __future__ import annotations

import math
from statistics import median

from sidebyside.cells import ratio_cell, table
from sidebyside.estimate import Ratio

from . import cost, preparation
from .cost import Width
from .studies import LOADS, SHAPES, Load

# A restarting comparison is to take at least as many times the time of one in slices.
LEAST_FACTOR = 2.0
PREPARED_S = 1.0
SLICES = "slices"
METRICS = {
    "rate": "completed rate",
    "cpu_per_request": "CPU time per request",
    "response_p50": "median response time",
    "response_p99": "response time, p99",
}

FOOTNOTE = """Half-width: median over rounds of half the 95 % interval (Hodges-Lehmann, exact),
which takes 6 replicates. Really off: root mean square of what two equal arms seemed to differ by,
over rounds. Held 1: intervals that have the truth in them. Times the time of slices: for the same
half-width, which shrinks with the square root of the time, restarts and preparation included;
Hodges-Lehmann over rounds with its exact 95 % interval, which takes 6 rounds. Pooled: the same of
all rounds' blocks taken together."""

Runs = list[dict]


def markdown(document: dict) -> str:
    """The whole result."""
    parts = [head(document)]
    for load in LOADS:
        found = document["loads"].get(load.name)
        if found is not None:
            parts += of_load(document, load, found)
    prepared = document["preparation"]
    if prepared is not None:
        parts.append(f"## Preparation: {len(prepared['parameters'])} parameters,"
                     f" {len(prepared['kernel'])} of them the kernel's\n\n"
                     + preparation_table(prepared["runs"]))
    if document["loads"]:
        parts.append(FOOTNOTE)
    parts.append(f"## Aims\n\n{aims(document)}")
    return "\n\n".join(parts) + "\n"


def head(document: dict) -> str:
    """Where, when and how much."""
    machine, cpus = document["machine"], document["cpus"]
    elsewhere = document["listen"] != "127.0.0.1"
    return "\n".join([
        "# Two arms in slices, and restarted",
        "",
        f"{document['started_at']}, {machine['cpu']}, {machine['cpus']} CPUs"
        f"{' (virtual)' if machine['virtual'] else ''}, Linux {machine['kernel']};"
        f" {document['weir_version']}.",
        f"CPUs: proxy {cpus['proxy']}, generator {cpus['generator']}, origin {cpus['origin']}."
        f" Load average at the start {machine['load_average'][0]:.2f}; CPU time taken by the"
        f" hypervisor in the worst run {worst_steal(document):.1%}.",
        f"{document['seconds']} s for each way in each round; slices of {document['slice']};"
        f" seed {document['seed']}.",
        *(["**In slices the arms were asked over a network of their own, restarted ones over"
           " loopback: compare with care.**"] if elsewhere else []),
    ])


def worst_steal(document: dict) -> float:
    runs = (run for load in document["loads"].values() for run in load["runs"])
    return max((run["steal"] for run in runs), default=0.0)


# --- slices against restarts ---


def of_load(document: dict, load: Load, found: dict) -> list[str]:
    """Title, tables and failures of one load."""
    rate = f", {document['rate']:,}/s" if load.open else ""
    title = f"## {load.title}{rate}"
    runs = found["runs"]
    if not runs:
        return [f"{title}\n\nNothing was measured.", *bullets(found["failures"])]
    parts = [f"{title}\n\n{ways_table(runs)}"]
    parts += [f"### {METRICS[name][0].upper()}{METRICS[name][1:]}\n\n{metric_table(runs, name)}"
              for name in load.metrics]
    return [*parts, *bullets(found["failures"] + unfit(runs, load))]


def unfit(runs: Runs, load: Load) -> list[str]:
    """Why blocks were left out, or a metric was not compared: what to change on this machine."""
    lines = []
    for run in runs:
        at = f"{run['way']}: round {run['round']}"
        lost = run["blocks"] - run["blocks_used"]
        if lost:
            words = next(iter(run["invalid"]), "an arm is missing")
            lines.append(f"{at}, {lost} of {run['blocks']} blocks not used: {words}")
        for name in load.metrics:
            found = run["metrics"].get(name, {})
            if found.get("estimate") is None and found.get("because"):
                lines.append(f"{at}, {METRICS[name]}: {found['because']}")
    return lines


def bullets(lines: list[str]) -> list[str]:
    return ["\n".join(f"- {line}" for line in lines)] if lines else []


def by_way(runs: Runs) -> dict[str, Runs]:
    """Runs by way, slices first, then restarts as they came in length."""
    found: dict[str, Runs] = {}
    for run in sorted(runs, key=lambda run: run.get("trial_s", 0)):
        found.setdefault(run["way"], []).append(run)
    return found


def ways_table(runs: Runs) -> str:
    """What each way spends its time on."""
    rows = []
    for way, mine in by_way(runs).items():
        trials = [trial for run in mine for trial in run.get("trials", [])]
        rows.append([
            way,
            str(len(mine)),
            f"{median(run['wall_s'] for run in mine):.1f} s",
            f"{median(run['measured_s'] / run['wall_s'] for run in mine):.0%}",
            f"{median(run['blocks'] for run in mine):g}",
            f"{median(run['blocks_used'] for run in mine):g}",
            f"{1e3 * median(t['start_s'] + t['stop_s'] for t in trials):.0f} ms" if trials else "–",
        ])
    return table(["way", "rounds", "time", "measured", "blocks", "used", "start + stop"], rows)


def metric_table(runs: Runs, metric: str) -> str:
    """Widths, and what they cost."""
    slices = by_way(runs).get(SLICES, [])
    rows = []
    for way, mine in by_way(runs).items():
        halves = [width.half for run in mine if (width := width_of(run, metric))]
        rows.append([
            way,
            f"{median(run['metrics'].get(metric, {}).get('n', 0) for run in mine):g}",
            percent(median(halves) if halves else None),
            percent(off(mine, metric)),
            held(mine, metric),
            seconds_for(pooled(mine, metric), 0.01),
            "1" if way == SLICES else ratio_cell(factor(runs, way, metric)),
            "1" if way == SLICES else number(pooled_factor(slices, mine, metric)),
        ])
    return table(
        ["way", "replicates", "half-width", "really off", "held 1", "time for ±1 %",
         "times the time of slices", "all rounds pooled"],
        rows,
    )


def width_of(run: dict, metric: str) -> Width | None:
    """The interval of one run."""
    half = cost.half_width(run["metrics"].get(metric, {}))
    return Width(half, run["wall_s"]) if half else None


def estimates(runs: Runs, metric: str) -> list[float]:
    found = (run["metrics"].get(metric, {}).get("estimate") for run in runs)
    return [value for value in found if value is not None]


def off(runs: Runs, metric: str) -> float | None:
    """How far the estimates were from the truth, which is known of equal arms."""
    return cost.miss(estimates(runs, metric))


def held(runs: Runs, metric: str) -> str:
    """How many of the intervals have the truth in them."""
    found = [run["metrics"][metric] for run in runs if width_of(run, metric)]
    return f"{sum(each['low'] <= 0 <= each['high'] for each in found)} of {len(found)}"


def factor(runs: Runs, way: str, metric: str) -> Ratio | None:
    """How many times the time of slices a way takes, of rounds in which both have an interval."""
    widths = {(run["way"], run["round"]): width_of(run, metric) for run in runs}
    rounds = sorted({run["round"] for run in runs})
    pairs = ((widths.get((way, n)), widths.get((SLICES, n))) for n in rounds)
    return cost.over_rounds([cost.time_factor(one, other) for one, other in pairs if one and other])


def pooled(runs: Runs, metric: str) -> Width | None:
    """The interval of all rounds together."""
    if runs and runs[0]["way"] == SLICES:
        return cost.pooled_halves([width for run in runs if (width := width_of(run, metric))])
    return cost.pooled_blocks([
        (run["metrics"].get(metric, {}).get("log_ratios", []), run["wall_s"]) for run in runs
    ])


def pooled_factor(slices: Runs, restarts: Runs, metric: str) -> float | None:
    one, other = pooled(restarts, metric), pooled(slices, metric)
    return cost.time_factor(one, other) if one and other else None


def percent(log: float | None) -> str:
    return "?" if log is None else f"±{math.expm1(log):.2%}"


def number(value: float | None) -> str:
    return "?" if value is None else f"{value:.2f}"


def seconds_for(width: Width | None, half: float) -> str:
    return "?" if width is None else f"{cost.time_needed(width, half):,.0f} s"


# --- preparation ---


def preparation_table(runs: Runs) -> str:
    """Medians of each shape's runs."""
    rows = []
    for shape in SHAPES:
        mine = [run for run in runs if run["shape"] == shape.name]
        if not mine:
            continue
        proxies = [proxy for run in mine for proxy in run["proxies"]]
        rows.append([
            shape.title,
            f"{mine[0]['arms']}",
            *(seconds(median(run[key] for run in mine))
              for key in ("check_s", "study_s", "arms_s", "prepared_s")),
            seconds(median(map(preparation.starts, mine))),
            " + ".join(f"{1e3 * median(p[key] for p in proxies):.0f} ms"
                       for key in ("check_s", "print_s")),
            seconds(median(map(preparation.rest, mine))),
            seconds(max(map(preparation.rest, mine))),
        ])
    return table(
        ["parameters", "proxies", "--check", "run.json", "last arm", "trial begins",
         "proxies' own start", "nginx -t, -T of each", "the rest", "worst"],
        rows,
    ) + (
        "\n\nSeconds from the start of `weir run` (`--check`: of all of it), medians. The rest:"
        " until the trial begins, without\nthe proxies' own start, but with nginx's runs that"
        " check and print each configuration."
    )


def seconds(value: float) -> str:
    return f"{value:.3f}"


# --- aims ---


def aims(document: dict) -> str:
    rows = []
    for load in LOADS:
        found = document["loads"].get(load.name)
        if found is None:
            continue
        rows += [factor_row(load, metric, found["runs"]) for metric in load.metrics]
        rows.append(continuity_row(load, by_way(found["runs"]).get(SLICES, [])))
    if document["preparation"] is not None:
        rows += preparation_rows(document["preparation"])
    if not rows:
        return "Nothing was measured."
    return table(["what", "aim", "seen", "verdict"], rows) + (
        "\n\nTimes for the same interval: restarts over slices, restarts of the length that suits"
        " them best. Reached when the whole\ninterval is within the aim, not reached when none of"
        " it is, and else undecided."
    )


def factor_row(load: Load, metric: str, runs: Runs) -> list[str]:
    """The length of restarting trials that does best decides."""
    ways = [way for way in by_way(runs) if way != SLICES]
    found = {way: ratio for way in ways if (ratio := factor(runs, way, metric))}
    best = min(found, key=lambda way: found[way].estimate, default=None)
    ratio = found.get(best)
    seen = f"{ratio_cell(ratio)}, {best}" if best else "–"
    return [f"{load.name}, {METRICS[metric]}: time, restarts / slices", f"≥ {LEAST_FACTOR:g}",
            seen, cost.verdict(ratio, LEAST_FACTOR)]


def continuity_row(load: Load, runs: Runs) -> list[str]:
    """Whether switching restarted or reconnected anything in any run."""
    if not runs:
        return [f"{load.name}, an arm switch", "no restart, no reconnect", "–", "no comparison"]
    total = {key: sum(run[key] for run in runs) for key in
             ("switches", "restarts_in_parts", "reconnects", "connections_opened",
              "connections_wanted", "connections_open_at_end")}
    kept = (total["restarts_in_parts"] == total["reconnects"] == 0
            and total["connections_wanted"] == total["connections_opened"]
            == total["connections_open_at_end"])
    seen = (f"{total['switches']:,} switches: {total['restarts_in_parts']} restarts,"
            f" {total['reconnects']} reconnects, {total['connections_opened']:,} of"
            f" {total['connections_wanted']:,} connections opened")
    return [f"{load.name}, an arm switch", "no restart, no reconnect", seen,
            "reached" if kept else "NOT reached"]


def preparation_rows(prepared: dict) -> list[list[str]]:
    rows = []
    for shape in SHAPES:
        mine = [preparation.rest(run) for run in prepared["runs"] if run["shape"] == shape.name]
        if mine:
            rows.append([f"preparation, {shape.title}", f"< {PREPARED_S:g} s",
                         f"{median(mine):.3f} s, at worst {max(mine):.3f} s",
                         prepared_verdict(mine)])
    return rows


def prepared_verdict(rests: list[float]) -> str:
    if max(rests) < PREPARED_S:
        return "reached"
    return "NOT reached" if min(rests) >= PREPARED_S else "undecided"
