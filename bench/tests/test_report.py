"""Tables of made-up runs: the figures in them are known."""

import string
import unittest

from sidebyside import report, tools


def run(tool, number, cpu_us, **more):
    """10,000 requests in 2 s at this price each."""
    return {
        "tool": tool,
        "round": number,
        "seconds": 2,
        "rate_intended": 5000,
        "requests": 10_000,
        "wall_s": 2.0,
        "cpu_s": cpu_us * 10_000 / 1e6,
        "origin_cpu_s": 1.0,
        "peak_bytes": 3 * 2**20,
        "steal": 0.0,
        "said": None,
        **more,
    }


def document(**sections):
    return {
        "started_at": "2026-01-01T00:00:00Z",
        "machine": {
            "cpu": "Some CPU",
            "cpus": 2,
            "virtual": True,
            "kernel": "6.18",
            "generator_cpu": 0,
            "origin_cpu": 1,
            "same_core": False,
            "load_average": [0.1, 0.1, 0.1],
        },
        "seed": 1,
        "connections": 50,
        "open_rate": 2000,
        "versions": {"weir": "0.1.0", "wrk": "4.1.0"},
        "absent": [],
        "sections": {
            name: {"runs": runs, "failures": []} for name, runs in sections.items()
        },
    }


def row(text, name):
    """The cells of the row of that name."""
    lines = [line for line in text.splitlines() if line.startswith(f"| {name} ")]
    assert len(lines) == 1, (name, text)
    return [cell.strip() for cell in lines[0].strip("|").split("|")]


class Closed(unittest.TestCase):
    def test_ratios_are_of_rounds_and_not_of_medians(self):
        # The machine is ten times slower in odd rounds; wrk costs 1.5 times as much in all.
        prices = [(number, 50 if number % 2 else 5) for number in range(1, 9)]
        runs = [run("weir", n, price) for n, price in prices]
        runs += [run("wrk", n, 1.5 * price) for n, price in prices]
        cells = row(report.markdown(document(closed=runs)), "wrk")
        self.assertEqual(cells[3], "1.50 (1.50 to 1.50)")
        self.assertEqual(cells[4:], ["5,000", "21%, 50%", "3.0 MiB"])

    def test_a_round_in_which_one_of_both_failed_does_not_count(self):
        runs = [run("weir", n, 5) for n in range(1, 9)]
        runs += [run("wrk", n, 10) for n in range(2, 8)] + [run("wrk", 9, 99)]
        pairs = report.against_baseline(runs, "wrk")
        self.assertEqual(pairs.rounds, 6)
        self.assertAlmostEqual(pairs.estimate, 2)

    def test_too_few_rounds_give_no_interval(self):
        runs = [run(tool, n, 5) for n in range(1, 6) for tool in ("weir", "wrk")]
        text = report.markdown(document(closed=runs))
        self.assertEqual(row(text, "wrk")[3], "1.00 (no interval)")
        self.assertIn("takes 6 rounds", text)

    def test_a_section_without_runs_says_so(self):
        text = report.markdown(document(closed=[]))
        self.assertIn("Nothing was measured.", text)


class Promises(unittest.TestCase):
    def rate(self, offered):
        said = {"rates": {"intended": 5000.0, "offered": offered}, "dispatch_lag": [[0.5, 7000]]}
        return report.markdown(document(rate=[run("weir", 1, 5, said=said)]))

    def test_a_rate_within_a_thousandth_is_held(self):
        self.assertEqual(row(self.rate(4995.1), "5,000/s, 2 s")[3], "yes")
        self.assertEqual(row(self.rate(4994.9), "5,000/s, 2 s")[3], "NO")
        self.assertEqual(row(self.rate(5000), "5,000/s, 2 s")[4], "7 / ? / ?")

    def memory(self, growth):
        runs = [
            run("weir", 1, 5, seconds=2, requests=1_000_000),
            run("weir", 2, 5, seconds=20, requests=2_000_000, peak_bytes=3 * 2**20 + growth),
        ]
        return report.markdown(document(memory=runs))

    def test_memory_that_grows_by_a_byte_a_request_grows(self):
        self.assertIn("more requests: no.", self.memory(100_000))
        self.assertIn("more requests: YES.", self.memory(1_000_000))


class Tools(unittest.TestCase):
    def test_every_template_is_told_the_load_in_words_that_are_filled_in(self):
        known = {"cpu", "connections", "seconds", "url", "requests", "rate", "rate_each"}
        for tool in (tools.WEIR, *tools.OTHERS):
            for template in filter(None, (tool.closed, tool.open)):
                words = {name for _, name, _, _ in string.Formatter().parse(template) if name}
                self.assertLessEqual(words, known, tool.name)
                self.assertLessEqual({"connections", "seconds", "url"}, words, tool.name)
            if tool.open:
                self.assertRegex(tool.open, r"\{rate(_each)?\}")


if __name__ == "__main__":
    unittest.main()
