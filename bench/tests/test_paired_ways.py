"""Both ways: what is read from weir's records; order, bounds and care of restarts."""

import math
import os
import random
import tempfile
import unittest
import unittest.mock
from pathlib import Path

from paired import restarts, slices
from paired.restarts import Cpus
from paired.studies import LOADS, Load
from sidebyside import process
from sidebyside.process import Failed

WRITTEN = """
daemon off;
error_log logs/error.log;
pid nginx.pid;
events { worker_connections 64; }
http {
    access_log off;
    client_body_temp_path temp/client_body;
    proxy_temp_path temp/proxy;
    fastcgi_temp_path temp/fastcgi;
    uwsgi_temp_path temp/uwsgi;
    scgi_temp_path temp/scgi;
    upstream origin {
        server 127.0.0.1:42521;
    }
    server {
        listen 127.0.0.1:27630 backlog=1024 reuseport;
        location / { proxy_pass http://origin; }
    }
}
"""


def proxy(arm, pid):
    return {"record": "proxy", "arm": arm, "pid": pid}


def trial(reconnects=0):
    cut = {"measured_ns": 80_000_000, "reconnects": reconnects}
    return {"record": "trial", "slices": [cut, dict(cut, reconnects=0)]}


def part(opened=50):
    asking = {"wanted": 50, "opened": opened, "open_at_end": 50}
    return {"record": "part", "arms": [{"asking": asking}, {"asking": asking}]}


class Continuity(unittest.TestCase):
    starts = [proxy("a", 1), proxy("b", 2)]

    def test_instances_that_are_renewed_between_parts_are_no_restarts(self):
        records = [*self.starts, trial(), trial(), part(), proxy("a", 3), proxy("b", 4), trial(),
                   trial(), part()]
        found = slices.continuity(records)
        self.assertEqual((found["parts"], found["masters"]), (2, 4))
        self.assertEqual(found["restarts_in_parts"], 0)
        self.assertEqual(found["switches"], 6)
        self.assertEqual((found["connections_wanted"], found["connections_opened"]), (200, 200))
        self.assertAlmostEqual(found["measured_s"], 0.64)

    def test_a_proxy_that_is_started_again_within_a_part_is(self):
        found = slices.continuity([*self.starts, trial(), proxy("b", 9), trial(), part()])
        self.assertEqual(found["restarts_in_parts"], 1)

    def test_reconnects_are_counted(self):
        found = slices.continuity([*self.starts, trial(3), trial(1), part(52)])
        self.assertEqual((found["reconnects"], found["connections_opened"]), (4, 104))


class Compared(unittest.TestCase):
    def findings(self, **changes):
        comparison = {"metric": "rate", "n": 9, "merged": 1, "ratio": 1.1, "interval": [0.9, 1.2],
                      "confidence": 0.95, "minimum_detectable": 0.2, "because": {"basis": "contains_one"},
                      **changes}
        other = dict(comparison, metric="received_bytes")
        reason = {"reason": {"validity": "INVALID", "rule": "proxy-steal", "share": 0.45}}
        return {"loads": [{"comparisons": [comparison, other], "blocks": 9, "blocks_used": 8,
                           "slice_ns": 100_000_000, "validity": "VALID", "reasons": [reason]}]}

    def test_ratios_become_logs(self):
        found = slices.compared(self.findings(), LOADS[0])
        self.assertEqual(list(found["metrics"]), ["rate"])
        rate = found["metrics"]["rate"]
        self.assertAlmostEqual(rate["low"], math.log(0.9))
        self.assertAlmostEqual(rate["estimate"], math.log(1.1))
        self.assertEqual(found["invalid"], ["proxy-steal: share 0.45"])

    def test_what_was_not_comparable_stays_unknown(self):
        for basis, because in [("nothing_measured", "nothing measured"),
                               ({"no_valid_block": {"blocks": 9}}, "no valid block")]:
            changes = {"ratio": None, "interval": [None, None], "because": {"basis": basis}}
            rate = slices.compared(self.findings(**changes), LOADS[0])["metrics"]["rate"]
            self.assertIsNone(rate["low"])
            self.assertEqual(rate["because"], because)


class Configuration(unittest.TestCase):
    def test_only_ports_change(self):
        text = restarts.configure(WRITTEN, 1234, "127.0.0.1:99")
        self.assertIn("listen 127.0.0.1:1234 backlog=1024 reuseport;", text)
        self.assertIn("server 127.0.0.1:99;", text)
        undone = text.replace(":1234", ":27630").replace(":99;", ":42521;")
        self.assertEqual(undone, WRITTEN)

    def test_another_network_becomes_loopback(self):
        text = restarts.configure(WRITTEN.replace("127.0.0.1", "10.9.0.2"), 1, "127.0.0.1:2")
        self.assertNotIn("10.9.0.2", text)
        self.assertEqual(restarts.listen_address(WRITTEN), "127.0.0.1")

    def test_what_cannot_be_read_is_refused(self):
        with self.assertRaises(Failed):
            restarts.configure(WRITTEN.replace("listen", "lauscht"), 1, "127.0.0.1:2")


def said(**changes):
    return {
        "rates": {"completed": 2000.0},
        "counts": {"completed": 2000, "completed_whole": 4000},
        "response_time": {"quantiles": [[0.5, 100], [0.99, 900]]},
        "phases": {"sustain": 1.0},
        "statuses": [{"status": 200, "count": 4000}],
        "validity": [{"validity": "SUSPECT", "rule": "steal", "share": 0.02}],
        **changes,
    }


class Figures(unittest.TestCase):
    def test_the_cpu_time_is_that_of_all_requests(self):
        found = restarts.figures(said(), 8_000_000)
        self.assertEqual(found["cpu_per_request"], 2000)
        self.assertEqual((found["response_p50"], found["response_p99"]), (100, 900))
        self.assertEqual(found["invalid"], [])

    def test_errors_are_no_answers(self):
        with self.assertRaisesRegex(Failed, "502"):
            restarts.figures(said(statuses=[{"status": 502, "count": 1}]), 1)
        with self.assertRaises(Failed):
            restarts.figures(said(counts={"completed": 0, "completed_whole": 0}), 1)


class Clock:
    """Time that passes only when a trial says so."""

    now = 0.0

    def monotonic(self):
        return self.now


class Blocks(unittest.TestCase):
    load = Load("closed", "", ("rate",))

    def setUp(self):
        self.clock, self.ran = Clock(), []
        patch = unittest.mock.patch.object(restarts, "time", self.clock)
        patch.start()
        self.addCleanup(patch.stop)

    def trial(self, arm, seconds):
        self.clock.now += seconds + 1
        self.ran.append(arm)
        return {"rate": {"A": 100.0, "B": 110.0}[arm], "sustain_s": seconds, "invalid": []}

    def measure(self, seconds, budget_s, trial=None, seed=1):
        return restarts.measure(self.load, seconds, budget_s, random.Random(seed),
                                trial or self.trial)

    def test_the_budget_is_spent_to_the_nearest_block(self):
        # A block of two trials takes 4, 8 or 22 s.
        for seconds, blocks in ((1, 15), (3, 8), (10, 3)):
            self.clock.now = 0.0
            found = self.measure(seconds, 60)
            self.assertEqual(found["blocks"], blocks, seconds)
            self.assertEqual(found["wall_s"], blocks * 2 * (seconds + 1))

    def test_both_arms_are_in_every_block_in_an_order_drawn_anew(self):
        self.measure(1, 60)
        pairs = [tuple(self.ran[i:i + 2]) for i in range(0, len(self.ran), 2)]
        self.assertEqual(set(pairs), {("A", "B"), ("B", "A")})

    def test_the_ratio_is_b_over_a_in_either_order(self):
        rate = self.measure(1, 60)["metrics"]["rate"]
        self.assertTrue(all(abs(d - math.log(1.1)) < 1e-12 for d in rate["log_ratios"]))

    def test_a_block_with_an_invalid_trial_is_not_used(self):
        def trial(arm, seconds):
            words = ["rule: seen"] if len(self.ran) == 3 else []
            return {**self.trial(arm, seconds), "invalid": words}
        found = self.measure(1, 60, trial)
        self.assertEqual((found["blocks"], found["blocks_used"]), (15, 14))
        self.assertEqual(found["invalid"], ["rule: seen"])

    def test_failures_cost_their_time_and_end_the_way(self):
        def broken(_arm, seconds):
            self.clock.now += seconds
            raise Failed("broken")
        found = self.measure(1, 60, broken)
        self.assertEqual((found["blocks"], found["failures"]), (0, ["broken"] * restarts.PATIENCE))
        self.assertEqual(found["metrics"]["rate"]["n"], 0)


class RealNginx(unittest.TestCase):
    def test_it_answers_uses_cpu_time_and_goes(self):
        try:
            nginx = restarts.nginx_program()
        except Failed as absent:
            self.skipTest(str(absent))
        process.prepare()
        cpu = str(min(os.sched_getaffinity(0)))
        with tempfile.TemporaryDirectory() as name:
            arm = restarts.Arm(nginx, WRITTEN, "127.0.0.1:9", Cpus(cpu, cpu, cpu), Path(name))
            for _ in range(2):
                running, start_s = arm.start(30)
                with running:
                    self.assertGreater(start_s, 0)
                    before = restarts.cpu_ns(running.pid)
                    self.assertTrue(all(arm._answers() for _ in range(50)))
                    self.assertGreater(restarts.cpu_ns(running.pid), before)
                    running.stop()
                self.assertFalse(arm._answers())


if __name__ == "__main__":
    unittest.main()
