"""Known answers, and the exact interval against counting every flip of signs."""

import itertools
import random
import unittest

from sidebyside import estimate


class SignedRank(unittest.TestCase):
    def test_critical_values_are_those_of_the_printed_tables(self):
        # Two-sided 5 %: the largest w with 2·P(W <= w) <= 0.05.
        for n, critical in {6: 0, 7: 2, 8: 3, 9: 5, 10: 8, 12: 13, 15: 25, 20: 52}.items():
            tail = estimate.signed_rank_tail(n)
            self.assertLessEqual(2 * tail[critical], 0.05, n)
            self.assertGreater(2 * tail[critical + 1], 0.05, n)

    def test_distribution_equals_counting_every_flip(self):
        for n in range(1, 9):
            sums = [
                sum(rank for rank, up in enumerate(signs, 1) if up)
                for signs in itertools.product((0, 1), repeat=n)
            ]
            counted = [
                sum(s <= w for s in sums) / len(sums) for w in range(n * (n + 1) // 2 + 1)
            ]
            self.assertEqual(estimate.signed_rank_tail(n), counted)


class Interval(unittest.TestCase):
    def test_of_six_values_is_their_range(self):
        low, high, sure = estimate.interval([3.0, 1.0, 2.0, 9.0, 5.0, 4.0], 0.95)
        self.assertEqual((low, high), (1.0, 9.0))
        self.assertAlmostEqual(sure, 1 - 2 / 64)

    def test_of_five_values_there_is_none(self):
        self.assertIsNone(estimate.interval([1.0, 2.0, 3.0, 4.0, 5.0], 0.95))

    def test_holds_exactly_the_shifts_that_the_sign_flip_test_accepts(self):
        draw = random.Random(7)
        for _ in range(20):
            sample = [draw.gauss(0.3, 1) for _ in range(8)]
            low, high, _ = estimate.interval(sample, 0.95)
            for shift in (low + 1e-9, (low + high) / 2, high - 1e-9):
                self.assertGreater(p_value(sample, shift), 0.05)
            for shift in (low - 1e-9, high + 1e-9):
                self.assertLessEqual(p_value(sample, shift), 0.05)


class Ratios(unittest.TestCase):
    def test_a_constant_factor_is_found_whatever_the_rounds_do(self):
        base = [5.0, 9.0, 4.0, 70.0, 6.0, 5.5]
        found = estimate.ratio([1.5 * b for b in base], base)
        for value in (found.estimate, found.low, found.high):
            self.assertAlmostEqual(value, 1.5)

    def test_one_spoiled_round_does_not_move_it(self):
        others, base = [1.1] * 9 + [50.0], [1.0] * 10
        self.assertAlmostEqual(estimate.ratio(others, base).estimate, 1.1)

    def test_of_the_inverse_is_the_inverse(self):
        a, b = [2.0, 3.0, 2.5, 2.2, 2.9, 3.3, 2.4], [1.0, 1.1, 0.9, 1.2, 1.0, 1.3, 0.8]
        there, back = estimate.ratio(a, b), estimate.ratio(b, a)
        self.assertAlmostEqual(there.estimate * back.estimate, 1)
        self.assertAlmostEqual(there.low * back.high, 1)


def p_value(sample, shift):
    """Two-sided signed-rank p of `the centre is shift`, by counting all flips."""
    moved = sorted((x - shift for x in sample), key=abs)
    seen = sum(rank for rank, x in enumerate(moved, 1) if x > 0)
    n = len(sample)
    sums = [
        sum(rank for rank, up in enumerate(signs, 1) if up)
        for signs in itertools.product((0, 1), repeat=n)
    ]
    extreme = min(seen, n * (n + 1) // 2 - seen)
    return min(1.0, 2 * sum(s <= extreme for s in sums) / len(sums))


if __name__ == "__main__":
    unittest.main()
