//! Peaks of response times.

use crate::evidence::{Absent, Input};
use crate::quantities::MODE_WIDTH_S;

/// Returns the share of response times just after the given times, as far as they exceed those just before and after by
/// more than four standard deviations of a count. A lost SYN is sent again after 1, 3 and 7 s (RFC 6298 section 2: a
/// first timeout of 1 s, doubled each time).
pub(crate) fn excess(at: &[f64], times: &[(u64, u64)]) -> Result<f64, Absent> {
    let all: u64 = times.iter().map(|(_, count)| count).sum();
    if all == 0 {
        return Err(Absent::NotGiven(Input::ResponseTimes));
    }
    let shares = at.iter().map(|at| {
        let around =
            count_mode(times, at - MODE_WIDTH_S).max(count_mode(times, at + 2.0 * MODE_WIDTH_S));
        let within = count_mode(times, *at);
        if within - around > 4.0 * (within + around).sqrt() { within - around } else { 0.0 }
    });
    Ok(shares.sum::<f64>() / all as f64)
}

fn count_mode(times: &[(u64, u64)], from_s: f64) -> f64 {
    times
        .iter()
        .filter(|(ns, _)| (from_s..from_s + MODE_WIDTH_S).contains(&(*ns as f64 / 1e9)))
        .map(|(_, count)| *count as f64)
        .sum()
}
