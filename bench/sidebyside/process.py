"""Processes started, timed by the kernel's own accounts, bounded in time, and ended by pid.

What a process used is read from wait4(2), which is exact and costs it nothing. One account has a
trap: the peak memory of a process (ru_maxrss) also covers what it was before exec(2), so every
child of this program would seem at least as large as Python. Therefore a small shell starts each
process and goes away at once; the kernel hands the orphan to us, its nearest subreaper
(PR_SET_CHILD_SUBREAPER, prctl(2)), and its accounts begin with the shell's 1 MiB. The process waits
at a gate, a line on a pipe, until the shell is gone: a shell that still lives would reap it.
"""

from __future__ import annotations

import ctypes
import os
import re
import resource
import select
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
# How often a waiting program looks whether it was told to stop.
LOOK_S = 0.1
# What a process gets to end by itself after SIGTERM.
GRACE_S = 2.0

# Its standard input is the gate.
START = """
out=$1 err=$2
shift 2
exec 3<&0
{ read -r go && exec "$@" </dev/null 3<&- ; } <&3 >"$out" 2>"$err" &
echo $!
"""


class Failed(Exception):
    """A process did not do what it was started for; the words are its own where it had any."""


class Stopped(Exception):
    """A signal asked this program to end; what was started is ended first."""


class _Signals:
    """Signals only leave a mark, which is looked at where stopping is safe: a handler that raised
    could do so between the start of a process and the moment its pid is known."""

    seen: int | None = None

    def note(self, number: int, _frame: object) -> None:
        self.seen = number

    def check(self) -> None:
        if self.seen is not None:
            raise Stopped(signal.Signals(self.seen).name)


signals = _Signals()


def prepare() -> None:
    """Once, before the first process."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signals.note)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


@dataclass(frozen=True)
class Usage:
    """What a process and the children it waited for used, from start to end."""

    code: int
    wall_s: float
    cpu_s: float
    peak_bytes: int


class Process:
    """One process with its output in files. A context: at its end the process is gone."""

    def __init__(self, argv: list[str], folder: Path):
        self.argv = argv
        self.out, self.err = folder / "stdout", folder / "stderr"
        self.usage: Usage | None = None
        # The shell opens them only after it told the pid: until then nobody's words are in them.
        for file in (self.out, self.err):
            file.write_bytes(b"")
        signals.check()
        gate, key = os.pipe()
        try:
            shell = subprocess.run(
                ["/bin/sh", "-c", START, "sh", str(self.out), str(self.err), *argv],
                stdin=gate,
                stdout=subprocess.PIPE,
                text=True,
                check=True,
                # A tool that keeps notes of its runs keeps them there, and reads none.
                env={**os.environ, "HOME": str(folder)},
            )
            self.pid = int(shell.stdout)
            self.pidfd = os.pidfd_open(self.pid)
            self.begin = time.monotonic()
            os.write(key, b"go\n")
        except subprocess.CalledProcessError as error:
            # An interrupt from a terminal reaches the shell as well as us.
            signals.check()
            raise Failed(f"the shell that starts processes ended with {error.returncode}") from None
        finally:
            os.close(gate)
            os.close(key)

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        if self.usage is None:
            self._end()
        os.close(self.pidfd)

    def wait(self, limit_s: float) -> Usage:
        """Waits until it ends; ends it and raises Failed when that takes longer than the limit."""
        deadline = self.begin + limit_s
        while not self._ended_within(LOOK_S):
            signals.check()
            if time.monotonic() > deadline:
                self._end()
                raise Failed(f"did not end within {limit_s:.0f} s and was ended")
        return self._reap()

    def succeed(self, limit_s: float) -> Usage:
        """The same, and raises Failed when its exit code is not 0."""
        usage = self.wait(limit_s)
        # Told to stop, or broken: an interrupt from a terminal reaches the process as well as us.
        signals.check()
        if usage.code != 0:
            raise Failed(f"ended with code {usage.code}: {self.last_words()}")
        return usage

    def stop(self, limit_s: float = 5.0) -> Usage:
        """Asks it to end, and waits for that."""
        signal.pidfd_send_signal(self.pidfd, signal.SIGTERM)
        if not self._ended_within(limit_s):
            self._end()
            raise Failed(f"did not end within {limit_s:.0f} s of SIGTERM")
        return self._reap()

    def expect(self, pattern: str, limit_s: float) -> re.Match[str]:
        """Waits until its standard error says this."""
        deadline = time.monotonic() + limit_s
        while True:
            ended = self._ended_within(0.005)
            found = re.search(pattern, self.err.read_text(errors="replace"))
            if found:
                return found
            signals.check()
            if ended or time.monotonic() > deadline:
                raise Failed(f"did not start: {self.last_words()}")

    def ended(self) -> bool:
        """Whether it has ended by now."""
        return self._ended_within(0)

    def last_words(self) -> str:
        """Its line that begins with `error`, else the last one that says something and is no hint."""
        for file in (self.err, self.out):
            lines = [line.strip() for line in file.read_text(errors="replace").splitlines()]
            lines = [line for line in lines if line and not line.startswith("hint:")]
            errors = (line for line in lines if line.lower().startswith("error"))
            if lines:
                return next(errors, lines[-1])[:200]
        return "no words"

    def _ended_within(self, seconds: float) -> bool:
        # A pidfd becomes readable when its process ends. select.poll() takes milliseconds.
        ready = select.poll()
        ready.register(self.pidfd, select.POLLIN)
        return bool(ready.poll(seconds * 1000))

    def _reap(self) -> Usage:
        wall_s = time.monotonic() - self.begin
        _, status, used = os.wait4(self.pid, 0)
        self.usage = Usage(
            code=os.waitstatus_to_exitcode(status),
            wall_s=wall_s,
            cpu_s=used.ru_utime + used.ru_stime,
            peak_bytes=used.ru_maxrss * 1024,
        )
        return self.usage

    def _end(self) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            signal.pidfd_send_signal(self.pidfd, number)
            if self._ended_within(GRACE_S):
                break
        self._reap()


def own_peak_bytes() -> int:
    """Peak memory of this program, which must not leak into what it measures."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def left_over() -> bool:
    """Whether anything that was started still runs. Processes that a tool left behind and that
    ended since are reaped on the way."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return True
