"""weir's own way: both arms started beforehand, the load switched between them in slices."""

from __future__ import annotations

import json
import math
import shlex
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sidebyside.process import Failed, Process

from .studies import Load

# Beyond the trials: pilots, starts, the report.
SLACK_S = 120
REPORT_S = 60


@dataclass(frozen=True)
class Done:
    """A run that ended well."""

    folder: Path
    wall_s: float
    command: str


def run(weir: Path, study: str, seconds: float, folder: Path) -> Done:
    """`weir run` from its start to its end, or Failed."""
    file, out = folder / "study.yaml", folder / "run"
    file.write_text(study)
    argv = [str(weir), "run", "--out", str(out), str(file)]
    with Process(argv, folder) as process:
        usage = process.succeed(seconds + SLACK_S)
    return Done(out, usage.wall_s, shlex.join(argv))


def measure(weir: Path, load: Load, study: str, seconds: float, folder: Path) -> dict:
    """One run of a study of two arms under one load."""
    done = run(weir, study, seconds, folder)
    records = read_records(done.folder)
    return {
        "way": "slices",
        "command": done.command,
        "wall_s": done.wall_s,
        **continuity(records),
        **compared(report(weir, done.folder), load),
    }


def read_records(folder: Path) -> list[dict]:
    """All records of a run, in order of time."""
    lines = (folder / "records.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def report(weir: Path, folder: Path) -> dict:
    """The findings about a run folder."""
    argv = [str(weir), "report", "--format", "json", str(folder)]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=REPORT_S)
    if done.returncode != 0:
        raise Failed(f"weir report: {done.stderr.strip()[-200:]}")
    return json.loads(done.stdout)


def compared(findings: dict, load: Load) -> dict:
    """The second arm against the first by each metric, as log ratios."""
    of_load = findings["loads"][0]
    metrics = {}
    for comparison in of_load["comparisons"]:
        name = comparison["metric"]
        if name in load.metrics:
            metrics[name] = as_logs(comparison)
    return {
        "blocks": of_load["blocks"],
        "blocks_used": of_load["blocks_used"],
        "slice_s": of_load["slice_ns"] / 1e9,
        "validity": of_load["validity"],
        "invalid": invalid(found["reason"] for found in of_load["reasons"]),
        "metrics": metrics,
    }


def invalid(reasons: Iterable[dict]) -> list[str]:
    """The rules by which a measurement is INVALID, with their figures: `proxy-steal: share 0.45`."""
    return [f"{reason['rule']}: " + ", ".join(f"{name} {value}" for name, value in reason.items()
                                             if name not in ("validity", "rule"))
            for reason in reasons if reason["validity"] == "INVALID"]


def as_logs(comparison: dict) -> dict:
    """With `None` for what was not to be had."""
    def log(value: float | None) -> float | None:
        return math.log(value) if value else None

    low, high = map(log, comparison["interval"])
    return {
        "n": comparison["n"],
        "merged": comparison["merged"],
        "estimate": log(comparison["ratio"]),
        "low": low,
        "high": high,
        "confidence": comparison["confidence"],
        "minimum_detectable": comparison["minimum_detectable"],
        "because": basis_of(comparison),
    }


def basis_of(comparison: dict) -> str:
    """What the verdict rests on: `nothing measured`."""
    basis = comparison["because"]["basis"]
    name = basis if isinstance(basis, str) else next(iter(basis))
    return name.replace("_", " ")


def continuity(records: list[dict]) -> dict:
    """What the switches between the arms cost: proxies started and connections opened again.

    Within a part (a continuous trial) each arm is to have one master process from begin to end; the
    lab looks for it after every block, and writes a `proxy` record whenever it starts one. Between
    parts all are started anew on purpose, for the sake of chance.
    """
    parts, restarts = 0, 0
    masters: dict[str, list[int]] = {}
    for record in records:
        match record["record"]:
            case "proxy":
                masters.setdefault(record["arm"], []).append(record["pid"])
            case "part":
                parts += 1
                restarts += sum(len(of_arm) - 1 for of_arm in masters.values())
                masters = {}
    slices = [cut for record in records if record["record"] == "trial" for cut in record["slices"]]
    arms = [arm["asking"] for record in records if record["record"] == "part"
            for arm in record["arms"]]
    pids = {record["pid"] for record in records if record["record"] == "proxy"}
    return {
        "parts": parts,
        # Each part begins with an arm that nothing was switched from.
        "switches": max(0, len(slices) - parts),
        "measured_s": sum(cut["measured_ns"] for cut in slices) / 1e9,
        "restarts_in_parts": restarts,
        "masters": len(pids),
        "reconnects": sum(cut["reconnects"] for cut in slices),
        "connections_wanted": sum(arm["wanted"] for arm in arms),
        "connections_opened": sum(arm["opened"] for arm in arms),
        "connections_open_at_end": sum(arm["open_at_end"] for arm in arms),
    }
