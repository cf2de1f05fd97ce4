"""When requests reach the server: stamped by the kernel on the loopback device, so that neither a tool's own
word nor the server's wake-ups are in it.

A packet socket takes every TCP segment with a payload to the server's port; a filter in the kernel keeps all
others out. What it takes is left in its buffer until the run is over: nothing runs beside the run.
"""

from __future__ import annotations

import ctypes
import socket
import struct

ETH_P_IP = 0x0800
SO_ATTACH_FILTER = 26
SO_RCVBUFFORCE = 33
SO_TIMESTAMPNS = 35
# The kernel counts more than a kilobyte for each segment.
BUFFER_BYTES = 512 * 1024 * 1024
# Link-layer, IPv4 and the first bytes of the TCP header.
KEPT_BYTES = 64


class Segments:
    """Segments with a payload to this port, from now on. A context: at its end it takes no more."""

    def __init__(self, port: int):
        """Raises PermissionError without CAP_NET_RAW."""
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_IP))
        code = b"".join(struct.pack("HBBI", *instruction) for instruction in program(port))
        self.code = ctypes.create_string_buffer(code)
        filtered = struct.pack("HL", len(code) // 8, ctypes.addressof(self.code))
        self.socket.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, filtered)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.socket.bind(("lo", ETH_P_IP))
        self.socket.setblocking(False)

    def __enter__(self) -> Segments:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def taken(self) -> list[tuple[int, int]]:
        """(the connection's own port, nanoseconds), in order of time."""
        found = []
        while True:
            try:
                data, notes, _, _ = self.socket.recvmsg(KEPT_BYTES, 64)
            except BlockingIOError:
                return sorted(found, key=lambda segment: segment[1])
            stamps = [note for level, kind, note in notes
                      if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS)]
            if stamps:
                seconds, ns = struct.unpack("ll", stamps[0][:16])
                own_port, = struct.unpack_from("!H", data, 34)
                found.append((own_port, seconds * 10**9 + ns))


def program(port: int) -> list[tuple[int, int, int, int]]:
    """Classic BPF (Documentation/networking/filter.rst): IPv4 without options, TCP, to the port, a payload,
    on its way in (each segment passes loopback's packet sockets out and in)."""
    packet_type, outgoing = 0xFFFFF000 + 4, 4
    return [
        (0x28, 0, 0, packet_type), (0x15, 14, 0, outgoing),
        (0x30, 0, 0, 14), (0x15, 0, 12, 0x45),
        (0x30, 0, 0, 23), (0x15, 0, 10, socket.IPPROTO_TCP),
        (0x28, 0, 0, 36), (0x15, 0, 8, port),
        # The length of the packet without the IP header is more than the TCP header's.
        (0x30, 0, 0, 46), (0x54, 0, 0, 0xF0), (0x74, 0, 0, 2), (0x07, 0, 0, 0),
        (0x28, 0, 0, 16), (0x14, 0, 0, 20), (0x2D, 0, 1, 0),
        (0x06, 0, 0, KEPT_BYTES), (0x06, 0, 0, 0),
    ]


def lateness(segments: list[tuple[int, int]], gap_ns: float, own_schedules: bool) -> list[float]:
    """How much later than the most punctual one each request came, ascending, in nanoseconds.

    The schedule is even: `gap_ns` between two requests, of all or, where connections have schedules of their
    own, of one connection. When it began nobody knows; the most punctual request was on time.
    """
    lines: dict[int, list[int]] = {}
    for own_port, stamp in segments:
        lines.setdefault(own_port if own_schedules else 0, []).append(stamp)
    late = []
    for stamps in lines.values():
        behind = [stamp - stamps[0] - at * gap_ns for at, stamp in enumerate(stamps)]
        late += [each - min(behind) for each in behind]
    return sorted(late)


def quantile(ascending: list[float], wanted: float) -> float | None:
    """The smallest value that at least this share is not above."""
    if not ascending:
        return None
    return ascending[max(0, -int(-wanted * len(ascending) // 1) - 1)]
