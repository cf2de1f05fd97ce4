//! Arithmetic with x86's `long double`, as C computes it: 64 bits of mantissa, ties to even.
//!
//! wrk2 divides and prints its times in that type. A time of 1315 µs is 1.32 ms there and 1.31 ms in an `f64`, and one
//! measured time in ten is such a tie.

/// A number that is not negative: `mantissa` · 2^`exponent`, the mantissa's top bit set unless it
/// is zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extended {
    mantissa: u64,
    exponent: i32,
}

impl Extended {
    /// Converts a number without rounding. Negative and non-finite values become zero.
    pub(super) fn new(value: f64) -> Extended {
        if !value.is_normal() || value < 0.0 {
            return Extended { mantissa: 0, exponent: 0 };
        }
        let bits = value.to_bits();
        let fraction = bits & ((1 << 52) - 1) | 1 << 52;
        let exponent = (bits >> 52) as i32 - 1023 - 52;
        Extended { mantissa: fraction << 11, exponent: exponent - 11 }
    }

    /// Returns the quotient, rounded to 64 bits.
    pub(super) fn divided_by(self, divisor: u32) -> Extended {
        if self.mantissa == 0 {
            return self;
        }
        let dividend = u128::from(self.mantissa) << 64;
        let (quotient, rest) = (dividend / u128::from(divisor), dividend % u128::from(divisor));
        let excess = 64 - quotient.leading_zeros();
        let exponent = self.exponent - 64 + excess as i32;
        let rounded = shifted_right(quotient, excess, rest != 0);
        match u64::try_from(rounded) {
            Ok(mantissa) => Extended { mantissa, exponent },
            // Rounding up carried into a 65th bit.
            Err(_) => Extended { mantissa: 1 << 63, exponent: exponent + 1 },
        }
    }

    /// Converts to an `f64`, precise enough for comparisons.
    pub(super) fn to_f64(self) -> f64 {
        self.mantissa as f64 * f64::from(self.exponent).exp2()
    }

    /// Formats a number below 2^64 with `digits` after the point, as `%.*Lf` does.
    pub(super) fn to_decimal(self, digits: u32) -> String {
        let unit = 10_u128.pow(digits);
        let scaled = u128::from(self.mantissa) * unit;
        let scaled = shifted_right(scaled, self.exponent.min(0).unsigned_abs(), false);
        let integer = scaled / unit;
        match digits {
            0 => integer.to_string(),
            _ => format!("{integer}.{:0width$}", scaled % unit, width = digits as usize),
        }
    }
}

/// Returns `value` / 2^`shift`, rounded to the nearest, ties to even. `more` is true if the exact value is a little
/// larger than `value`.
fn shifted_right(value: u128, shift: u32, more: bool) -> u128 {
    if shift == 0 {
        return value;
    }
    if shift >= 127 {
        return 0;
    }
    let shifted = value >> shift;
    let lost = value & ((1 << shift) - 1);
    let half = 1 << (shift - 1);
    let up = lost > half || lost == half && (more || shifted % 2 == 1);
    shifted + u128::from(up)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn thousandth(value: f64) -> String {
        Extended::new(value).divided_by(1000).to_decimal(2)
    }

    #[test]
    fn ties_fall_as_they_do_in_c() {
        // Printed by `printf("%.2Lf", n / 1000)` with `long double n`.
        let printed = [
            (1005.0, "1.00"),
            (1015.0, "1.01"),
            (1125.0, "1.12"),
            (1135.0, "1.13"),
            (1185.0, "1.18"),
            (1315.0, "1.32"),
            (1325.0, "1.33"),
            (1655.0, "1.65"),
            (2035.0, "2.04"),
            (2045.0, "2.05"),
            (850.0, "0.85"),
            (1999995.0, "1999.99"),
        ];
        for (value, text) in printed {
            assert_eq!(thousandth(value), text, "{value}");
        }
    }

    #[test]
    fn what_needs_no_rounding_stays() {
        assert_eq!(Extended::new(0.0).divided_by(60).to_decimal(2), "0.00");
        assert_eq!(Extended::new(0.125).to_decimal(2), "0.12");
        assert_eq!(Extended::new(0.375).to_decimal(2), "0.38");
        assert_eq!(Extended::new(12.0).to_decimal(0), "12");
        assert_eq!(Extended::new(f64::MIN_POSITIVE).to_decimal(2), "0.00");
        assert_eq!(Extended::new(1e15).to_decimal(2), "1000000000000000.00");
    }

    proptest! {
        #[test]
        fn it_agrees_with_f64_but_for_ties(value in 0.0..1e12_f64, divisor in 1_u32..2_000_000) {
            let exact = value / f64::from(divisor);
            let quotient = Extended::new(value).divided_by(divisor);
            prop_assert!((quotient.to_f64() - exact).abs() <= exact * 1e-15);
            let printed: f64 = quotient.to_decimal(2).parse().unwrap();
            prop_assert!((printed - exact).abs() <= 0.005 + exact * 1e-15);
        }
    }
}
