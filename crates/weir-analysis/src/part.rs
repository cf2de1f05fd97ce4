//! What the end of a continuous trial says about its blocks: connections that were not there, and
//! the generator's own troubles.

use weir_model::load::Lifetime;
use weir_model::load_report::{NameCount, TlsReport};
use weir_model::record::{ArmConnections, ConnectionCounts, PartRecord, SliceRecord};
use weir_model::study::LoadSpec;

use crate::validity::{Limits, Reason, graded, percent};

/// Connections that the study wants and that were not open: a load of fewer connections is another
/// load.
const CONNECTIONS: Limits = Limits {
    suspect: 0.001,
    invalid: 0.05,
};
/// Receives that waited for one of the generator's own buffers, of all: each is some microseconds of
/// the generator in the proxy's response times. There is about one receive for each response, or for
/// every [`RECEIVE`] bytes of large ones.
const STARVED: Limits = Limits {
    suspect: 0.001,
    invalid: f64::INFINITY,
};

/// Bytes that one receive brings, about: what loopback's segments carry.
const RECEIVE: u64 = 64 * 1024;
/// Connections that a full listen queue kept waiting, per response: a wait is a fifth of a second or
/// more, so one in a thousand is the p99.9.
const OVERFLOWS: Limits = Limits {
    suspect: 0.001,
    invalid: f64::INFINITY,
};

/// What the blocks of a continuous trial saw together.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Seen {
    pub(crate) responses: u64,
    pub(crate) received_bytes: u64,
    pub(crate) origin_connects: u64,
}

impl Seen {
    /// Adds a slice.
    pub(crate) fn and(self, slice: &SliceRecord) -> Seen {
        Seen {
            responses: self.responses + slice.completed_whole,
            received_bytes: self.received_bytes + slice.received_bytes,
            origin_connects: self.origin_connects + slice.origin_connects,
        }
    }
}

/// Why the trials of `arm` in a continuous trial are to be doubted.
pub(crate) fn reasons(part: &PartRecord, arm: &str, load: &LoadSpec, seen: Seen) -> Vec<Reason> {
    let mut found = vec![starved(part, &seen), listen_overflows(part, &seen)];
    if let Some(own) = part.arms.iter().find(|own| own.arm == arm) {
        found.push(asking(&own.asking, load));
        found.push(held(&own.held));
    }
    found.into_iter().flatten().collect()
}

fn starved(part: &PartRecord, seen: &Seen) -> Option<Reason> {
    let receives = seen.responses.max(seen.received_bytes / RECEIVE).max(1);
    let share = part.starved as f64 / receives as f64;
    graded("generator-starved", share, STARVED, || {
        format!(
            "received bytes waited {} times for one of the generator's buffers (about {} of the receives)",
            part.starved,
            percent(share)
        )
    })
}

/// The kernel counts for a whole network namespace and does not say whose queue it was. What an arm's own
/// namespace counts is the arm's and no reason to doubt: it is shown among its connections. Of the
/// rest no more can have been ours than connections were opened while the trial lasted. What was opened
/// before it does not count.
fn listen_overflows(part: &PartRecord, seen: &Seen) -> Option<Reason> {
    let by_client = part.arms.iter().flat_map(|arm| [&arm.asking, &arm.held]);
    let by_client = by_client.map(|counts| counts.opened.saturating_sub(counts.open_at_start));
    let opened = by_client.sum::<u64>() + seen.origin_connects;
    let of_arms = part.arms.iter().filter_map(|arm| arm.listen_overflows);
    let rest = part.listen_overflows.saturating_sub(of_arms.sum());
    let ours = rest.min(opened);
    let share = ours as f64 / seen.responses.max(1) as f64;
    graded("listen-overflows", share, OVERFLOWS, || {
        format!(
            "{rest} connections on this host found the listener's queue full and waited for a retransmission, \
             up to {ours} of them this trial's (net.core.somaxconn, `backlog`)"
        )
    })
}

/// Connections that ask and could not be opened before the trial. One that is renewed may be closed
/// at any moment, and one for each request is not open before.
fn asking(counts: &ConnectionCounts, load: &LoadSpec) -> Option<Reason> {
    if load.lifetime == Lifetime::Request || counts.wanted == 0 {
        return None;
    }
    let missing = counts.wanted.saturating_sub(counts.open_at_start);
    let share = missing as f64 / counts.wanted as f64;
    graded("connections-missing", share, CONNECTIONS, || {
        format!(
            "of {} connections only {} were open when the trial began",
            counts.wanted, counts.open_at_start
        )
    })
}

fn held(counts: &ConnectionCounts) -> Option<Reason> {
    if counts.wanted == 0 {
        return None;
    }
    let again = counts.opened.saturating_sub(counts.open_at_start);
    let least = counts.open_at_start.min(counts.open_at_end);
    let missing = counts.wanted.saturating_sub(least).max(again);
    let share = missing as f64 / counts.wanted as f64;
    graded("held-connections", share, CONNECTIONS, || {
        format!(
            "of {} connections to be held {} were open at the begin and {} at the end, and {again} had to \
             be opened again",
            counts.wanted, counts.open_at_start, counts.open_at_end
        )
    })
}

/// One arm's connections over several continuous trials; see
/// [`ArmFindings::connections`](crate::findings::ArmFindings::connections).
pub(crate) fn together<'a>(
    parts: impl Iterator<Item = &'a PartRecord>,
    arm: &str,
) -> Option<ArmConnections> {
    let own = parts.filter_map(|part| part.arms.iter().find(|own| own.arm == arm).cloned());
    let own = own.map(|mut own| {
        own.held.opened = own.held.opened.saturating_sub(own.held.open_at_start);
        own
    });
    own.reduce(|mut sum, next| {
        add_counts(&mut sum.asking, &next.asking);
        add_counts(&mut sum.held, &next.held);
        sum.answered += next.answered;
        // Known of every part, or of none.
        let overflows = sum.listen_overflows.zip(next.listen_overflows);
        sum.listen_overflows = overflows.map(|(sum, next)| sum + next);
        match (&mut sum.tls, next.tls) {
            (Some(sum), Some(next)) => add_tls(sum, next),
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
}

fn add_tls(sum: &mut TlsReport, next: TlsReport) {
    sum.handshakes += next.handshakes;
    sum.resumed += next.resumed;
    sum.early_data += next.early_data;
    add_names(&mut sum.versions, next.versions);
    add_names(&mut sum.ciphers, next.ciphers);
    add_names(&mut sum.groups, next.groups);
}

fn add_names(sum: &mut Vec<NameCount>, next: Vec<NameCount>) {
    for named in next {
        match sum.iter_mut().find(|known| known.name == named.name) {
            Some(known) => known.count += named.count,
            None => sum.push(named),
        }
    }
}

/// Whether a continuous trial holds a block.
pub(crate) fn holds(part: &PartRecord, session: u32, block: u32) -> bool {
    let blocks = part.first_block..part.first_block.saturating_add(part.blocks);
    part.session == session && blocks.contains(&block)
}

#[cfg(test)]
mod tests {
    use weir_model::record::Validity;
    use weir_model::study::StudyArrivals;

    use super::*;

    fn load(lifetime: Lifetime) -> LoadSpec {
        LoadSpec {
            lifetime,
            held: 1000,
            ..weir_model::fixture::load("l", StudyArrivals::Closed)
        }
    }

    fn counts(wanted: u64, open_at_start: u64, open_at_end: u64, opened: u64) -> ConnectionCounts {
        ConnectionCounts {
            wanted,
            open_at_start,
            open_at_end,
            opened,
        }
    }

    fn part(asking: ConnectionCounts, held: ConnectionCounts) -> PartRecord {
        PartRecord {
            arms: vec![ArmConnections {
                arm: "a".to_owned(),
                asking,
                held,
                ..ArmConnections::default()
            }],
            ..PartRecord::default()
        }
    }

    fn seen(responses: u64) -> Seen {
        Seen {
            responses,
            ..Seen::default()
        }
    }

    fn gravest(reasons: &[Reason]) -> Option<Validity> {
        reasons.iter().map(|reason| reason.reason.validity).max()
    }

    #[test]
    fn held_connections_must_be_held_to_the_end() {
        let asking = counts(50, 50, 50, 50);
        let judge = |held| {
            let found = reasons(&part(asking, held), "a", &load(Lifetime::Kept), seen(1));
            gravest(&found)
        };
        assert_eq!(judge(counts(0, 0, 0, 0)), None, "none are held");
        assert_eq!(judge(counts(1000, 1000, 1000, 1000)), None);
        let suspect = Some(Validity::Suspect);
        assert_eq!(judge(counts(1000, 990, 990, 990)), suspect, "never opened");
        assert_eq!(judge(counts(1000, 1000, 990, 1000)), suspect, "lost");
        assert_eq!(judge(counts(1000, 1000, 1000, 1010)), suspect, "renewed");
        let invalid = Some(Validity::Invalid);
        assert_eq!(judge(counts(1000, 900, 900, 900)), invalid);
        assert_eq!(judge(counts(1000, 1000, 1000, 1100)), invalid);
    }

    #[test]
    fn connections_that_ask_must_be_there_unless_each_request_opens_its_own() {
        let part = part(counts(50, 40, 40, 40), counts(0, 0, 0, 0));
        let kept = reasons(&part, "a", &load(Lifetime::Kept), seen(1));
        assert_eq!(gravest(&kept), Some(Validity::Invalid));
        assert_eq!(
            kept[0].reason.seen,
            "of 50 connections only 40 were open when the trial began"
        );
        assert!(reasons(&part, "a", &load(Lifetime::Request), seen(1)).is_empty());
        assert!(reasons(&part, "b", &load(Lifetime::Kept), seen(1)).is_empty());
    }

    #[test]
    fn the_generators_own_troubles_are_told() {
        let mut part = part(counts(50, 50, 50, 50), counts(0, 0, 0, 0));
        part.starved = 5;
        let found = reasons(&part, "a", &load(Lifetime::Kept), seen(1000));
        let rules: Vec<&str> = found.iter().map(|r| &r.reason.rule[..]).collect();
        assert_eq!(rules, ["generator-starved"]);
        let many = reasons(&part, "a", &load(Lifetime::Kept), seen(100_000));
        assert!(many.is_empty(), "a few among many buffers are nothing");
        let large = Seen {
            received_bytes: 1000 << 20,
            ..seen(1000)
        };
        assert!(reasons(&part, "a", &load(Lifetime::Kept), large).is_empty());
    }

    #[test]
    fn full_listen_queues_count_as_far_as_connections_were_opened() {
        let rules = |asking: ConnectionCounts, origin_connects| {
            let mut part = part(asking, counts(0, 0, 0, 0));
            part.listen_overflows = 500;
            let seen = Seen {
                origin_connects,
                ..seen(10_000)
            };
            reasons(&part, "a", &load(Lifetime::Kept), seen).len()
        };
        let kept = counts(50, 50, 50, 50);
        assert_eq!(rules(kept, 0), 0, "nobody opened one: they are another's");
        assert_eq!(rules(kept, 10), 0, "one in a thousand at most");
        assert_eq!(rules(kept, 11), 1);
        assert_eq!(rules(counts(50, 50, 50, 1050), 0), 1);
    }

    #[test]
    fn full_queues_of_arms_that_have_their_own_count_are_no_reason_to_doubt() {
        let mut part = part(counts(50, 50, 50, 1050), counts(0, 0, 0, 0));
        part.listen_overflows = 500;
        part.arms[0].listen_overflows = Some(500);
        let found = |part: &PartRecord| reasons(part, "a", &load(Lifetime::Kept), seen(10_000));
        assert!(found(&part).is_empty());
        part.listen_overflows = 600;
        let rest = found(&part);
        assert!(
            rest[0]
                .reason
                .seen
                .starts_with("100 connections on this host")
        );
        let both = together([&part, &part].into_iter(), "a").and_then(|own| own.listen_overflows);
        assert_eq!(both, Some(1000));
        let mut unknown = part.clone();
        unknown.arms[0].listen_overflows = None;
        let both =
            together([&part, &unknown].into_iter(), "a").and_then(|own| own.listen_overflows);
        assert_eq!(both, None);
    }

    #[test]
    fn blocks_belong_to_the_part_of_their_session() {
        let part = PartRecord {
            session: 1,
            first_block: 10,
            blocks: 5,
            ..PartRecord::default()
        };
        assert!(holds(&part, 1, 10) && holds(&part, 1, 14));
        assert!(!holds(&part, 1, 15) && !holds(&part, 1, 9) && !holds(&part, 0, 12));
    }
}
