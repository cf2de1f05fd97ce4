//! Connections of an arm over several continuous trials.

use weir_model::record::{ArmConnections, ConnectionCounts, PartRecord, TrialRecord};

/// Sums up one arm's connections over several continuous trials; see
/// [`ArmFindings::connections`](crate::findings::ArmFindings::connections).
pub(crate) fn together<'a>(
    parts: impl Iterator<Item = &'a PartRecord>,
    arm: &str,
) -> Option<ArmConnections> {
    let of_arm = parts.filter_map(|part| part.arms.iter().find(|counts| counts.arm == arm));
    of_arm
        .cloned()
        .map(|mut counts| {
            counts.held.opened = counts.held.opened.saturating_sub(counts.held.open_at_start);
            counts
        })
        .reduce(|mut sum, next| {
            add_counts(&mut sum.asking, &next.asking);
            add_counts(&mut sum.held, &next.held);
            sum.answered += next.answered;
            // Known of every part, or of none.
            let overflows = sum.listen_overflows.zip(next.listen_overflows);
            sum.listen_overflows = overflows.map(|(sum, next)| sum + next);
            match (&mut sum.tls, next.tls) {
                (Some(sum), Some(next)) => sum.add(next),
                (tls @ None, next) => *tls = next,
                (Some(_), None) => {}
            }
            sum.proxy_memory_bytes = sum.proxy_memory_bytes.max(next.proxy_memory_bytes);
            sum
        })
}

fn add_counts(sum: &mut ConnectionCounts, next: &ConnectionCounts) {
    sum.wanted = sum.wanted.max(next.wanted);
    sum.open_at_start = sum.open_at_start.min(next.open_at_start);
    sum.open_at_end = sum.open_at_end.min(next.open_at_end);
    sum.opened += next.opened;
    sum.lost_at_rest += next.lost_at_rest;
}

/// Returns true if `trial` belongs to another load that shared the continuous trial `part`.
pub(crate) fn is_with(part: &PartRecord, trial: &TrialRecord) -> bool {
    let mut with = part.with.iter().filter(|with| with.load == trial.load);
    part.session == trial.session
        && with.any(|with| {
            (with.first_block..with.first_block.saturating_add(with.blocks)).contains(&trial.block)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_queues_of_an_arm_are_known_of_all_parts_or_of_none() {
        for (overflows, expected) in
            [([Some(500), Some(500)], Some(1000)), ([Some(500), None], None)]
        {
            let parts = overflows.map(|listen_overflows| PartRecord {
                arms: vec![ArmConnections {
                    arm: "a".to_owned(),
                    listen_overflows,
                    ..ArmConnections::default()
                }],
                ..PartRecord::default()
            });
            let sum = together(parts.iter(), "a");
            assert_eq!(sum.and_then(|sum| sum.listen_overflows), expected);
        }
    }
}
