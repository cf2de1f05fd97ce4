//! Several comparisons at once.

/// Applies Holm's correction (Scand. J. Statist. 6, 1979) and returns p values in the given order. Each may be compared
/// with the level while the chance of any false claim among all of them stays below it.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    let mut corrected = vec![1.0; p.len()];
    // A p is never corrected to less than a smaller one was.
    let mut floor = 0.0_f64;
    for (done, &index) in order.iter().enumerate() {
        floor = floor.max(p[index] * (p.len() - done) as f64).min(1.0);
        corrected[index] = floor;
    }
    corrected
}

/// Applies the correction of Benjamini and Hochberg ("Controlling the false discovery rate", JRSS B 57, 1995) and
/// returns p values in the given order: of all results whose corrected p is at most a level, no larger share than that
/// is false on average.
///
/// It holds for independent tests, and for ones that err in the same direction (Benjamini & Yekutieli, Ann. Statist.
/// 29, 2001).
pub fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    let mut corrected = vec![1.0; p.len()];
    // A p is never corrected to more than a larger one was.
    let mut ceiling = 1.0_f64;
    for (place, &index) in order.iter().enumerate().rev() {
        ceiling = ceiling.min(p[index] * p.len() as f64 / (place + 1) as f64);
        corrected[index] = ceiling;
    }
    corrected
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R: `p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")`, and the same with `"BH"`.
    #[test]
    fn known_answers() {
        type Correct = fn(&[f64]) -> Vec<f64>;
        for (correct, want, of_two) in [
            (holm as Correct, [0.03, 0.06, 0.06, 0.02], [1.0, 1.0]),
            (benjamini_hochberg, [0.02, 0.04, 0.04, 0.02], [0.9, 0.9]),
        ] {
            for (got, want) in correct(&[0.01, 0.04, 0.03, 0.005]).into_iter().zip(want) {
                assert!((got - want).abs() < 1e-12, "{got} is not {want}");
            }
            assert_eq!(correct(&[]), Vec::<f64>::new());
            assert_eq!(correct(&[0.2]), [0.2]);
            assert_eq!(correct(&[0.9, 0.8]), of_two);
        }
    }
}
