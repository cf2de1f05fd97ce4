"""The machine: which CPUs there are for whom, and what one must know of it to judge a figure."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Roles:
    """A CPU each. The same one when there is no other."""

    generator: int
    origin: int


def choose_roles() -> Roles:
    """Two CPUs this program may use, on different cores if there are such."""
    allowed = sorted(os.sched_getaffinity(0))
    generator = allowed[0]
    others = [cpu for cpu in allowed if cpu != generator]
    apart = [cpu for cpu in others if cpu not in siblings(generator)]
    return Roles(generator, next(iter(apart or others), generator))


def siblings(cpu: int) -> set[int]:
    """CPUs of the same core, itself among them."""
    text = read(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
    found = {cpu}
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def describe(roles: Roles) -> dict[str, object]:
    """For the result file and the line above the tables."""
    return {
        "kernel": platform.release(),
        "cpu": next(iter(values("/proc/cpuinfo", "model name")), platform.machine()),
        "cpus": len(os.sched_getaffinity(0)),
        "generator_cpu": roles.generator,
        "origin_cpu": roles.origin,
        "same_core": roles.origin in siblings(roles.generator),
        "virtual": any("hypervisor" in flags for flags in values("/proc/cpuinfo", "flags")[:1]),
        "load_average": list(os.getloadavg()),
        "python": platform.python_version(),
    }


class CpuClock:
    """Time that the CPUs in use were taken away by the hypervisor, since this was made."""

    def __init__(self, roles: Roles):
        self.cpus = sorted({roles.generator, roles.origin})
        self.begin = self._now()

    def steal_share(self) -> float:
        """0..1 of all time of these CPUs."""
        steal, total = (now - then for now, then in zip(self._now(), self.begin, strict=True))
        return steal / total if total > 0 else 0.0

    def _now(self) -> tuple[int, int]:
        steal = total = 0
        for line in read("/proc/stat").splitlines():
            name, *fields = line.split()
            if name in (f"cpu{cpu}" for cpu in self.cpus):
                # user nice system idle iowait irq softirq steal, then guest time, which is part of
                # user already: proc(5).
                ticks = [int(field) for field in fields[:8]]
                steal += ticks[7]
                total += sum(ticks)
        return steal, total


def values(file: str, key: str) -> list[str]:
    """All values of a key in a file of `key : value` lines."""
    pairs = (line.partition(":") for line in read(file).splitlines())
    return [value.strip() for name, _, value in pairs if name.strip() == key]


def read(file: str) -> str:
    """Its text, empty when there is no such file here."""
    try:
        return Path(file).read_text()
    except OSError:
        return ""
