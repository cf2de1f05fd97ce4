"""What is measured: four sections, each a list of runs as plain data.

A run is one generator against one fresh origin server that counts the requests it receives. Nothing
here computes a figure that could not be computed again from the result file (see report.py).
"""

from __future__ import annotations

import json
import random
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from .machine import CpuClock, Roles
from .process import Failed, Process, Stopped, Usage
from .tools import Found

CONNECTIONS = 50
CONTENT = "1KiB"
# What a tool may need beyond the time it was given: to start, to drain, to print.
SLACK_S = 15
# More than any tool sends in a second on one CPU, for those that must be given a number.
REQUESTS_PER_S = 500_000
# Failures in a row that take a tool out of a section.
PATIENCE = 2

Run = dict[str, object]


def say(words: str) -> None:
    """Progress, for people."""
    print(words, file=sys.stderr, flush=True)


class Origin:
    """`weir origin` on one CPU and a port that the kernel chose."""

    def __init__(self, weir: Path, cpu: int, limit_s: float, folder: Path):
        # --duration: it ends by itself even if this program is killed.
        argv = [str(weir), "origin", "--listen", "127.0.0.1:0", "--size", CONTENT]
        argv += ["--cpus", str(cpu), "--duration", f"{limit_s:.0f}"]
        self.process = Process(argv, folder)
        try:
            self.url = self.process.expect(r"serving on (http://\S+)", 10).group(1)
        except BaseException:
            self.process.__exit__()
            raise

    def stop(self) -> tuple[int, int, Usage]:
        """(requests, connections, usage), counted by the server."""
        usage = self.process.stop()
        said = self.process.out.read_text()
        counts = re.search(r"(\d+) requests on (\d+) connections", said)
        if counts is None:
            raise Failed(f"the origin server printed no counts: {self.process.last_words()}")
        return int(counts.group(1)), int(counts.group(2)), usage


@dataclass(frozen=True)
class Bench:
    """What all sections share."""

    weir: Found
    roles: Roles
    seed: int

    def run(self, found: Found, template: str, seconds: int, rate: int | None = None) -> Run:
        """One run, or Failed."""
        with self.folders() as (generator_folder, origin_folder):
            limit_s = seconds + SLACK_S
            origin = Origin(self.weir.program, self.roles.origin, 2 * limit_s, origin_folder)
            with origin.process:
                argv = found.command(
                    template,
                    cpu=self.roles.generator,
                    connections=CONNECTIONS,
                    seconds=seconds,
                    url=origin.url,
                    requests=REQUESTS_PER_S * seconds,
                    rate=rate,
                    rate_each=rate and rate // CONNECTIONS,
                )
                clock = CpuClock(self.roles)
                pinned = ["taskset", "-c", str(self.roles.generator), *argv]
                with Process(pinned, generator_folder) as generator:
                    usage = generator.succeed(limit_s)
                steal = clock.steal_share()
                requests, connections, origin_usage = origin.stop()
            if requests == 0:
                raise Failed(f"sent nothing: {generator.last_words()}")
            return {
                "tool": found.label,
                "command": " ".join(argv),
                "seconds": seconds,
                "rate_intended": rate,
                "requests": requests,
                "connections": connections,
                "wall_s": usage.wall_s,
                "cpu_s": usage.cpu_s,
                "peak_bytes": usage.peak_bytes,
                "origin_cpu_s": origin_usage.cpu_s,
                "steal": steal,
                "said": weir_words(generator.out) if found.tool is self.weir.tool else None,
            }

    @contextmanager
    def folders(self) -> Iterator[tuple[Path, Path]]:
        """Places for the output of two processes, for the time of one run."""
        with tempfile.TemporaryDirectory(prefix="weir-bench-") as name:
            folders = (Path(name, "generator"), Path(name, "origin"))
            for folder in folders:
                folder.mkdir()
            yield folders


def weir_words(out: Path) -> dict[str, object]:
    """What weir itself reports of a run, without its distributions."""
    document = json.loads(out.read_text())
    kept = {key: document[key] for key in ("rates", "counts", "errors", "validity")}
    kept["dispatch_lag"] = document["dispatch_lag"]["quantiles"]
    return kept


def try_out(bench: Bench, tools: list[Found], template_of: Callable[[Found], str | None],
            rate: int | None, failures: list[str]) -> list[Found]:
    """The tools that pass one second of the section. It also warms up what there is to warm up."""
    good = []
    for found in tools:
        template = template_of(found)
        if template is None:
            continue
        try:
            run = bench.run(found, template, 1, rate)
        except Failed as failure:
            failures.append(f"{found.label}: left out, {failure}")
            say(f"  {failures[-1]}")
            continue
        good.append(found)
        # Reconnecting would make it another measurement. A probe or two are part of some tools.
        if run["connections"] > 2 * CONNECTIONS:
            failures.append(f"{found.label}: opened {run['connections']} connections in a second")
            say(f"  {failures[-1]}")
    return good


def alternate(bench: Bench, tools: list[Found], template_of: Callable[[Found], str | None],
              rounds: int, seconds: int, rate: int | None = None) -> dict[str, object]:
    """Rounds in each of which every tool runs once, in random order."""
    failures: list[str] = []
    runs: list[Run] = []
    draw = random.Random(bench.seed)
    try:
        taking_part = try_out(bench, tools, template_of, rate, failures)
        missed = dict.fromkeys((found.label for found in taking_part), 0)
        for number in range(1, rounds + 1):
            order = [found for found in taking_part if missed[found.label] < PATIENCE]
            draw.shuffle(order)
            line = []
            for found in order:
                try:
                    run = bench.run(found, template_of(found), seconds, rate)
                except Failed as failure:
                    missed[found.label] += 1
                    failures.append(f"{found.label}: round {number} failed, {failure}")
                    say(f"  {failures[-1]}")
                    continue
                missed[found.label] = 0
                runs.append({"round": number, **run})
                line.append(f"{found.label} {1e6 * run['cpu_s'] / run['requests']:.2f}")
            say(f"  round {number}/{rounds}, CPU µs/request: {', '.join(line)}")
    except Stopped as stopped:
        failures.append(f"stopped by {stopped} after {len(runs)} runs")
        return {"runs": runs, "failures": failures, "stopped": True}
    return {"runs": runs, "failures": failures}


def closed(bench: Bench, tools: list[Found], rounds: int, seconds: int) -> dict[str, object]:
    """As many requests as one CPU can send and another one answer."""
    # weir a second time: what this comparison shows is what the machine takes for a difference.
    both = [bench.weir, replace(bench.weir, label="weir (again)"), *tools]
    return alternate(bench, both, lambda found: found.tool.closed, rounds, seconds)


def open_loop(bench: Bench, tools: list[Found], rounds: int, seconds: int,
              rate: int) -> dict[str, object]:
    """The same low rate for all that can hold one."""
    both = [bench.weir, *tools]
    return alternate(bench, both, lambda found: found.tool.open, rounds, seconds, rate)


def repeat_weir(bench: Bench, plan: list[tuple[str, int, int | None]]) -> dict[str, object]:
    """weir alone: (template, seconds, rate) one after the other."""
    failures: list[str] = []
    runs: list[Run] = []
    for template, seconds, rate in plan:
        try:
            runs.append(bench.run(bench.weir, template, seconds, rate))
        except Failed as failure:
            failures.append(f"weir: {seconds} s failed, {failure}")
            say(f"  {failures[-1]}")
        except Stopped as stopped:
            failures.append(f"stopped by {stopped} after {len(runs)} runs")
            return {"runs": runs, "failures": failures, "stopped": True}
    return {"runs": runs, "failures": failures}


def rate_held(bench: Bench) -> dict[str, object]:
    """5,000/s for 10 s, three times: is what was asked for what was sent?"""
    return repeat_weir(bench, [(bench.weir.tool.open, 10, 5000)] * 3)


def memory(bench: Bench) -> dict[str, object]:
    """2 s against 20 s of as many requests as there can be: does memory grow with them?"""
    return repeat_weir(bench, [(bench.weir.tool.closed, seconds, None) for seconds in (2, 20)])
