//! The k-th smallest of a multitude that can be counted but need not be listed.
//!
//! A thousand replicates have half a million pairs. Their order statistics are found by bisection
//! over the values a float can take: at most 64 counts, each linear in the replicates.

/// Returns the smallest float `t` with `count(t) > k`, that is, the element of rank `k` (from 0) in ascending order, if
/// `count(t)` is the number of elements that are at most `t`. All elements lie in `low..=high`, and there are more than
/// `k`.
pub(crate) fn element(k: u64, low: f64, high: f64, count: impl Fn(f64) -> u64) -> f64 {
    let (mut low, mut high) = (key(low), key(high));
    while low < high {
        let middle = low + (high - low) / 2;
        if count(value(middle)) > k {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    // Negative zero is a value of its own to the bisection, and to nobody else.
    value(low) + 0.0
}

const SIGN: u64 = 1 << 63;

/// Maps each float to an integer, in the same order.
fn key(float: f64) -> u64 {
    let bits = float.to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

/// Returns the float of a [`key`].
fn value(key: u64) -> f64 {
    f64::from_bits(if key & SIGN == 0 { !key } else { key & !SIGN })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_the_element_that_sorting_finds(mut sample in prop::collection::vec(-1e9_f64..1e9, 1..40)) {
            sample.sort_by(f64::total_cmp);
            for (k, &want) in (0..).zip(&sample) {
                let count = |t: f64| sample.iter().filter(|&&x| x <= t).count() as u64;
                prop_assert_eq!(element(k, sample[0], sample[sample.len() - 1], count), want);
            }
        }

        #[test]
        fn keys_keep_the_order(a in any::<f64>(), b in any::<f64>()) {
            prop_assume!(!a.is_nan() && !b.is_nan());
            prop_assert_eq!(key(a).cmp(&key(b)), a.total_cmp(&b));
            prop_assert_eq!(value(key(a)).to_bits(), a.to_bits());
        }
    }
}
