"""Tables of made-up runs: the figures in them are known."""

import unittest

from sidebyside import figures, loads, report


def run(tool, number, cpu_us, **more):
    """10,000 requests in 2 s at this price each."""
    return {
        "tool": tool,
        "round": number,
        "seconds": 2,
        "rate_intended": 5000,
        "requests": 10_000,
        "connections": 50,
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
        "versions": {"weir": "0.1.0", "wrk": "4.1.0"},
        "absent": [],
        "sections": {
            name: {"runs": runs, "failures": []} for name, runs in sections.items()
        },
    }


def row(text, name):
    """The cells of the row of that name; tables of sections, without the summary."""
    body = text.split("## Summary")[0]
    lines = [line for line in body.splitlines() if line.startswith(f"| {name} ")]
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
        pairs = figures.of_pair(runs, "wrk")
        self.assertEqual(pairs.rounds, 6)
        self.assertAlmostEqual(pairs.estimate, 2)

    def test_too_few_rounds_give_no_interval(self):
        runs = [run(tool, n, 5) for n in range(1, 6) for tool in ("weir", "wrk")]
        text = report.markdown(document(closed=runs))
        self.assertEqual(row(text, "wrk")[3], "1.00 (no interval)")
        self.assertIn("takes 6 rounds", text)

    def test_without_weir_in_a_round_there_is_no_ratio(self):
        runs = [run("wrk", n, 5) for n in range(1, 9)]
        self.assertEqual(row(report.markdown(document(connect=runs)), "wrk")[3], "?")

    def test_a_tool_that_reconnects_where_it_should_not_is_named(self):
        runs = [run("hey", 1, 5, connections=700), run("wrk", 1, 5, connections=51)]
        text = report.markdown(document(https=runs))
        self.assertIn("- hey: 700 connections for 10,000 requests", text)
        self.assertNotIn("- wrk", text)
        self.assertNotIn("- hey", report.markdown(document(connect=runs)))

    def test_weir_is_set_against_its_floor(self):
        runs = [run(tool, n, price) for n in range(1, 7)
                for tool, price in (("weir", 6), ("weir (floor)", 5))]
        text = report.markdown(document(closed=runs))
        self.assertIn("weir over its own floor: 1.20 (1.20 to 1.20).", text)

    def test_every_section_has_a_table_of_its_own(self):
        names = [load.name for load in loads.LOADS]
        text = report.markdown(document(**{name: [run("weir", 1, 5)] for name in names}))
        self.assertEqual(text.split("## Summary")[0].count("| weir "), len(names))

    def test_a_section_without_runs_says_so(self):
        text = report.markdown(document(closed=[]))
        self.assertIn("Nothing was measured.", text)


class Open(unittest.TestCase):
    def test_rate_error_and_dispatch_lag(self):
        said = {"dispatch_lag": [[0.5, 7000], [0.99, 20_000], [0.999, 30_000], [1.0, 40_000]]}
        runs = [run("weir", n, 5, rate_intended=4000, said=said) for n in (1, 2, 3)]
        runs += [run("wrk2", n, 5) for n in (1, 2, 3)]
        text = report.markdown(document(open=runs))
        self.assertEqual(row(text, "weir")[2], "+25.00% (+25.00% to +25.00%)")
        self.assertEqual(row(text, "wrk2")[2], "+0.00% (+0.00% to +0.00%)")
        self.assertIn("p50 / p99 / p99.9 / max: weir 7 / 20 / 30 / 40.", text)


class Punctual(unittest.TestCase):
    def test_a_row_for_each_rate_and_tool(self):
        said = {"dispatch_lag": [[0.5, 200], [0.99, 15_000]]}
        late = [[0.5, 1_000], [0.99, 21_000], [1.0, 90_000]]
        runs = [run("weir", n, 10, rate_intended=500, said=said, late_ns=late) for n in range(1, 7)]
        runs += [run("wrk2", n, 15, rate_intended=500, late_ns=[]) for n in range(1, 7)]
        runs += [run("wrk2", n, 5, rate_intended=20_000, late_ns=late) for n in range(1, 7)]
        text = report.markdown(document(punctual=runs))
        self.assertEqual(row(text, "500/s weir")[1:5], ["1 / 21", "0.2 / 15", "10.00", "1"])
        self.assertEqual(row(text, "500/s wrk2")[1:5], ["? / ?", "", "15.00", "1.50 (1.50 to 1.50)"])
        self.assertEqual(row(text, "20,000/s wrk2")[1:5], ["1 / 21", "", "5.00", "?"])


class Promises(unittest.TestCase):
    def rate(self, offered):
        said = {"rates": {"intended": 5000.0, "offered": offered}, "dispatch_lag": [[0.5, 7000]]}
        return report.markdown(document(rate=[run("weir", 1, 5, said=said)]))

    def test_a_rate_within_a_thousandth_is_held(self):
        self.assertEqual(row(self.rate(4995.1), "5,000/s, 2 s")[3], "yes")
        self.assertEqual(row(self.rate(4994.9), "5,000/s, 2 s")[3], "NO")
        self.assertEqual(row(self.rate(5000), "5,000/s, 2 s")[4], "7 / ? / ? / ?")

    def test_the_origin_server_is_set_against_nginx(self):
        for price, reached in ((4.5, "NOT reached"), (4.0, "reached")):
            runs = [run(server, n, 5, origin_cpu_s=each / 100)
                    for n in range(1, 9) for server, each in (("weir origin", price), ("nginx", 6))]
            text = report.markdown(document(origin=runs))
            self.assertEqual(row(text, "nginx")[1:3], ["6.00", "166,667"])
            ratio = f"{6 / price:.2f}"
            self.assertIn(f"answers {ratio} ({ratio} to {ratio}) times", text)
            self.assertIn(f"aim ≥ 1.5: {reached}.", text)

    def memory(self, growth):
        runs = [
            run("weir", 1, 5, seconds=2, requests=1_000_000),
            run("weir", 2, 5, seconds=20, requests=2_000_000, peak_bytes=3 * 2**20 + growth),
        ]
        return report.markdown(document(memory=runs))

    def test_memory_that_grows_by_a_byte_a_request_grows(self):
        self.assertIn("more requests: no.", self.memory(100_000))
        self.assertIn("more requests: YES.", self.memory(1_000_000))

    def hold(self, few_bytes, many_bytes):
        runs = [
            run("weir", 1, 5, connections_intended=many, peak_bytes=peak)
            for many, peak in ((1_000, few_bytes), (11_000, many_bytes))
        ]
        return row(report.markdown(document(hold=runs)), "weir")

    def test_a_held_connection_is_the_difference_over_those_that_came_on_top(self):
        cells = self.hold(3 * 2**20, 3 * 2**20 + 10_000 * 333)
        self.assertEqual(cells[2:], ["1,000: 3,072 KiB", "11,000: 6,324 KiB", "333"])

    def test_one_run_alone_says_nothing_of_a_connection(self):
        runs = [run("weir", 1, 5, connections_intended=1_000)]
        self.assertEqual(row(report.markdown(document(hold=runs)), "weir")[-1], "?")


if __name__ == "__main__":
    unittest.main()
