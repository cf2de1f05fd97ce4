"""What an interval costs: known answers, and rounds that are made up."""

import math
import random
import unittest
from statistics import median

from paired import cost
from paired.cost import Width
from sidebyside.estimate import Ratio


class TimeFactor(unittest.TestCase):
    def test_twice_the_width_in_the_same_time_costs_four_times_the_time(self):
        self.assertAlmostEqual(cost.time_factor(Width(0.04, 60), Width(0.02, 60)), 4)

    def test_the_same_width_in_twice_the_time_costs_twice(self):
        self.assertAlmostEqual(cost.time_factor(Width(0.02, 120), Width(0.02, 60)), 2)

    def test_it_is_the_ratio_of_the_times_needed_for_any_width(self):
        one, other = Width(0.05, 70), Width(0.013, 61)
        for half in (0.001, 0.02, 0.3):
            needed = cost.time_needed(one, half) / cost.time_needed(other, half)
            self.assertAlmostEqual(cost.time_factor(one, other), needed)

    def test_more_of_the_same_blocks_cost_the_same(self):
        # Half-widths shrink with the square root of the number of blocks: so the factor of a
        # way over itself is 1 however long each ran. Exact intervals of few blocks are wider.
        draw = random.Random(3)
        factors = []
        for _ in range(60):
            blocks = [draw.gauss(0, 0.1) for _ in range(200)]
            short = Width(cost.half_width(cost.from_blocks(blocks[:50])), 50)
            long = Width(cost.half_width(cost.from_blocks(blocks)), 200)
            factors.append(cost.time_factor(short, long))
        self.assertAlmostEqual(median(factors), 1, delta=0.15)


class FromBlocks(unittest.TestCase):
    def test_of_six_blocks_the_interval_is_their_range(self):
        found = cost.from_blocks([0.01, -0.02, 0.03, 0.0, 0.05, -0.01])
        self.assertEqual((found["low"], found["high"], found["n"]), (-0.02, 0.05, 6))
        self.assertAlmostEqual(cost.half_width(found), 0.035)

    def test_of_five_there_is_an_estimate_and_no_interval(self):
        found = cost.from_blocks([0.01, 0.02, 0.03, 0.04, 0.05])
        self.assertAlmostEqual(found["estimate"], 0.03)
        self.assertIsNone(cost.half_width(found))

    def test_of_none_there_is_nothing(self):
        found = cost.from_blocks([])
        self.assertEqual((found["n"], found["estimate"], found["standard_error"]), (0, None, None))

    def test_the_standard_error_is_that_of_the_mean(self):
        self.assertAlmostEqual(cost.standard_error([1.0, 3.0]), 1.0)
        self.assertIsNone(cost.standard_error([1.0]))


class OverRounds(unittest.TestCase):
    def test_the_same_factor_in_all_rounds_is_found(self):
        found = cost.over_rounds([3.0] * 6)
        for value in (found.estimate, found.low, found.high):
            self.assertAlmostEqual(value, 3)

    def test_factors_and_their_inverses_say_the_inverse(self):
        factors = [2.0, 3.0, 2.5, 4.0, 1.5, 2.2, 2.1]
        there, back = cost.over_rounds(factors), cost.over_rounds([1 / f for f in factors])
        self.assertAlmostEqual(there.estimate * back.estimate, 1)
        self.assertAlmostEqual(there.low * back.high, 1)

    def test_few_rounds_have_no_interval_and_none_nothing(self):
        self.assertIsNone(cost.over_rounds([3.0, 2.0]).low)
        self.assertIsNone(cost.over_rounds([]))


class Pooled(unittest.TestCase):
    def test_four_equal_rounds_halve_the_width(self):
        pooled = cost.pooled_halves([Width(0.02, 60)] * 4)
        self.assertAlmostEqual(pooled.half, 0.01)
        self.assertEqual(pooled.seconds, 240)
        self.assertIsNone(cost.pooled_halves([]))

    def test_rounds_with_too_few_blocks_count_together(self):
        rounds = [([0.01, -0.02], 60.0), ([0.03, 0.0], 60.0), ([0.05, -0.01], 61.0)]
        pooled = cost.pooled_blocks(rounds)
        self.assertAlmostEqual(pooled.half, 0.035)
        self.assertAlmostEqual(pooled.seconds, 181)
        self.assertIsNone(cost.pooled_blocks(rounds[:2]))

    def test_pooling_does_not_change_what_a_width_costs(self):
        one = Width(0.02, 60)
        self.assertAlmostEqual(cost.time_factor(cost.pooled_halves([one] * 6), one), 1)


class Miss(unittest.TestCase):
    def test_signs_do_not_cancel(self):
        self.assertAlmostEqual(cost.miss([0.03, -0.03]), 0.03)
        self.assertIsNone(cost.miss([]))


class Verdict(unittest.TestCase):
    def of(self, low, high):
        return cost.verdict(Ratio(3.0, low, high, 0.97, 6), 2.0)

    def test_an_aim_is_reached_by_the_whole_interval_or_not_at_all(self):
        self.assertEqual(self.of(2.0, 9.0), "reached")
        self.assertEqual(self.of(1.9, 9.0), "undecided")
        self.assertEqual(self.of(1.1, 1.9), "NOT reached")

    def test_too_few_rounds_decide_nothing(self):
        self.assertEqual(self.of(None, None), "undecided")
        self.assertEqual(cost.verdict(None, 2.0), "no comparison")


class Coverage(unittest.TestCase):
    def test_intervals_hold_the_truth_as_often_as_they_say(self):
        draw = random.Random(11)
        held = 0
        for _ in range(300):
            found = cost.from_blocks([draw.gauss(math.log(1.05), 0.1) for _ in range(12)])
            held += found["low"] <= math.log(1.05) <= found["high"]
        self.assertGreaterEqual(held / 300, 0.92)


if __name__ == "__main__":
    unittest.main()
