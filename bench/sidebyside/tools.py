"""The load generators: a row each, with the same questions in each one's own words.

Every row asks for HTTP/1.1, GET without pipelining, one thread, and no more output than the tool
cannot be talked out of. What a tool records on the way (most: a time per request) is part of what
it costs, and stays at its default. A question that a tool has no words for stays None: it is left out
of the sections that ask it.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

# What a generator that is written in a language of its own is told to do.
K6_SCRIPT = Path(__file__).with_name("k6.js")


@dataclass(frozen=True)
class Tool:
    """Arguments are templates with {cpu}, {connections}, {seconds}, {url}, {address} (host:port),
    {requests} (more than can be sent in that time), {rate}, {rate_each} (of one connection), and
    {also}, where `tls` and `more` go."""

    name: str
    keep_alive: str | None = None
    """As many requests as there can be, on connections that stay open."""
    per_request: str | None = None
    """The same, with a new connection for each request."""
    reset: str | None = None
    """The same, each closed by a reset, which is another load: nobody is left in TIME_WAIT."""
    open: str | None = None
    """A constant rate on connections that stay open."""
    own_schedules: bool = False
    """At a constant rate each connection keeps a time of its own."""
    hold: str | None = None
    """Connections that are opened, and carry nothing."""
    tls: str | None = ""
    """What an https:// URL with a certificate of nobody's takes besides; None without TLS."""
    more: Mapping[str, str] = field(default_factory=dict)
    """What a section takes besides, by the section's name."""
    version: str | None = "--version"
    """Argument that prints the version; None where there is none."""

    def template(self, question: str, section: str, tls: bool) -> str | None:
        """The arguments for a question (`keep_alive`, …) in a section; None if it cannot."""
        words = getattr(self, question)
        if words is None or (tls and self.tls is None):
            return None
        also = f"{self.tls if tls else ''} {self.more.get(section, '')}"
        return words.replace("{also}", also)


WEIR = Tool(
    name="weir",
    keep_alive="load --cpus {cpu} -c {connections} -d {seconds}s -q --format json {also} {url}",
    per_request="load --cpus {cpu} -c {connections} -d {seconds}s --connection per-request"
    " -q --format json {also} {url}",
    reset="load --cpus {cpu} -c {connections} -d {seconds}s --connection per-request --close reset"
    " -q --format json {also} {url}",
    open="load --cpus {cpu} -c {connections} -d {seconds}s -R {rate} -q --format json {also} {url}",
    hold="load --cpus {cpu} -c {connections} -d {seconds}s --connection hold"
    " -q --format json {url}",
    tls="--insecure",
    more={"handshake": "--resumption off"},
)

OTHERS = (
    Tool(
        name="wrk",
        keep_alive="-t1 -c{connections} -d{seconds}s {url}",
        per_request="-t1 -c{connections} -d{seconds}s -H 'Connection: close' {url}",
        version="-v",
    ),
    Tool(
        # Its rate is one per client, and clients keep their own time. Told to close connections it
        # does not end when its time is over (1.52).
        name="h2load",
        keep_alive="--h1 -t1 -c{connections} -D{seconds}s {url}",
        open="--h1 -t1 -c{connections} -D{seconds}s --rps={rate_each} {url}",
        own_schedules=True,
    ),
    Tool(
        # HTTP/1.0, with `Connection: Keep-Alive` where asked. -t sets -n, so -n is last.
        name="ab",
        keep_alive="-q -k -c {connections} -t {seconds} -n {requests} {url}",
        per_request="-q -c {connections} -t {seconds} -n {requests} {url}",
        version="-V",
    ),
    Tool(
        name="oha",
        keep_alive="--no-tui --worker-threads 1 -c {connections} -z {seconds}s {also} {url}",
        per_request="--no-tui --worker-threads 1 -c {connections} -z {seconds}s"
        " --disable-keepalive {also} {url}",
        open="--no-tui --worker-threads 1 -c {connections} -z {seconds}s -q {rate} {also} {url}",
        tls="--insecure",
    ),
    Tool(
        # It trusts every certificate, and resumes no session.
        name="shb",
        keep_alive="-t 1 -c {connections} -z {seconds}s {url}",
        per_request="-t 1 -c {connections} -z {seconds}s --disable-keepalive {url}",
        version=None,
    ),
    Tool(
        # Its rate is one per connection, too. It trusts every certificate.
        name="hey",
        keep_alive="-cpus 1 -c {connections} -z {seconds}s {url}",
        per_request="-cpus 1 -c {connections} -z {seconds}s -disable-keepalive {url}",
        open="-cpus 1 -c {connections} -z {seconds}s -q {rate_each} {url}",
        version=None,
    ),
    Tool(
        # Go, which takes its number of threads from the CPUs that it is given.
        name="k6",
        keep_alive="run --quiet --no-usage-report --address '' -e CONNECTIONS={connections}"
        " -e SECONDS={seconds} -e URL={url} {script}",
        per_request="run --quiet --no-usage-report --address '' -e CONNECTIONS={connections}"
        " -e SECONDS={seconds} -e URL={url} -e PER_REQUEST=1 {script}",
        open="run --quiet --no-usage-report --address '' -e CONNECTIONS={connections}"
        " -e SECONDS={seconds} -e URL={url} -e RATE={rate} {script}",
        version="version",
    ),
    Tool(
        # Always a constant rate; the first 10 s are its calibration, which changes no arrivals.
        name="wrk2",
        open="-t1 -c{connections} -d{seconds}s -R{rate} {url}",
        own_schedules=True,
        version="-v",
    ),
    Tool(
        # It sends for 0.1 s before the time it was given; the server counts that as well. Connections
        # that it is to renew it resets.
        name="gcannon",
        keep_alive="-t 1 -c {connections} -d {seconds}s {also} {url}",
        reset="-t 1 -c {connections} -d {seconds}s -r 1 {also} {url}",
        tls=None,
        more={"large": "--recv-buf 16384"},
        version=None,
    ),
    Tool(
        # It knows bytes, not HTTP: it sends whether answers come or not, and looks for a mark in
        # them instead of reading them.
        name="tcpkali",
        open="-w1 -c{connections} --connect-rate=10000 -T{seconds}s -r{rate_each}"
        r" --latency-marker HTTP/1.1 -em 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n' {address}",
        hold="-w1 -c{connections} --connect-rate=10000 -T{seconds}s {address}",
        tls=None,
    ),
    Tool(
        # Its time begins when its connections are open.
        name="fortio",
        keep_alive="load -quiet -qps 0 -c {connections} -t {seconds}s {also} {url}",
        per_request="load -quiet -qps 0 -c {connections} -t {seconds}s -keepalive=false"
        " {also} {url}",
        open="load -quiet -qps {rate} -c {connections} -t {seconds}s {also} {url}",
        tls="-k",
        more={"large": "-httpbufferkb 2048"},
        version="version",
    ),
    Tool(
        # Written from its documentation. Its loop is closed as long as there is no --open-loop, and
        # its rate then a limit. It trusts every certificate.
        name="nighthawk_client",
        keep_alive="--concurrency 1 --connections {connections} --duration {seconds}"
        " --rps 1000000 -v error {url}",
        per_request="--concurrency 1 --connections {connections} --duration {seconds}"
        " --rps 1000000 --max-requests-per-connection 1 -v error {url}",
        open="--concurrency 1 --connections {connections} --duration {seconds} --rps {rate}"
        " --open-loop --prefetch-connections -v error {url}",
    ),
)


@dataclass(frozen=True)
class Found:
    """A tool that is there."""

    tool: Tool
    program: Path
    version: str
    label: str
    """Its name in tables; weir takes part more than once."""
    extra: tuple[str, ...] = ()
    """Arguments that make this row differ from the tool's other rows."""

    def command(self, template: str, **values: object) -> list[str]:
        """The whole command line, each template word filled in."""
        words = [word.format(script=K6_SCRIPT, **values) for word in shlex.split(template)]
        return [str(self.program), *words, *self.extra]


def find(tool: Tool, folders: list[Path]) -> Found | None:
    """Looks in these folders and then on PATH."""
    path = os.pathsep.join([*map(str, folders), os.environ.get("PATH", os.defpath)])
    program = shutil.which(tool.name, path=path)
    if program is None:
        return None
    return Found(tool, Path(program), version_of(Path(program), tool), tool.name)


def version_of(program: Path, tool: Tool) -> str:
    """What the tool's installer noted of it, else the first thing that looks like a version in what
    the tool prints when asked; tools disagree on where they print it and on their exit code. `?`
    when neither says."""
    noted = noted_version(program, tool)
    if noted:
        return noted
    if tool.version is None:
        return "?"
    seen = re.search(r"\d+(\.\d+)+", said_by(str(program), tool.version))
    return seen.group() if seen else "?"


def noted_version(program: Path, tool: Tool) -> str | None:
    """What cargo noted beside what it installed; of a tool that has no words for its version, also
    what Go noted in the program itself, or Debian of the package of that name."""
    notes = program.parent.parent / ".crates.toml"
    if notes.is_file():
        installed = re.search(rf'^"{tool.name} ([0-9][^ ]*)', notes.read_text(), re.MULTILINE)
        if installed:
            return installed.group(1)
    if tool.version is not None:
        return None
    if program.is_relative_to("/usr/bin"):
        said = said_by("dpkg-query", "--show", "--showformat=v${Version}", tool.name)
    else:
        said = said_by("go", "version", "-m", str(program))
    seen = re.search(r"(?:^|\tmod\t\S+\t)v(\d+(\.\d+)+)", said)
    return seen.group(1) if seen else None


def said_by(*argv: str) -> str:
    """All that a program prints; nothing when it cannot be run."""
    try:
        return subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=10,
            text=True,
            errors="replace",
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
