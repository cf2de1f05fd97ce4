"""The other way: an arm is started, warmed up, measured and stopped; then the other one; and again.

Everything else is as in `weir run`: the very configuration that it wrote (but for ports), the same
CPUs and limits, the same origin server, which stays up all the time, and the same load engine.
"""

from __future__ import annotations

import http.client
import json
import math
import os
import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sidebyside.process import Failed, Process, signals
from sidebyside.servers import START_S, free_ports

from .cost import from_blocks
from .slices import invalid
from .studies import CONNECTIONS, TIMEOUT_S, Load

WARM_UP_S = 1
# Soft limit of descriptors, as `weir run` gives it to a proxy (weir-lab, STOCK_NOFILE).
NOFILE = 1024
# What a trial may take beyond its phases.
SLACK_S = 20
# Trials that fail in a row and end the way.
PATIENCE = 3
ARMS = ("A", "B")


@dataclass(frozen=True)
class Cpus:
    """CPU sets as `weir run` shared them out, in the words of taskset(1)."""

    proxy: str
    generator: str
    origin: str


class Origin:
    """`weir origin`, one for all arms and trials."""

    def __init__(self, weir: Path, cpus: Cpus, limit_s: float, folder: Path):
        argv = [str(weir), "origin", "--listen", "127.0.0.1:0", "--size", "1024"]
        argv += ["--cpus", cpus.origin, "--duration", f"{limit_s:.0f}"]
        self.process = Process(argv, folder)
        try:
            found = self.process.expect(r"serving on http://(127\.0\.0\.1:\d+)", START_S)
        except BaseException:
            self.process.__exit__()
            raise
        self.address = found.group(1)


def configure(written: str, listen: int, origin: str) -> str:
    """The configuration that weir wrote, with other ports."""
    text, listeners = re.subn(r"listen [\d.]+:\d+", f"listen 127.0.0.1:{listen}", written)
    text, origins = re.subn(r"server [\d.]+:\d+;", f"server {origin};", text)
    if (listeners, origins) != (1, 1):
        raise Failed(f"cannot read weir's nginx.conf: {listeners} listeners, {origins} origins")
    return text


def listen_address(written: str) -> str:
    """Where the arm that weir configured was asked, without the port."""
    found = re.search(r"listen ([\d.]+):\d+", written)
    if found is None:
        raise Failed("cannot read weir's nginx.conf: no listener")
    return found.group(1)


class Arm:
    """One arm's nginx, to be started again and again in the same folder on the same port."""

    def __init__(self, nginx: Path, written: str, origin: str, cpus: Cpus, folder: Path):
        self.port = free_ports()[0]
        self.folder = folder
        # The workers are another user's.
        folder.chmod(0o711)
        for name in ("logs", "temp"):
            (folder / name).mkdir()
        self.configuration = folder / "nginx.conf"
        self.configuration.write_text(configure(written, self.port, origin))
        self.nginx = [str(nginx), "-p", str(folder), "-c", str(self.configuration)]
        self.argv = ["taskset", "-c", cpus.proxy, "prlimit", f"--nofile={NOFILE}:", *self.nginx]
        self.url = f"http://127.0.0.1:{self.port}/"

    def start(self, limit_s: float) -> tuple[Process, float]:
        """The process, and how long it took until it answered."""
        # timeout: it ends by itself even if this program is killed. It hands a SIGTERM on.
        process = Process(["timeout", f"{limit_s:.0f}", *self.argv], self.folder)
        try:
            while not self._answers():
                signals.check()
                if time.monotonic() > process.begin + START_S:
                    raise Failed(f"nginx did not answer: {process.last_words()}")
                time.sleep(0.0005)
            return process, time.monotonic() - process.begin
        except BaseException:
            process.__exit__()
            raise

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=START_S)
        try:
            connection.request("GET", "/")
            connection.getresponse()
            return True
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


def cpu_ns(pid: int) -> int:
    """CPU time of a process and all below it, of those that run now: the first figure of schedstat
    (the kernel's Documentation/scheduler/sched-stats.rst). nginx has one thread in each process."""
    own = int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return own + sum(map(cpu_ns, map(int, children)))


@dataclass(frozen=True)
class Bench:
    """What all trials share."""

    weir: Path
    cpus: Cpus
    load: Load
    rate: int | None
    folder: Path
    """Of the generator's output."""

    def trial(self, arm: Arm, seconds: float) -> dict:
        """An arm from its start to its stop, or Failed."""
        begin = time.monotonic()
        limit_s = WARM_UP_S + seconds + SLACK_S
        process, start_s = arm.start(2 * limit_s)
        with process:
            before = cpu_ns(process.pid)
            with Process(self.command(arm.url, seconds), self.folder) as generator:
                generator.succeed(limit_s)
            used = cpu_ns(process.pid) - before
            stopping = time.monotonic()
            process.stop()
        said = json.loads(generator.out.read_text())
        end = time.monotonic()
        return {**figures(said, used), "start_s": start_s, "stop_s": end - stopping,
                "wall_s": end - begin}

    def command(self, url: str, seconds: float) -> list[str]:
        argv = [str(self.weir), "load", "--cpus", self.cpus.generator, "-c", str(CONNECTIONS)]
        argv += ["-d", f"{seconds:g}s", "--ramp-up", f"{WARM_UP_S}s", "-T", f"{TIMEOUT_S}s"]
        argv += ["-R", str(self.rate)] if self.load.open else []
        return [*argv, "-q", "--format", "json", url]


def figures(said: dict, cpu: int) -> dict:
    """Of one trial. The CPU time covers the warm-up too, and so does the count of requests."""
    quantiles = dict(map(tuple, said["response_time"]["quantiles"]))
    counts = said["counts"]
    if counts["completed"] == 0:
        raise Failed("nothing was answered")
    wrong = [each["status"] for each in said["statuses"] if each["status"] != 200]
    if wrong:
        raise Failed(f"answered with status {wrong[0]}")
    return {
        "rate": said["rates"]["completed"],
        "cpu_per_request": cpu / counts["completed_whole"],
        "response_p50": quantiles.get(0.5),
        "response_p99": quantiles.get(0.99),
        "sustain_s": said["phases"]["sustain"],
        "invalid": invalid(said["validity"]),
    }


def measure(load: Load, seconds: float, budget_s: float, draw: random.Random,
            trial: Callable[[str, float], dict]) -> dict:
    """Blocks of both arms, in an order drawn anew for each, until the budget of time is spent.
    `trial` measures an arm for so many seconds."""
    begin = time.monotonic()
    blocks: list[dict] = []
    failures: list[str] = []
    tried = missed = 0
    while missed < PATIENCE and room_for_another(tried, time.monotonic() - begin, budget_s):
        tried += 1
        order = draw.sample(ARMS, len(ARMS))
        try:
            blocks.append({arm: trial(arm, seconds) for arm in order})
            missed = 0
        except Failed as failure:
            missed += 1
            failures.append(str(failure))
    wall_s = time.monotonic() - begin
    return {"way": f"restarts {seconds:g} s", "trial_s": seconds, "wall_s": wall_s,
            "failures": failures, **summed(load, blocks)}


def room_for_another(done: int, elapsed_s: float, budget_s: float) -> bool:
    """Whether one more block like those before brings the time nearer to the budget."""
    return done == 0 or elapsed_s + elapsed_s / done / 2 <= budget_s


def summed(load: Load, blocks: list[dict]) -> dict:
    """What the blocks say of each metric. As in `weir run`, an INVALID trial spoils its block."""
    trials = [trial for block in blocks for trial in block.values()]
    used = [block for block in blocks if not any(trial["invalid"] for trial in block.values())]
    return {
        "blocks": len(blocks),
        "blocks_used": len(used),
        "invalid": sorted({words for trial in trials for words in trial["invalid"]}),
        "measured_s": sum(trial["sustain_s"] for trial in trials),
        "trials": trials,
        "metrics": {name: from_blocks(log_ratios(used, name)) for name in load.metrics},
    }


def log_ratios(blocks: list[dict], metric: str) -> list[float]:
    """ln(B/A) of the blocks in which both arms have it."""
    pairs = ((block["A"][metric], block["B"][metric]) for block in blocks)
    return [math.log(b / a) for a, b in pairs if a and b]


def nginx_program() -> Path:
    """As `weir run` finds it: on PATH, or where Debian keeps it."""
    for folder in [*os.get_exec_path(), "/usr/sbin", "/sbin"]:
        program = Path(folder, "nginx")
        if os.access(program, os.X_OK):
            return program
    raise Failed("there is no nginx\nhint: Debian's package is `nginx`; `make demo` installs it")
