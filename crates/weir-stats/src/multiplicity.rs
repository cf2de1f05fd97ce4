//! Several comparisons at once.

/// Holm's correction (Scand. J. Statist. 6, 1979): p values that may each be held against the level
/// while the chance of any false claim among all of them stays below it. In the order given.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// R: `p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")`.
    #[test]
    fn known_answers() {
        let want = [0.03, 0.06, 0.06, 0.02];
        for (got, want) in holm(&[0.01, 0.04, 0.03, 0.005]).into_iter().zip(want) {
            assert!((got - want).abs() < 1e-12, "{got} is not {want}");
        }
        assert_eq!(holm(&[]), Vec::<f64>::new());
        assert_eq!(holm(&[0.2]), [0.2]);
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
    }
}
