"""What stands between the command and the first slice, besides the proxies' own start.

`weir run` says on its standard error when a trial begins: all arms are configured, checked,
started, read back and have answered by then. When it was done with the study alone, and with each
arm, can be seen from when the files of the run folder were written. The proxies' own start is
measured apart from weir, with the very configurations that it wrote. What is left is weir's
preparation, the runs of nginx that check and read back the configuration (`nginx -t`, `nginx -T`)
included.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from pathlib import Path
from statistics import median

from sidebyside.process import Failed, Process, signals
from sidebyside.sections import say

from .restarts import Arm, Cpus
from .studies import KERNEL, PARAMETERS, PROXY, SHAPES, Shape, twenty

LIMIT_S = 60
# All arms of a study answer, and its trial begins.
BEGUN = "blocks in"


def parameters(weir: Path, folder: Path) -> dict[str, object]:
    """Twenty: half of them the kernel's as far as this weir has such, the others the proxy's."""
    kernel: dict[str, object] = {}
    for name, level in KERNEL.items():
        if len(kernel) < PARAMETERS // 2 and accepted(weir, {name: level}, folder):
            kernel[name] = level
    rest = list(PROXY.items())[: PARAMETERS - len(kernel)]
    return {**kernel, **dict(rest)}


def accepted(weir: Path, levels: dict[str, object], folder: Path) -> bool:
    """Whether `weir run --check` takes them."""
    file = folder / "study.yaml"
    file.write_text(twenty(SHAPES[0], levels))
    return check(weir, file).returncode == 0


def check(weir: Path, file: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(weir), "run", "--check", str(file)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=LIMIT_S)


def measure(weir: Path, nginx: Path, cpus: Cpus, repeats: int) -> dict:
    """Both shapes of a study of twenty parameters, so many times each."""
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as folder:
        levels = parameters(weir, Path(folder))
    runs = []
    for shape in SHAPES:
        for _ in range(repeats):
            with tempfile.TemporaryDirectory(prefix="weir-bench-") as folder:
                runs.append({"shape": shape.name,
                             **once(weir, nginx, cpus, shape, levels, Path(folder))})
        last = [run for run in runs if run["shape"] == shape.name]
        say(f"  preparation, {shape.title}: {median(map(rest, last)):.3f} s besides the proxies")
    return {"parameters": list(levels), "kernel": [name for name in levels if name in KERNEL],
            "runs": runs}


def once(weir: Path, nginx: Path, cpus: Cpus, shape: Shape, levels: dict[str, object],
         folder: Path) -> dict:
    """One run, and its proxies once more by themselves."""
    file, out = folder / "study.yaml", folder / "run"
    file.write_text(twenty(shape, levels))
    begin = time.monotonic()
    checked = check(weir, file)
    check_s = time.monotonic() - begin
    if checked.returncode != 0:
        raise Failed(f"weir run --check: {checked.stderr.strip()[-300:]}")
    with Process([str(weir), "run", "--out", str(out), str(file)], folder) as process:
        begun_at = time.time()
        prepared_s = when_said(process, BEGUN)
        process.succeed(LIMIT_S)
    arms = sorted((out / "arms").iterdir())
    return {
        "arms": len(arms),
        "check_s": check_s,
        "prepared_s": prepared_s,
        "study_s": (out / "run.json").stat().st_mtime - begun_at,
        "arms_s": max((arm / "effective.conf").stat().st_mtime for arm in arms) - begun_at,
        "proxies": [alone(nginx, cpus, arm / "nginx.conf") for arm in arms],
    }


def when_said(process: Process, words: str) -> float:
    """Seconds from the start of a process until its standard error has these words."""
    while words not in process.err.read_text(errors="replace"):
        signals.check()
        if time.monotonic() > process.begin + LIMIT_S or process.ended():
            raise Failed(f"never said `{words}`: {process.last_words()}")
        time.sleep(0.001)
    return time.monotonic() - process.begin


def alone(nginx: Path, cpus: Cpus, written: Path) -> dict:
    """What an arm's nginx takes by itself: to be there, to check its configuration, to print it."""
    # It answers 502 without an origin, which is an answer.
    nowhere = "127.0.0.1:9"
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as name:
        arm = Arm(nginx, written.read_text(), nowhere, cpus, Path(name))
        process, start_s = arm.start(LIMIT_S)
        with process:
            process.stop()
        return {"start_s": start_s, "check_s": timed([*arm.nginx, "-t"]),
                "print_s": timed([*arm.nginx, "-T"])}


def timed(argv: list[str]) -> float:
    """Seconds that a command takes which must succeed."""
    begin = time.monotonic()
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True, timeout=LIMIT_S)
    if done.returncode != 0:
        raise Failed(f"{argv[-1]}: {done.stderr.strip()[-200:]}")
    return time.monotonic() - begin


def starts(run: dict) -> float:
    """What all its proxies take to be there, one after the other, as they are started."""
    return sum(proxy["start_s"] for proxy in run["proxies"])


def rest(run: dict) -> float:
    """The preparation besides the proxies' own start."""
    return run["prepared_s"] - starts(run)
