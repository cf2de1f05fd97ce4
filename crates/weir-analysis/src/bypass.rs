//! Whether what an arm's name promises was carried past the kernel's TCP.

use weir_model::record::{CountersRecord, Record, TrialRecord};
use weir_model::study::{ProxyRole, Study};
use weir_parameters::{Catalog, Hop};
use weir_record::Run;

use crate::part;
use crate::validity::{Limits, Reason, graded, percent};

/// Bytes of a hop that went by TCP though the arm is to go past it. Below one half an effect is mostly
/// TCP's; without a byte there is none.
const BY_TCP: Limits = Limits {
    suspect: 0.5,
    // Exclusive: it takes every byte.
    invalid: 1.0 - f64::EPSILON,
};

/// Sockets of a hop that the bypass had no place for. Their bytes went by TCP and are in no share, so
/// the first one is said.
const REFUSED: Limits = Limits {
    suspect: 0.0,
    invalid: f64::INFINITY,
};

/// Why a trial of a bypassed arm is to be doubted: by what the bypass counted on each hop in the
/// continuous trial that it was part of. Of one that was cut short nothing is known.
pub(crate) fn reasons(run: &Run, trial: &TrialRecord) -> Vec<Reason> {
    let hops = hops(&run.header.study, &trial.arm);
    if hops.is_empty() {
        return Vec::new();
    }
    let mut parts = run.parts(&trial.load);
    let Some(part) = parts.find(|part| part::holds(part, trial.session, trial.block)) else {
        return Vec::new();
    };
    let counted = run.records.iter().find_map(|record| match record {
        Record::Counters(own)
            if own.arm == trial.arm
                && own.load == part.load
                && (own.session, own.first_block) == (part.session, part.first_block) =>
        {
            Some(own)
        }
        _ => None,
    });
    let of_hop = |hop: &&str| [idle(hop, counted), refused(hop, counted)];
    hops.iter().flat_map(of_hop).flatten().collect()
}

/// The hops that an arm's bytes are to go past TCP on.
fn hops(study: &Study, arm: &str) -> Vec<&'static str> {
    let Some(arm) = study.arms.iter().find(|known| known.name == arm) else {
        return Vec::new();
    };
    let has_origin = !matches!(study.proxy_of(arm).role, ProxyRole::StaticFiles { .. });
    let hops = Catalog::builtin().bypassed(&arm.settings).into_iter();
    hops.filter(|hop| has_origin || *hop == Hop::Inbound)
        .map(Hop::name)
        .collect()
}

/// What the bypass counted on a hop; nothing where nobody did.
fn count(hop: &str, counted: Option<&CountersRecord>, name: &str) -> u64 {
    let count = counted.and_then(|own| own.counted.get(&format!("sockmap.{hop}.{name}")));
    count.copied().unwrap_or(0)
}

fn idle(hop: &str, counted: Option<&CountersRecord>) -> Option<Reason> {
    let of = |name: &str| count(hop, counted, name);
    let (past, by_tcp) = (of("redirected_bytes"), of("tcp_bytes"));
    let share = match past {
        0 => 1.0,
        _ => (by_tcp as f64 / (past as f64 + by_tcp as f64)).min(BY_TCP.invalid),
    };
    graded("bypass-idle", share, BY_TCP, || match past {
        0 => format!("not a byte of the {hop} hop went past TCP, which this arm is about"),
        _ => format!(
            "only {} of the bytes of the {hop} hop went past TCP ({} messages by TCP, of {})",
            percent(1.0 - share),
            of("tcp"),
            of("tcp") + of("redirected")
        ),
    })
}

fn refused(hop: &str, counted: Option<&CountersRecord>) -> Option<Reason> {
    let of = |name: &str| count(hop, counted, name);
    let (refused, taken_in) = (of("refused"), of("sockets"));
    let share = refused as f64 / (refused as f64 + taken_in as f64).max(1.0);
    graded("bypass-refused", share, REFUSED, || {
        format!(
            "{refused} sockets of the {hop} hop ({}) found no place in the bypass, and what they sent \
             went by TCP uncounted",
            percent(share)
        )
    })
}
