"""What is measured: sections, each a list of runs as plain data.

A run is one generator against one fresh server that counts the requests it receives. Nothing here
computes a figure that could not be computed again from the result file (see report.py).
"""

from __future__ import annotations

import json
import random
import resource
import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from .arrivals import Segments, lateness, quantile
from .loads import ASLEEP, CONNECTIONS, HELD, PUNCTUAL, PUNCTUAL_TOOLS, RATE_HELD, Load
from .machine import CpuClock, Roles
from .process import Failed, Process, Stopped
from .servers import Certificate, Nginx, NginxProgram, Origin
from .tools import Found

# What a tool may need beyond the time it was given: to start, to drain, to print.
SLACK_S = 15
# More than any tool sends in a second on one CPU, for those that must be given a number.
REQUESTS_PER_S = 500_000
# Failures in a row that take a tool out of a section.
PATIENCE = 2
# Descriptors that a process needs besides its connections.
OTHER_DESCRIPTORS = 100

Run = dict[str, object]
Cell = tuple[Found, Load]
Section = dict[str, object]


def say(words: str) -> None:
    """Progress, for people."""
    print(words, file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Bench:
    """What all sections share."""

    weir: Found
    roles: Roles
    seed: int
    nginx: NginxProgram | None = None
    certificate: Certificate | None = None

    def run(self, found: Found, load: Load, seconds: int, connections: int = CONNECTIONS) -> Run:
        """One run, or Failed."""
        template = found.tool.template(load.question, load.name, load.tls)
        if template is None:
            raise Failed("it has no words for this")
        with self.folders() as (generator_folder, server_folder):
            limit_s = seconds + SLACK_S
            server = self.server(load, 2 * limit_s, server_folder)
            with server.process:
                argv = found.command(
                    template,
                    cpu=self.roles.generator,
                    connections=connections,
                    seconds=seconds,
                    url=server.url,
                    address=server.url.partition("//")[2].rstrip("/"),
                    requests=REQUESTS_PER_S * seconds,
                    rate=load.rate,
                    rate_each=load.rate and load.rate // connections,
                )
                clock = CpuClock(self.roles)
                pinned = ["taskset", "-c", str(self.roles.generator), *argv]
                with (stamps(load, server.url) as segments,
                      Process(pinned, generator_folder) as generator):
                    usage = generator.succeed(limit_s)
                    late = how_late(found, load, segments)
                steal = clock.steal_share()
                requests, accepted, server_usage = server.stop()
            check(load, requests, accepted, connections, generator)
            return {
                "tool": found.label,
                "command": shlex.join(argv),
                "seconds": seconds,
                "rate_intended": load.rate,
                "requests": requests,
                "connections": accepted,
                "wall_s": usage.wall_s,
                "cpu_s": usage.cpu_s,
                "peak_bytes": usage.peak_bytes,
                "origin_cpu_s": server_usage.cpu_s,
                "steal": steal,
                "late_ns": late,
                "said": weir_words(generator.out) if found.tool is self.weir.tool else None,
            }

    def server(self, load: Load, limit_s: float, folder: Path) -> Origin | Nginx:
        """A fresh one for a run."""
        cpu = self.roles.origin
        if not load.tls and not load.nginx:
            return Origin(self.weir.program, cpu, load.content, limit_s, folder)
        if self.nginx is None or self.certificate is None:
            raise Failed("TLS needs nginx with its SSL and stub_status modules, and openssl")
        certificate = self.certificate if load.tls else None
        return Nginx(self.nginx, cpu, load.content, limit_s, folder, certificate)

    @contextmanager
    def folders(self) -> Iterator[tuple[Path, Path]]:
        """Places for the output of two processes, for the time of one run."""
        with tempfile.TemporaryDirectory(prefix="weir-bench-") as name:
            folders = (Path(name, "generator"), Path(name, "server"))
            for folder in folders:
                folder.mkdir()
            yield folders


def stamps(load: Load, url: str) -> AbstractContextManager[Segments | None]:
    """Stamps of a load's requests, where it wants them and this program may have them."""
    if not load.stamped:
        return nullcontext()
    try:
        return Segments(int(url.rstrip("/").rpartition(":")[2]))
    except PermissionError:
        return nullcontext()


def how_late(found: Found, load: Load, segments: Segments | None) -> list[tuple[float, float]]:
    """(quantile, nanoseconds), as the kernel saw the requests; empty where it was not asked."""
    if segments is None:
        return []
    each = found.tool.own_schedules
    gap_ns = 1e9 / load.rate * (CONNECTIONS if each else 1)
    late = lateness(segments.taken(), gap_ns, each)
    return [(wanted, quantile(late, wanted)) for wanted in (0.5, 0.99, 1.0) if late]


def check(load: Load, requests: int, accepted: int, connections: int, generator: Process) -> None:
    """Raises Failed when what the server saw is not what was asked for."""
    if load.question == "hold":
        if accepted < connections:
            raise Failed(f"opened {accepted} connections of {connections}")
        return
    if requests == 0:
        raise Failed(f"sent nothing: {generator.last_words()}")
    # Some may be opened in advance, or given up at the end.
    if load.fresh and accepted < 0.9 * requests:
        raise Failed(f"sent {requests} requests on only {accepted} connections")


def weir_words(out: Path) -> dict[str, object]:
    """What weir itself reports of a run, without its distributions."""
    document = json.loads(out.read_text())
    kept = {key: document.get(key) for key in ("rates", "counts", "errors", "validity")}
    kept["dispatch_lag"] = (document.get("dispatch_lag") or {}).get("quantiles", [])
    return kept


# --- side by side ---


def key(cell: Cell) -> tuple[str, int | None]:
    """A tool and a load within a section."""
    found, load = cell
    return found.label, load.rate


def try_out(bench: Bench, cells: list[Cell], failures: list[str]) -> list[Cell]:
    """Those that pass one second of the section. It also warms up what there is to warm up."""
    good = []
    for found, load in cells:
        try:
            bench.run(found, load, 1)
        except Failed as failure:
            failures.append(f"{found.label}: left out, {failure}")
            say(f"  {failures[-1]}")
            continue
        good.append((found, load))
    return good


def taking_part(weir: Found, others: list[Found], load: Load) -> list[Found]:
    """weir, weir again (what this comparison shows is what the machine takes for a difference), and
    the others that have words for the question."""
    rows = [weir, replace(weir, label="weir (again)")]
    rows += [replace(weir, label=label, extra=extra) for label, extra in load.variants]
    able = (tool for tool in others if tool.tool.template(load.question, load.name, load.tls))
    return [*rows, *able]


def side_by_side(bench: Bench, others: list[Found], load: Load, rounds: int, seconds: int,
                 trial: bool = True) -> Section:
    """Rounds in each of which every tool runs once, in random order; first a second of trial, after
    which one that failed is left out."""
    tools = taking_part(bench.weir, others, load)
    return in_rounds(bench, [(found, load) for found in tools], rounds, seconds, trial)


def punctual(bench: Bench, others: list[Found], rounds: int, seconds: int,
             trial: bool = True) -> Section:
    """The same with several rates: who is how late at which, and what does it cost?"""
    tools = [bench.weir, replace(bench.weir, label=ASLEEP, extra=("--spin", "0s"))]
    tools += [tool for tool in others if tool.label in PUNCTUAL_TOOLS]
    cells = [(found, load) for load in PUNCTUAL for found in tools]
    return in_rounds(bench, cells, rounds, seconds, trial)


def in_rounds(bench: Bench, cells: list[Cell], rounds: int, seconds: int,
              trial: bool) -> Section:
    failures: list[str] = []
    runs: list[Run] = []
    draw = random.Random(bench.seed)
    try:
        if trial:
            cells = try_out(bench, cells, failures)
        missed = {key(cell): 0 for cell in cells}
        for number in range(1, rounds + 1):
            order = [cell for cell in cells if missed[key(cell)] < PATIENCE]
            draw.shuffle(order)
            line = []
            for cell in order:
                found, load = cell
                try:
                    run = bench.run(found, load, seconds)
                except Failed as failure:
                    missed[key(cell)] += 1
                    failures.append(f"{found.label}: round {number} failed, {failure}")
                    say(f"  {failures[-1]}")
                    continue
                missed[key(cell)] = 0
                runs.append({"round": number, **run})
                line.append(f"{found.label} {1e6 * run['cpu_s'] / run['requests']:.2f}")
            say(f"  round {number}/{rounds}, CPU µs/request: {', '.join(line)}")
    except Stopped as stopped:
        failures.append(f"stopped by {stopped} after {len(runs)} runs")
        return {"runs": runs, "failures": failures, "stopped": True}
    return {"runs": runs, "failures": failures}


# --- promises ---


def one_by_one(bench: Bench, plan: list[tuple[Found, Load, int, int]]) -> Section:
    """(tool, load, seconds, connections), each in turn. A tool's first failure is its last."""
    failures: dict[str, str] = {}
    runs: list[Run] = []
    try:
        for found, load, seconds, connections in plan:
            if found.label in failures:
                continue
            try:
                run = bench.run(found, load, seconds, connections)
            except Failed as failure:
                failures[found.label] = f"{found.label}: left out, {failure}"
                say(f"  {failures[found.label]}")
                continue
            runs.append({"connections_intended": connections, **run})
    except Stopped as stopped:
        ended = f"stopped by {stopped} after {len(runs)} runs"
        return {"runs": runs, "failures": [*failures.values(), ended], "stopped": True}
    return {"runs": runs, "failures": list(failures.values())}


def rate_held(bench: Bench, seconds: int) -> Section:
    """The same rate three times: is what was asked for what was sent, and when it was due?"""
    load = Load("rate", "", "open", rate=RATE_HELD)
    return one_by_one(bench, [(bench.weir, load, seconds, CONNECTIONS)] * 3)


def memory(bench: Bench, seconds: tuple[int, int]) -> Section:
    """A short run against a long one of as many requests as there can be: does memory grow with
    them?"""
    load = Load("memory", "", "keep_alive")
    return one_by_one(bench, [(bench.weir, load, each, CONNECTIONS) for each in seconds])


def origin(bench: Bench, rounds: int, seconds: int) -> Section:
    """weir's origin server and nginx's `return 200` in turns: what does a request cost them?"""
    servers = {"weir origin": False, "nginx": True}
    draw = random.Random(bench.seed)
    runs: list[Run] = []
    failures: list[str] = []
    for number in range(1, rounds + 1):
        plan = [
            (replace(bench.weir, label=label), Load("origin", "", "keep_alive", nginx=nginx),
             seconds, CONNECTIONS)
            for label, nginx in draw.sample(list(servers.items()), len(servers))
        ]
        found = one_by_one(bench, plan)
        runs += [{"round": number, **run} for run in found["runs"]]
        failures += found["failures"]
        if found.get("stopped"):
            return {"runs": runs, "failures": failures, "stopped": True}
    return {"runs": runs, "failures": failures}


def hold(bench: Bench, others: list[Found], seconds: int) -> Section:
    """A few and many connections that carry nothing: what does one take?"""
    load = Load("hold", "", "hold")
    able = [tool for tool in [bench.weir, *others] if tool.tool.hold]
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if allowed != resource.RLIM_INFINITY and allowed < HELD[-1] + OTHER_DESCRIPTORS:
        words = f"needs {HELD[-1] + OTHER_DESCRIPTORS} descriptors, {allowed} are allowed"
        return {"runs": [], "failures": [f"{words} (ulimit -Hn)"]}
    with descriptors(HELD[-1] + OTHER_DESCRIPTORS):
        return one_by_one(bench, [(tool, load, seconds, many) for tool in able for many in HELD])


@contextmanager
def descriptors(number: int) -> Iterator[None]:
    """Allows that many to what is started meanwhile; other sections run with what they find."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < number:
        resource.setrlimit(resource.RLIMIT_NOFILE, (number, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
