"""Who takes part, in which order, and who is left out: with runs that are made up."""

import resource
import unittest
import unittest.mock
from dataclasses import dataclass, field, replace
from pathlib import Path

from sidebyside import sections
from sidebyside.loads import HELD, LOADS, Load
from sidebyside.process import Failed, Stopped
from sidebyside.tools import OTHERS, WEIR, Found

CLOSED = next(load for load in LOADS if load.name == "closed")
CONNECT = next(load for load in LOADS if load.name == "connect")
RESET = next(load for load in LOADS if load.name == "reset")
HANDSHAKE = next(load for load in LOADS if load.name == "handshake")
HOLD = Load("hold", "", "hold")

weir = Found(WEIR, Path("weir"), "1", "weir")
others = [Found(tool, Path(tool.name), "1", tool.name) for tool in OTHERS]


@dataclass
class Played:
    """A bench whose runs do what they are told to, and are noted."""

    weir: Found = weir
    seed: int = 1
    broken: dict = field(default_factory=dict)
    """By label: the numbers of its runs that fail."""
    ends_at: int | None = None
    ran: list = field(default_factory=list)

    def run(self, found, load, seconds, connections=50):
        self.ran.append(found.label)
        if self.ends_at == len(self.ran):
            raise Stopped("SIGINT")
        if self.ran.count(found.label) in self.broken.get(found.label, ()):
            raise Failed("broken")
        return {"tool": found.label, "cpu_s": 1.0, "requests": 1, "connections": connections,
                "peak_bytes": 1}


def setUpModule():
    silent = unittest.mock.patch.object(sections, "say", lambda words: None)
    silent.start()
    unittest.addModuleCleanup(silent.stop)


class TakingPart(unittest.TestCase):
    def names(self, load):
        return [found.label for found in sections.taking_part(weir, others, load)]

    def test_weir_is_there_twice_everywhere(self):
        for load in LOADS:
            self.assertEqual(self.names(load)[:2], ["weir", "weir (again)"])

    def test_weir_by_other_means_is_where_its_section_says(self):
        for load in LOADS:
            self.assertEqual("weir (floor)" in self.names(load), load is CLOSED, load.name)
        floor = next(found for found in sections.taking_part(weir, [], CLOSED)
                     if found.label == "weir (floor)")
        self.assertEqual(floor.command("load {url}", url="x")[1:], ["load", "x", "--floor"])

    def test_only_tools_that_can(self):
        self.assertIn("gcannon", self.names(RESET))
        self.assertEqual([name for name in self.names(RESET) if not name.startswith("weir")],
                         ["gcannon"])
        self.assertNotIn("gcannon", self.names(CONNECT))
        self.assertNotIn("gcannon", self.names(HANDSHAKE))
        self.assertNotIn("h2load", self.names(CONNECT))
        self.assertNotIn("wrk2", self.names(CLOSED))


class SideBySide(unittest.TestCase):
    few = [found for found in others if found.label in ("wrk", "ab", "shb")]

    def measure(self, bench, rounds=6, trial=True):
        return sections.side_by_side(bench, self.few, CONNECT, rounds, 1, trial)

    def test_the_order_is_drawn_anew_in_each_round_and_again_by_its_seed(self):
        bench = Played()
        self.measure(bench)
        orders = [tuple(bench.ran[at:at + 5]) for at in range(5, 35, 5)]
        self.assertGreater(len(set(orders)), 1)
        for order in orders:
            self.assertEqual(sorted(order), sorted(orders[0]))
        same, other = Played(), Played(seed=2)
        self.measure(same)
        self.measure(other)
        self.assertEqual(same.ran, bench.ran)
        self.assertNotEqual(other.ran, bench.ran)

    def test_one_that_fails_its_trial_is_left_out_with_its_words(self):
        bench = Played(broken={"wrk": {1}})
        found = self.measure(bench)
        self.assertEqual(bench.ran.count("wrk"), 1)
        self.assertEqual(found["failures"], ["wrk: left out, broken"])

    def test_one_that_fails_twice_in_a_row_is_left_out_from_there(self):
        bench = Played(broken={"wrk": {3, 5, 6}})
        found = self.measure(bench)
        self.assertEqual(bench.ran.count("wrk"), 6)
        self.assertEqual(sum(run["tool"] == "wrk" for run in found["runs"]), 2)

    def test_without_a_trial_the_first_round_is_the_first_run(self):
        bench = Played()
        self.measure(bench, rounds=1, trial=False)
        self.assertEqual(len(bench.ran), 5)

    def test_what_was_measured_before_an_interrupt_is_kept(self):
        found = self.measure(Played(ends_at=12))
        self.assertTrue(found["stopped"])
        self.assertEqual(len(found["runs"]), 6)


class Punctual(unittest.TestCase):
    def test_the_same_tools_take_part_at_every_rate_in_every_round(self):
        bench = Played(broken={"h2load": {4, 5, 7}})
        found = sections.punctual(bench, others, 3, 1)
        self.assertEqual(set(bench.ran), {"weir", "weir (asleep)", "wrk2", "h2load"})
        # A trial of each at each rate, then the rounds.
        self.assertEqual(bench.ran.count("weir"), 3 + 3 * 3)
        orders = [bench.ran[at:at + 12] for at in (12, 24)]
        self.assertNotEqual(orders[0], orders[1])
        # It failed at single rates, and never twice in a row at one.
        self.assertEqual(bench.ran.count("h2load"), 12)
        self.assertEqual(len(found["failures"]), 3)


class Promises(unittest.TestCase):
    def test_a_tool_that_failed_once_is_not_asked_again(self):
        bench = Played(broken={"weir": {1}})
        found = sections.rate_held(bench, 1)
        self.assertEqual(bench.ran, ["weir"])
        self.assertEqual(found["failures"], ["weir: left out, broken"])

    def test_connections_are_held_by_those_who_can(self):
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        bench = Played()
        found = sections.hold(bench, others, 1)
        self.assertEqual(resource.getrlimit(resource.RLIMIT_NOFILE), before)
        if before[1] != resource.RLIM_INFINITY and before[1] < HELD[-1] + 100:
            self.assertIn("are allowed", found["failures"][0])
            return
        self.assertEqual(set(bench.ran), {"weir", "tcpkali"})
        held = [run["connections_intended"] for run in found["runs"] if run["tool"] == "weir"]
        self.assertEqual(held, list(HELD))


    def test_both_servers_are_asked_in_each_round_in_an_order_that_is_drawn(self):
        bench = Played()
        found = sections.origin(bench, 12, 1)
        rounds = [tuple(bench.ran[at:at + 2]) for at in range(0, 24, 2)]
        self.assertEqual(set(rounds), {("weir origin", "nginx"), ("nginx", "weir origin")})
        self.assertEqual([run["round"] for run in found["runs"]],
                         [number for number in range(1, 13) for _ in range(2)])


class Check(unittest.TestCase):
    class Silent:
        def last_words(self):
            return "no words"

    def check(self, load, requests, accepted):
        sections.check(load, requests, accepted, 50, self.Silent())

    def test_a_tool_that_sent_nothing_failed(self):
        with self.assertRaisesRegex(Failed, "sent nothing: no words"):
            self.check(CLOSED, 0, 50)

    def test_one_that_keeps_connections_where_each_request_has_its_own_failed(self):
        self.check(CONNECT, 1000, 990)
        self.check(CLOSED, 1000, 50)
        for load in (CONNECT, RESET):
            with self.assertRaisesRegex(Failed, "1000 requests on only 50"):
                self.check(load, 1000, 50)

    def test_held_connections_need_no_requests_but_must_all_be_there(self):
        self.check(HOLD, 0, 50)
        with self.assertRaisesRegex(Failed, "49 connections of 50"):
            self.check(HOLD, 0, 49)

    def test_a_tool_without_words_for_a_load_fails_before_anything_is_started(self):
        bench = sections.Bench(weir, roles=None, seed=1)
        gcannon = next(found for found in others if found.label == "gcannon")
        with self.assertRaisesRegex(Failed, "no words"):
            bench.run(gcannon, HANDSHAKE, 1)
        with self.assertRaisesRegex(Failed, "TLS needs nginx"):
            sections.Bench(weir, sections.Roles(0, 0), 1).run(replace(weir), HANDSHAKE, 1)


if __name__ == "__main__":
    unittest.main()
