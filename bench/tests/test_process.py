"""Real processes: their accounts, their limits, their end."""

import os
import tempfile
import time
import unittest
from pathlib import Path

from sidebyside import process
from sidebyside.process import Failed, Process


class Processes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        process.prepare()
        process.GRACE_S = 0.2

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def start(self, *argv):
        return Process(list(argv), self.folder)

    def gone(self, pid):
        return not Path(f"/proc/{pid}").exists()

    def test_cpu_time_is_that_of_the_process(self):
        busy = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; times"
        with self.start("sh", "-c", busy) as started:
            usage = started.succeed(20)
        # `times` says it in the shell's own words, to 10 ms: "0m0.350s 0m0.010s".
        said = started.out.read_text().split()[:2]
        seconds = sum(60 * float(m) + float(s[:-1]) for m, s in (t.split("m") for t in said))
        self.assertAlmostEqual(usage.cpu_s, seconds, delta=0.03)

    def test_waiting_costs_no_cpu_time(self):
        with self.start("sleep", "0.2") as started:
            usage = started.succeed(5)
        self.assertGreaterEqual(usage.wall_s, 0.2)
        self.assertLess(usage.cpu_s, 0.05)

    def test_peak_memory_is_not_that_of_python(self):
        with self.start("sleep", "0") as started:
            usage = started.succeed(5)
        self.assertLess(usage.peak_bytes, process.own_peak_bytes() / 2)

    def test_words_of_an_earlier_process_are_not_its_own(self):
        for name in ("stdout", "stderr"):
            (self.folder / name).write_text("old")
        with self.start("sleep", "60") as started:
            self.assertEqual((started.out.read_text(), started.err.read_text()), ("", ""))
            self.assertFalse(started.ended())

    def test_one_that_hangs_is_ended(self):
        with self.start("sleep", "60") as started:
            with self.assertRaisesRegex(Failed, "did not end within"):
                started.wait(0.2)
        self.assertTrue(self.gone(started.pid))

    def test_one_that_ignores_sigterm_is_killed(self):
        deaf = "trap '' TERM; echo deaf >&2; while :; do sleep 0.05; done"
        with self.start("sh", "-c", deaf) as started:
            started.expect("deaf", 5)
            with self.assertRaisesRegex(Failed, "SIGTERM"):
                started.stop(0.1)
        self.assertTrue(self.gone(started.pid))

    def test_an_exception_ends_it(self):
        with self.assertRaises(ZeroDivisionError):
            with self.start("sleep", "60") as started:
                1 / 0
        self.assertTrue(self.gone(started.pid))
        self.assertFalse(process.left_over())

    def test_a_failure_is_told_in_its_own_words(self):
        with self.start("sh", "-c", "echo port taken >&2; exit 3") as started:
            with self.assertRaisesRegex(Failed, "code 3: port taken"):
                started.succeed(5)

    def test_of_many_words_those_of_the_error_are_told(self):
        for said, told in (
            ("error: no such flag\n\nFor more, try --help", "error: no such flag"),
            ("starting\nport taken\nhint: take another", "port taken"),
        ):
            with self.subTest(told):
                with self.start("sh", "-c", 'printf "%s\\n" "$0" >&2; exit 2', said) as started:
                    with self.assertRaisesRegex(Failed, f"code 2: {told}$"):
                        started.succeed(5)

    def test_its_home_is_its_own_folder(self):
        with self.start("sh", "-c", 'echo note >"$HOME/note"') as started:
            started.succeed(5)
        self.assertEqual((self.folder / "note").read_text(), "note\n")

    def test_one_that_cannot_be_started_is_a_failure(self):
        with self.start("/nonexistent/tool") as started:
            with self.assertRaisesRegex(Failed, "not found"):
                started.succeed(5)

    def test_a_signal_is_heeded_where_it_is_safe(self):
        with self.assertRaises(process.Stopped):
            with self.start("sleep", "60") as started:
                os.kill(os.getpid(), process.signal.SIGTERM)
                begin = time.monotonic()
                started.wait(30)
        process.signals.seen = None
        self.assertLess(time.monotonic() - begin, 15)
        self.assertTrue(self.gone(started.pid))


if __name__ == "__main__":
    unittest.main()
