//! Changes that took no effect, found by the counter that the catalog names for their purpose.

use std::collections::BTreeMap;

use weir_model::record::{ProxyRecord, Record};
use weir_model::study::{Arm, ArmRole, LoadSpec};
use weir_model::tls::Resumption;
use weir_parameters::{Catalog, Counter, ShownBy, Shows};
use weir_record::Run;

use crate::findings::{ArmFindings, Ineffective};

/// Minimum change of a counter, as a share of the larger value, if a change takes effect.
const LEAST: f64 = 0.05;

/// Distance of a counter from its end, below which there is nothing left to improve.
const NEAR: f64 = 0.01;

/// Minimum number of handshakes of an arm for a statement about the share that is resumed.
const LEAST_HANDSHAKES: u64 = 100;

/// Returns the last record of each arm's proxy: a proxy that is started again is read again.
pub(crate) fn proxies(run: &Run) -> BTreeMap<&str, &ProxyRecord> {
    run.records
        .iter()
        .filter_map(|record| match record {
            Record::Proxy(proxy) => Some((&*proxy.arm, proxy)),
            _ => None,
        })
        .collect()
}

/// Returns the changes that did not take effect under a load, in the order of the arms. Considers only settings that an
/// arm switches on and that are off in the arm that it is compared with.
pub(crate) fn ineffective(run: &Run, load: &LoadSpec, arms: &[ArmFindings]) -> Vec<Ineffective> {
    let (study, catalog, proxies) = (&run.header.study, Catalog::builtin(), proxies(run));
    let changes = study.arms.iter().enumerate().filter(|(_, arm)| arm.role == ArmRole::Change);
    let mut ineffective = Vec::new();
    for (index, arm) in changes {
        let Some(against) = study.arms.get(arm.against) else {
            continue;
        };
        let (Some(ours), Some(theirs)) = (arms.get(index), arms.get(arm.against)) else {
            continue;
        };
        let kind = study.proxy_of(arm).kind;
        if study.proxy_of(against).kind != kind {
            continue;
        }
        for (id, wanted) in &arm.changes {
            let Some(row) = catalog.get(kind, id) else {
                continue;
            };
            let Some(shows) = row.shows.as_ref().filter(|shows| shows.is_on(wanted)) else {
                continue;
            };
            if level_of(&proxies, against, id).is_none_or(|level| shows.is_on(&level)) {
                continue;
            }
            let [value, other] = [ours, theirs].map(|arm| counted(shows.counter, load, arm));
            let Some((value, other)) = value.zip(other) else {
                continue;
            };
            if !has_moved(shows, value, other) {
                ineffective.push(Ineffective {
                    arm: arm.name.clone(),
                    against: against.name.clone(),
                    id: id.clone(),
                    level: wanted.clone(),
                    counter: shows.counter,
                    value,
                    other,
                    because: row.hindrance(|other| level_of(&proxies, arm, other)),
                });
            }
        }
    }
    ineffective
}

/// Returns the level of a setting as the arm's proxy was read, or else as the arm sets it.
fn level_of(proxies: &BTreeMap<&str, &ProxyRecord>, arm: &Arm, id: &str) -> Option<String> {
    let read = proxies.get(&*arm.name).and_then(|proxy| proxy.effective.get(id));
    read.or_else(|| arm.settings.get(id)).cloned()
}

/// Returns true if a counter differs between an arm that switches something on and one that has it off, or if it had no
/// room to move.
fn has_moved(shows: &Shows, on: f64, off: f64) -> bool {
    let (more, less, is_done) = match shows.goes {
        ShownBy::Down => (off, on, off < NEAR),
        ShownBy::Up => (on, off, off > 1.0 - NEAR),
    };
    is_done || more - less > LEAST * more
}

/// Returns a counter of an arm under a load; `None` if it is not known.
fn counted(counter: Counter, load: &LoadSpec, arm: &ArmFindings) -> Option<f64> {
    match counter {
        Counter::OriginConnections => arm.origin_connects_per_request,
        Counter::ReceivedBytes => {
            let bytes = arm.received_per_second? / arm.rate_completed;
            bytes.is_finite().then_some(bytes)
        }
        Counter::ResumedHandshakes => {
            let resumes = load
                .flows()
                .filter_map(|flow| flow.tls.as_ref())
                .any(|tls| tls.resumption != Resumption::Off);
            let tls = arm.connections.as_ref()?.tls.as_ref()?;
            let is_enough = resumes && tls.handshakes >= LEAST_HANDSHAKES;
            is_enough.then(|| tls.resumed as f64 / tls.handshakes as f64)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_moves_by_a_twentieth_the_right_way_or_has_nowhere_to_go() {
        for (goes, on, off, expected) in [
            (ShownBy::Down, 1.0, 1.0, false),
            (ShownBy::Down, 0.96, 1.0, false),
            (ShownBy::Down, 0.94, 1.0, true),
            (ShownBy::Down, 1.0, 0.5, false),
            (ShownBy::Down, 0.004, 0.004, true),
            (ShownBy::Down, 0.0, 0.0, true),
            (ShownBy::Up, 0.0, 0.0, false),
            (ShownBy::Up, 0.5, 0.0, true),
            (ShownBy::Up, 0.5, 0.9, false),
            (ShownBy::Up, 0.995, 0.995, true),
        ] {
            let shows = Shows { counter: Counter::OriginConnections, goes, off: Vec::new() };
            assert_eq!(has_moved(&shows, on, off), expected, "{goes:?} {on} {off}");
        }
    }
}
