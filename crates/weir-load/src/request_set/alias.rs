//! Random choice by weights.

use weir_stats::SplitMix64;

use crate::request_set::MOST_REQUESTS;

/// Reason why a weight cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum WeightError {
    /// The weight is zero, negative, infinite or not a number.
    #[error("weight {0} is not above zero")]
    Worthless(f64),
    /// The weight is so small compared with the others that the request would never be sent.
    #[error("weight {0} is less than a 2^32nd of all weights")]
    TooSmall(f64),
}

/// Table for drawing an index in proportion to weights, in constant time (Walker 1977; built as in Vose, "A linear
/// algorithm for generating random numbers with a given distribution", 1991).
///
/// Shares are whole numbers, so that nothing is lost while the table is built: every column holds exactly 2³² of them,
/// and the probability of an index differs from its weight by no more than a 2³²nd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AliasTable(Box<[Column]>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Column {
    /// Number of shares of the column's own index; the rest belong to the alias. A full column is its own alias.
    own: u32,
    alias: u32,
}

/// Number of shares in a column.
const COLUMN: u64 = 1 << 32;

impl AliasTable {
    /// Builds a table for these weights, at most [`MOST_REQUESTS`] and at least one.
    ///
    /// # Errors
    /// The index of the first weight that cannot be used, and the reason.
    pub fn new(weights: &[f64]) -> Result<AliasTable, (usize, WeightError)> {
        debug_assert!((1..=MOST_REQUESTS).contains(&weights.len()));
        let mut remaining = shares(weights)?;
        let mut columns = vec![Column { own: 0, alias: 0 }; remaining.len()];
        let (mut poor, mut rich): (Vec<usize>, Vec<usize>) =
            (0..remaining.len()).partition(|index| remaining[*index] < COLUMN);
        // All shares together fill all columns, so while one is not full another has too many.
        while let (Some(index), Some(&giver)) = (poor.pop(), rich.last()) {
            columns[index] = Column { own: remaining[index] as u32, alias: giver as u32 };
            remaining[giver] -= COLUMN - remaining[index];
            if remaining[giver] < COLUMN {
                rich.pop();
                poor.push(giver);
            }
        }
        for index in rich {
            columns[index].alias = index as u32;
        }
        Ok(AliasTable(columns.into_boxed_slice()))
    }

    /// Draws an index.
    #[inline]
    pub fn draw(&self, random: &mut SplitMix64) -> u32 {
        let bits = random.next_u64();
        let index = ((bits >> 32) * self.0.len() as u64) >> 32;
        let column = self.0[index as usize];
        if (bits as u32) < column.own { index as u32 } else { column.alias }
    }
}

/// Converts weights to whole shares; their sum is [`COLUMN`] times the number of weights.
fn shares(weights: &[f64]) -> Result<Vec<u64>, (usize, WeightError)> {
    if let Some(index) = weights.iter().position(|weight| !(weight.is_finite() && *weight > 0.0)) {
        return Err((index, WeightError::Worthless(weights[index])));
    }
    // Scaled by the largest, so that no sum is infinite.
    let largest = weights.iter().copied().fold(0.0, f64::max);
    let sum: f64 = weights.iter().map(|weight| weight / largest).sum();
    let total = COLUMN * weights.len() as u64;
    let mut shares = Vec::with_capacity(weights.len());
    for (index, weight) in weights.iter().enumerate() {
        // At most 2^48, which an f64 counts exactly.
        let share = (weight / largest / sum * total as f64).round() as u64;
        if share < weights.len() as u64 {
            return Err((index, WeightError::TooSmall(*weight)));
        }
        shares.push(share);
    }
    // Rounding leaves a few shares over or short; the largest weight does not feel them.
    let dealt: u64 = shares.iter().sum();
    if let Some(most) = shares.iter_mut().max() {
        *most = *most + total - dealt;
    }
    Ok(shares)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the number of shares that the table actually gives to each index.
    fn sum_shares(table: &AliasTable) -> Vec<u64> {
        let mut sums = vec![0; table.0.len()];
        for (index, column) in table.0.iter().enumerate() {
            sums[index] += u64::from(column.own);
            sums[column.alias as usize] += COLUMN - u64::from(column.own);
        }
        sums
    }

    proptest! {
        #[test]
        fn shares_are_those_of_the_weights(weights in prop::collection::vec(1e-3..1e3_f64, 1..60)) {
            let table = AliasTable::new(&weights).unwrap();
            let sum: f64 = weights.iter().sum();
            let total = (COLUMN * weights.len() as u64) as f64;
            for (weight, given) in weights.iter().zip(sum_shares(&table)) {
                let error = given as f64 / total - weight / sum;
                prop_assert!(error.abs() < 1.0 / COLUMN as f64, "{error}");
            }
        }
    }

    #[test]
    fn chi_square_with_a_fixed_seed() {
        let weights = [3.0, 1.0, 0.5, 5.5];
        let table = AliasTable::new(&weights).unwrap();
        let mut random = SplitMix64::new(42);
        let mut counts = [0_u32; 4];
        (0..1_000_000).for_each(|_| counts[table.draw(&mut random) as usize] += 1);
        let chi_square: f64 = weights
            .iter()
            .zip(&counts)
            .map(|(weight, count)| {
                let expected = weight * 1e5;
                (f64::from(*count) - expected).powi(2) / expected
            })
            .sum();
        // The 99.9 % quantile for three degrees of freedom.
        assert!(chi_square < 16.27, "{chi_square} from {counts:?}");
    }

    #[test]
    fn equal_weights_fill_all_columns() {
        for count in [1, 2, 3, 7, 1000, MOST_REQUESTS] {
            let table = AliasTable::new(&vec![0.1; count]).unwrap();
            let sums = sum_shares(&table);
            let off = sums.iter().map(|shares| shares.abs_diff(COLUMN)).max();
            assert!(off <= Some(count as u64), "{off:?}");
            assert_eq!(sums.iter().sum::<u64>(), COLUMN * count as u64);
        }
    }
}
