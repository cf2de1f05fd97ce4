"""The load generators: a row each, with the same question in each one's own words.

Every row asks for HTTP/1.1 in clear with keep-alive, GET without pipelining, one thread, and no more
output than the tool cannot be talked out of. What a tool records on the way (most: a time per
request) is part of what it costs, and stays at its default.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Tool:
    """Arguments are templates with {cpu}, {connections}, {seconds}, {url}, {requests} (more than can
    be sent in that time), {rate} and {rate_each} (of one connection)."""

    name: str
    closed: str | None = None
    """Arguments for a closed loop."""
    open: str | None = None
    """Arguments for a constant rate; None where it knows none for requests."""
    version: str | None = "--version"
    """Argument that prints the version; None where there is none."""


WEIR = Tool(
    name="weir",
    closed="load --cpus {cpu} -c {connections} -d {seconds}s -q --format json {url}",
    open="load --cpus {cpu} -c {connections} -d {seconds}s -R {rate} -q --format json {url}",
)

OTHERS = (
    Tool(
        name="wrk",
        closed="-t1 -c{connections} -d{seconds}s {url}",
        version="-v",
    ),
    Tool(
        # Its rate is one per client, and clients keep their own time.
        name="h2load",
        closed="--h1 -t1 -c{connections} -D{seconds}s {url}",
        open="--h1 -t1 -c{connections} -D{seconds}s --rps={rate_each} {url}",
    ),
    Tool(
        # HTTP/1.0 with `Connection: Keep-Alive`, which is all it speaks. -t sets -n, so -n is last.
        name="ab",
        closed="-q -k -c {connections} -t {seconds} -n {requests} {url}",
        version="-V",
    ),
    Tool(
        name="oha",
        closed="--no-tui --worker-threads 1 -c {connections} -z {seconds}s {url}",
        open="--no-tui --worker-threads 1 -c {connections} -z {seconds}s -q {rate} {url}",
    ),
    Tool(
        name="shb",
        closed="-t 1 -c {connections} -z {seconds}s {url}",
        version=None,
    ),
    Tool(
        # Always a constant rate; the first 10 s are its calibration, which changes no arrivals.
        name="wrk2",
        open="-t1 -c{connections} -d{seconds}s -R{rate} {url}",
        version="-v",
    ),
    Tool(
        # Its rate is one per connection, too. It has no option that prints a version.
        name="hey",
        closed="-cpus 1 -c {connections} -z {seconds}s {url}",
        open="-cpus 1 -c {connections} -z {seconds}s -q {rate_each} {url}",
        version=None,
    ),
)


@dataclass(frozen=True)
class Found:
    """A tool that is there."""

    tool: Tool
    program: Path
    version: str
    label: str
    """Its name in tables; weir takes part twice."""

    def command(self, template: str, **values: object) -> list[str]:
        """The whole command line, each template word filled in."""
        words = [word.format(**values) for word in shlex.split(template)]
        return [str(self.program), *words]


def find(tool: Tool, folders: list[Path]) -> Found | None:
    """Looks in these folders and then on PATH."""
    path = os.pathsep.join([*map(str, folders), os.environ.get("PATH", os.defpath)])
    program = shutil.which(tool.name, path=path)
    if program is None:
        return None
    return Found(tool, Path(program), version_of(Path(program), tool), tool.name)


def version_of(program: Path, tool: Tool) -> str:
    """What cargo knows of a tool that it installed, else the first thing that looks like a version
    in what the tool prints when asked; tools disagree on where they print it and on their exit
    code. `?` when neither says."""
    notes = program.parent.parent / ".crates.toml"
    if notes.is_file():
        installed = re.search(rf'^"{tool.name} ([0-9][^ ]*)', notes.read_text(), re.MULTILINE)
        if installed:
            return installed.group(1)
    if tool.version is None:
        return "?"
    try:
        said = subprocess.run(
            [str(program), tool.version],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=10,
            text=True,
            errors="replace",
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return "?"
    seen = re.search(r"\d+(\.\d+)+", said)
    return seen.group() if seen else "?"
