"""Tables and aims, from runs that are made up."""

import copy
import math
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from paired import preparation, studies, tables
from paired.studies import KERNEL, LOADS, PARAMETERS, PROXY, SHAPES

ROOT = Path(__file__).resolve().parent.parent.parent


def metric(half, estimate=0.0, **more):
    return {"n": 20, "estimate": estimate, "low": estimate - half, "high": estimate + half, **more}


def run(way, number, half, wall_s=60.0, load=LOADS[0], **more):
    return {"way": way, "round": number, "wall_s": wall_s, "measured_s": wall_s / 2, "blocks": 20,
            "blocks_used": 20, "steal": 0.0,
            "metrics": {name: metric(half) for name in load.metrics}, **more}


def in_slices(number, half=0.01, **more):
    kept = {"switches": 80, "restarts_in_parts": 0, "reconnects": 0, "connections_wanted": 100,
            "connections_opened": 100, "connections_open_at_end": 100}
    return run("slices", number, half, **kept | more)


def restarted(number, half=0.03, seconds=3, **more):
    trials = [{"start_s": 0.01, "stop_s": 0.002}]
    found = run(f"restarts {seconds} s", number, half, trial_s=seconds, trials=trials, **more)
    for each in found["metrics"].values():
        each["log_ratios"] = [half * (n - 9.5) for n in range(20)]
    return found


def prepared(shape="together", whole=0.5):
    proxies = [{"start_s": 0.1, "check_s": 0.01, "print_s": 0.01}] * 2
    return {"shape": shape, "arms": 2, "check_s": 0.01, "study_s": 0.01, "arms_s": 0.4,
            "prepared_s": whole, "proxies": proxies}


def document(runs, preparations=None):
    return {
        "started_at": "2020-01-01T00:00:00Z", "weir_version": "weir 1", "seed": 1, "seconds": 60,
        "slice": "100ms", "rate": 1000, "listen": "127.0.0.1",
        "machine": {"cpu": "C", "cpus": 2, "virtual": False, "kernel": "6.1",
                    "load_average": [0.0]},
        "cpus": {"proxy": "1", "generator": "0", "origin": "0"},
        "loads": {"closed": {"runs": runs, "failures": []}},
        "preparation": preparations and {"parameters": ["a", "b"], "kernel": [],
                                         "runs": preparations},
    }


def rounds(number=6):
    return [each(n) for n in range(number) for each in (in_slices, restarted)]


class Factors(unittest.TestCase):
    def test_three_times_the_width_is_nine_times_the_time(self):
        found = tables.factor(rounds(), "restarts 3 s", "rate")
        self.assertAlmostEqual(found.estimate, 9)
        self.assertAlmostEqual(found.low, 9)

    def test_rounds_without_both_intervals_do_not_count(self):
        runs = rounds()
        runs[1]["metrics"]["rate"]["low"] = None
        self.assertEqual(tables.factor(runs, "restarts 3 s", "rate").rounds, 5)

    def test_the_length_that_suits_restarts_best_decides(self):
        runs = rounds() + [restarted(n, 0.012, 10) for n in range(6)]
        row = tables.factor_row(LOADS[0], "rate", runs)
        self.assertEqual(row[2:], ["1.44 (1.44 to 1.44), restarts 10 s", "NOT reached"])
        self.assertEqual(tables.factor_row(LOADS[0], "rate", rounds())[3], "reached")

    def test_nothing_to_compare_is_said(self):
        row = tables.factor_row(LOADS[0], "rate", [in_slices(0)])
        self.assertEqual(row[2:], ["–", "no comparison"])

    def test_blocks_of_all_rounds_count_together(self):
        runs = rounds(2)
        for each in runs:
            if each["way"] != "slices":
                each["metrics"]["rate"] |= {"low": None, "high": None}
                each["metrics"]["rate"]["log_ratios"] = [-0.03, 0.03, 0.0]
        ways = tables.by_way(runs)
        factor = tables.pooled_factor(ways["slices"], ways["restarts 3 s"], "rate")
        self.assertAlmostEqual(factor, (0.03 / (0.01 / math.sqrt(2))) ** 2)


class Continuity(unittest.TestCase):
    def test_nothing_restarted_or_reconnected_in_any_round(self):
        row = tables.continuity_row(LOADS[0], [in_slices(0), in_slices(1)])
        self.assertEqual(row[3], "reached")
        self.assertIn("160 switches: 0 restarts, 0 reconnects, 200 of 200", row[2])

    def test_one_is_too_many(self):
        for wrong in ({"restarts_in_parts": 1}, {"reconnects": 1}, {"connections_opened": 101},
                      {"connections_open_at_end": 99}):
            row = tables.continuity_row(LOADS[0], [in_slices(0), in_slices(1, **wrong)])
            self.assertEqual(row[3], "NOT reached", wrong)


class Preparation(unittest.TestCase):
    def test_the_proxies_own_start_is_not_weirs(self):
        self.assertAlmostEqual(preparation.rest(prepared()), 0.3)

    def test_the_worst_must_be_within_the_aim(self):
        self.assertEqual(tables.prepared_verdict([0.2, 0.9]), "reached")
        self.assertEqual(tables.prepared_verdict([0.2, 1.1]), "undecided")
        self.assertEqual(tables.prepared_verdict([1.2, 1.1]), "NOT reached")


class Whole(unittest.TestCase):
    def test_every_part_is_there(self):
        text = tables.markdown(document(rounds(), [prepared()]))
        for words in ("## Closed loop", "### Completed rate", "### CPU time per request",
                      "## Preparation: 2 parameters", "## Aims", "9.00 (9.00 to 9.00)",
                      "| slices ", "time for ±1 %"):
            self.assertIn(words, text)
        self.assertNotIn("compare with care", text)

    def test_of_runs_that_failed_as_well(self):
        text = tables.markdown(document([]))
        self.assertIn("Nothing was measured.", text)
        lone = copy.deepcopy(rounds(1)[1:])
        self.assertIn("| restarts 3 s", tables.markdown(document(lone)))

    def test_why_something_was_left_out_is_said(self):
        odd = in_slices(0, blocks_used=17, invalid=["proxy-steal: share 0.45"])
        odd["metrics"]["rate"] = {"n": 0, "estimate": None, "low": None, "high": None,
                                  "because": "nothing measured"}
        text = tables.markdown(document([odd]))
        self.assertIn("- slices: round 0, 3 of 20 blocks not used: proxy-steal: share 0.45", text)
        self.assertIn("- slices: round 0, completed rate: nothing measured", text)

    def test_another_network_is_said(self):
        away = {**document(rounds()), "listen": "10.0.0.2"}
        self.assertIn("compare with care", tables.markdown(away))


class Studies(unittest.TestCase):
    def test_there_are_twenty_with_and_without_the_kernels(self):
        self.assertGreaterEqual(len(PROXY), PARAMETERS)
        self.assertGreaterEqual(len(KERNEL), PARAMETERS // 2)

    def test_levels_with_spaces_are_one_level(self):
        self.assertEqual(studies.settings({"a": "1 2", "b": 3}), '{a: "1 2", b: 3}')

    def test_weir_takes_them(self):
        target = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
        weir = Path(os.environ.get("WEIR") or target / "release" / "weir")
        if not os.access(weir, os.X_OK):
            self.skipTest(f"there is no {weir}")
        levels = dict(list(PROXY.items())[:PARAMETERS])
        texts = [studies.twenty(shape, levels) for shape in SHAPES]
        texts += [studies.same_twice(load, 10, 500, slice_, 4)
                  for load in LOADS for slice_ in ("100ms", "auto")]
        for text in texts:
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder, "study.yaml")
                file.write_text(text)
                done = subprocess.run([str(weir), "run", "--check", str(file)], text=True,
                                      capture_output=True, timeout=60)
                self.assertEqual(done.returncode, 0, f"{text}\n{done.stderr}")


if __name__ == "__main__":
    unittest.main()
