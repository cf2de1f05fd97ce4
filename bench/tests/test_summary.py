"""The last table: who is best, and which aims are reached."""

import unittest

from sidebyside import summary
from sidebyside.estimate import Ratio
from sidebyside.loads import LOADS, SECTIONS, Aim


def run(tool, number, cpu_us):
    return {"tool": tool, "round": number, "cpu_s": cpu_us / 1e6, "requests": 1}


def rounds(number=8, **prices):
    return [run(tool, n, price) for n in range(number) for tool, price in prices.items()]


class Row(unittest.TestCase):
    aim = Aim(0.95, "shb")

    def test_the_best_other_is_never_weir_by_other_means(self):
        runs = rounds(shb=10, wrk=8, weir=6)
        runs += [run("weir (floor)", n, 2) for n in range(8)]
        cells = summary.row("closed", self.aim, runs)
        self.assertEqual(cells[1:4], ["6.00", "wrk 8.00", "0.75 (0.75 to 0.75)"])
        self.assertEqual(cells[4:], ["≤ 0.95 × shb", "0.60 (0.60 to 0.60)", "reached"])

    def test_without_the_tool_of_the_aim_there_is_no_comparison(self):
        self.assertEqual(summary.row("closed", self.aim, rounds(weir=6, wrk=8))[5:],
                         ["–", "no comparison"])

    def test_without_weir_the_best_other_still_stands(self):
        cells = summary.row("closed", self.aim, rounds(shb=10))
        self.assertEqual(cells[1:4], ["–", "shb 10.00", "–"])
        self.assertEqual(cells[-1], "no comparison")

    def test_a_section_without_runs_is_a_row_without_figures(self):
        self.assertEqual(summary.row("closed", None, [])[1:], ["–"] * 5 + ["no comparison"])


class Verdict(unittest.TestCase):
    def of(self, low, high):
        return summary.verdict(Aim(0.8, "x"), Ratio(0.8, low, high, 0.97, 6))

    def test_an_aim_is_reached_by_the_whole_interval_or_not_at_all(self):
        self.assertEqual(self.of(0.7, 0.8), "reached")
        self.assertEqual(self.of(0.7, 0.81), "undecided")
        self.assertEqual(self.of(0.81, 0.9), "NOT reached")

    def test_too_few_rounds_decide_nothing(self):
        self.assertEqual(self.of(None, None), "undecided")

    def test_weir_over_other_is_the_inverse_of_the_sections_ratio(self):
        cells = summary.row("open", Aim(0.8, "h2load"), rounds(weir=9, h2load=3))
        self.assertEqual(cells[5:], ["3.00 (3.00 to 3.00)", "NOT reached"])


class Whole(unittest.TestCase):
    def test_sections_have_names_of_their_own(self):
        self.assertEqual(len(set(SECTIONS)), len(SECTIONS))

    def test_rows_are_the_sections_that_were_begun(self):
        document = {"sections": {LOADS[1].name: {"runs": rounds(weir=1, shb=2)}}}
        text = summary.summary(document)
        self.assertIn("| connect ", text)
        self.assertNotIn("| closed ", text)
        self.assertIsNone(summary.summary({"sections": {}}))


if __name__ == "__main__":
    unittest.main()
