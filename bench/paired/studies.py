"""The studies that are run, as text: two equal arms under a load, and twenty parameters at once."""

from __future__ import annotations

from dataclasses import dataclass

CONNECTIONS = 50
TIMEOUT_S = 2
# nginx closes a connection after so many requests (1000 by default), which is its own doing and
# would look as if a switch had cost it. One worker, as in the ready-made `same-twice`.
BASE = {"worker_processes": 1, "keepalive_requests": 10_000_000}


@dataclass(frozen=True)
class Load:
    """What both ways put on the arms, and what is compared under it."""

    name: str
    title: str
    metrics: tuple[str, ...]
    """As `weir report --format json` calls them; the first is what progress tells of."""
    open: bool = False


LOADS = (
    Load("closed", "Closed loop, as many requests as the proxy answers",
         ("rate", "cpu_per_request")),
    Load("open", "Open loop", ("response_p50", "response_p99", "cpu_per_request"), open=True),
)


def same_twice(load: Load, seconds: float, rate: int | None, slice_: str, instances: int,
               seed: int = 1) -> str:
    """A/A: the stock reverse proxy and the same once more, so the true ratio is 1."""
    arrivals = f"rate: {rate}" if load.open else "closed: true"
    return f"""weir: 1
name: compare-{load.name}
question: How wide is the interval around no difference at all?
proxy:
  kind: nginx
  role: reverse-proxy
  stock: debian
  settings: {settings(BASE)}
origin: {{size: 1KiB}}
loads:
  - {{name: {load.name}, {arrivals}, connections: {CONNECTIONS}, duration: {milliseconds(seconds)},
     timeout: {TIMEOUT_S}s}}
a/a: true
# As what starts anew is connected.
network: {{kind: loopback}}
blocks: {{slice: {slice_}, instances: {instances}, at-least: 6, seed: {seed}}}
"""


def settings(levels: dict[str, object]) -> str:
    """A mapping in flow style; strings are quoted because some have spaces."""
    def spelled(level: object) -> str:
        return f'"{level}"' if isinstance(level, str) and " " in level else str(level)
    return "{" + ", ".join(f"{name}: {spelled(level)}" for name, level in levels.items()) + "}"


def milliseconds(seconds: float) -> str:
    return f"{round(1000 * seconds)}ms"


# --- twenty parameters ---

PARAMETERS = 20
# Levels that differ from the stock and need nothing else of the machine. Kernel parameters come
# first and are taken as far as this weir's catalog has them: half of the twenty at most.
KERNEL = {
    "net.core.somaxconn": 8192,
    "net.ipv4.ip_local_port_range": "20000 60000",
    "net.ipv4.tcp_max_syn_backlog": 4096,
    "net.ipv4.tcp_tw_reuse": 1,
    "net.ipv4.tcp_fin_timeout": 30,
    "net.ipv4.tcp_syncookies": 0,
    "net.ipv4.tcp_slow_start_after_idle": 0,
    "net.ipv4.tcp_keepalive_time": 600,
    "net.ipv4.tcp_notsent_lowat": 131072,
    "net.ipv4.tcp_fastopen": 3,
    "net.ipv4.tcp_rmem": "4096 131072 4194304",
    "net.ipv4.tcp_wmem": "4096 65536 4194304",
}
PROXY = {
    "worker_processes": 2,
    "worker_connections": 1000,
    "worker_rlimit_nofile": 4096,
    "multi_accept": "on",
    "reuseport": "on",
    "backlog": 1024,
    "keepalive_requests": 100000,
    "keepalive_timeout": "60s",
    "client_header_timeout": "30s",
    "origin_keepalive": 32,
    "origin_keepalive_requests": 10000,
    "sendfile": "off",
    "tcp_nopush": "off",
    "tcp_nodelay": "off",
    "gzip_comp_level": 2,
    "gzip_min_length": 256,
    "access_log": "off",
    "proxy_buffering": "off",
    "ssl_buffer_size": "4k",
    "ssl_session_timeout": "600s",
    "ssl_session_tickets": "off",
    "ssl_prefer_server_ciphers": "off",
}


@dataclass(frozen=True)
class Shape:
    """How a study has its twenty parameters."""

    name: str
    title: str
    arms: int
    """Proxies that are started."""
    duration: str
    """As short as a study of that many arms can be."""


SHAPES = (
    Shape("together", "all in one arm, and the baseline", 2, "1s"),
    Shape("each", "an arm for each, and the baseline", 1 + PARAMETERS, "4s"),
)


def twenty(shape: Shape, levels: dict[str, object]) -> str:
    """A study of these parameters; its load is as small as can be, since nobody looks at it."""
    if shape.name == "together":
        compared = f"arms:\n  - {{name: all, settings: {settings(levels)}}}\n"
    else:
        each = (f"  - {{name: arm-{number}, settings: {settings({name: level})}}}\n"
                for number, (name, level) in enumerate(levels.items(), 1))
        compared = "arms:\n" + "".join(each)
    return f"""weir: 1
name: compare-preparation
question: How long does it take until the first slice?
proxy: {{kind: nginx, role: reverse-proxy, stock: debian, settings: {{worker_processes: 1}}}}
loads:
  - {{name: closed, closed: true, connections: 4, duration: {shape.duration}}}
a/a: false
blocks: {{slice: 10ms, instances: 1, at-least: 6}}
{compared}"""
