"""Requests as the kernel stamps them, and how late they were."""

import socket
import unittest

from sidebyside import arrivals, tools
from sidebyside.loads import PUNCTUAL
from sidebyside.sections import how_late


class Taken(unittest.TestCase):
    def test_segments_with_a_payload_to_the_port_and_no_others(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            try:
                segments = arrivals.Segments(port)
            except PermissionError:
                self.skipTest("packet sockets take CAP_NET_RAW")
            with segments, socket.create_connection(("127.0.0.1", port)) as client:
                answering, _ = server.accept()
                with answering:
                    for _ in range(5):
                        client.sendall(b"GET")
                        answering.recv(3)
                        answering.sendall(b"OK")
                        client.recv(2)
                taken = segments.taken()
                self.assertEqual([own for own, _ in taken], [client.getsockname()[1]] * 5)
                stamps = [stamp for _, stamp in taken]
                self.assertEqual(stamps, sorted(stamps))
                self.assertEqual(segments.taken(), [])


class Late(unittest.TestCase):
    def test_of_one_schedule(self):
        # One each millisecond on two connections in turn, the third of them 0.4 ms late.
        stamps = [(7 + at % 2, 10**18 + at * 10**6 + 400_000 * (at == 2)) for at in range(5)]
        late = arrivals.lateness(stamps, 1e6, False)
        self.assertEqual([round(each, -3) for each in late], [0, 0, 0, 0, 400_000])

    def test_of_schedules_of_connections(self):
        # Two connections fire at the same time, as each has its own.
        stamps = [(own, at * 10**6) for at in range(5) for own in (7, 8)]
        self.assertEqual(arrivals.lateness(stamps, 1e6, True), [0] * 10)
        self.assertGreater(arrivals.lateness(stamps, 0.5e6, False)[-1], 0)
        self.assertEqual(arrivals.lateness([], 1e6, True), [])

    def test_quantiles(self):
        values = [float(value) for value in range(1, 101)]
        found = [arrivals.quantile(values, q) for q in (0.0, 0.5, 0.99, 1.0)]
        self.assertEqual(found, [1, 50, 99, 100])
        self.assertIsNone(arrivals.quantile([], 0.5))

    def test_who_has_schedules_of_connections_is_held_against_them(self):
        class Segments:
            def taken(self):
                return [(own, at * 100 * 10**6) for at in range(5) for own in range(50)]

        load = PUNCTUAL[0]
        self.assertEqual(load.rate, 500)
        for tool in (tools.WEIR, *tools.OTHERS):
            if tool.name not in ("weir", "wrk2", "h2load"):
                continue
            found = tools.Found(tool, None, "1", tool.name)
            on_time = how_late(found, load, Segments())[-1] == (1.0, 0)
            self.assertEqual(on_time, tool.name != "weir", tool.name)
        self.assertEqual(how_late(found, load, None), [])
