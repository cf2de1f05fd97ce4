"""What all generators are asked side by side, and what weir aims for: data that the measuring and
the tables share."""

from __future__ import annotations

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB
CONNECTIONS = 50
# Requests per second; a whole number for each connection, because some tools want it that way.
OPEN_RATE = 2000
# weir with fixed bytes out, and whatever comes in taken for the answer.
FLOOR = "weir (floor)"


@dataclass(frozen=True)
class Aim:
    """weir's CPU time per request is to be at most this share of that tool's."""

    share: float
    tool: str


@dataclass(frozen=True)
class Load:
    """A section in which every tool takes part that can."""

    name: str
    title: str
    question: str
    """The command line that asks it: an attribute of tools.Tool."""
    content: int = KIB
    """Bytes of each response's content."""
    tls: bool = False
    nginx: bool = False
    """Whether nginx is asked; with TLS it is in any case."""
    rate: int | None = None
    """Requests per second; None for as many as there can be."""
    seconds: int = 1
    """How long a run takes unless one is told."""
    stamped: bool = False
    """The kernel stamps its requests, and how late they came is kept."""
    aim: Aim | None = None
    variants: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """weir's rows besides itself: label, and the arguments that make the difference."""

    @property
    def fresh(self) -> bool:
        """Whether each request has a connection of its own."""
        return self.question in ("per_request", "reset")


LOADS = (
    Load("closed", "Closed loop: keep-alive, 1 KiB", "keep_alive", seconds=2,
         aim=Aim(0.95, "shb"), variants=(
             ("weir (epoll)", ("--io", "epoll")),
             ("weir (uring)", ("--io", "uring")),
             (FLOOR, ("--floor",)),
         )),
    Load("connect", "A connection for each request, 1 KiB", "per_request", aim=Aim(0.72, "wrk")),
    Load("reset", "A connection for each request, closed by a reset, 1 KiB", "reset",
         aim=Aim(0.95, "gcannon")),
    Load("handshake", "A TLS handshake for each request, none resumed, no content", "per_request",
         content=0, tls=True, aim=Aim(0.75, "wrk")),
    Load("https", "HTTPS: keep-alive, 1 KiB", "keep_alive", tls=True, aim=Aim(1.0, "shb")),
    Load("large", "Large content: keep-alive, 1 MiB", "keep_alive", content=MIB,
         aim=Aim(1.0, "shb")),
    Load("open", f"Constant rate: {OPEN_RATE:,}/s, keep-alive, 1 KiB", "open",
         rate=OPEN_RATE, seconds=3, aim=Aim(0.8, "h2load")),
)

# Punctuality and its price, requests per second: the same tools at every rate.
PUNCTUAL = tuple(
    Load("punctual", "", "open", rate=rate, seconds=3, stamped=True) for rate in (500, 2_000, 20_000)
)
PUNCTUAL_TOOLS = ("wrk2", "h2load")
# weir that sleeps until a request is due.
ASLEEP = "weir (asleep)"

# weir alone, against its own promises.
PROMISES = ("rate", "memory", "hold", "origin")
RATE_HELD = 10_000
# Requests that weir's origin server is to answer in the CPU time in which nginx answers one.
ORIGIN_AIM = 1.5
# Connections that are held: the price of one is the difference over these. As many descriptors
# must be allowed, and a few more.
HELD = (1_000, 11_000)

SECTIONS = (*(load.name for load in LOADS), "punctual", *PROMISES)
