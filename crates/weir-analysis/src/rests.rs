//! Activity of resting arms: CPU time used beside the arm that was measured, and connections that they closed.

use weir_model::record::Record;
use weir_record::Run;

use crate::blocks::LoadData;
use crate::findings::ArmFindings;
use crate::names;
use crate::outcomes::sum;

/// Share of a CPU from which on a resting arm is named: as much as an effect that studies look for.
const LEAST_CPUS: f64 = 0.01;

/// Parameters that set how long a proxy keeps an idle client connection; the first one that is set is in force.
const TIMEOUT_PARAMETERS: [&str; 3] =
    ["keepalive_timeout", "timeout_http_keep_alive", "timeout_client"];

/// Returns a sentence about the arm that used the most CPU time while it rested, and one about the arm that closed the
/// most connections. Each states how many others did so too.
pub(crate) fn sentences(run: &Run, data: &LoadData<'_>, arms: &[ArmFindings]) -> Vec<String> {
    let busy = arms.iter().enumerate().map(|(arm, found)| (share(data, arm), arm, &*found.arm));
    let busy: Vec<_> = busy.filter(|(share, ..)| *share > LEAST_CPUS).collect();
    let busiest = busy.iter().max_by(|a, b| a.0.total_cmp(&b.0)).map(|(share, _, name)| {
        format!(
            "The arm {name} used {:.1} % of a CPU while it rested, beside the arm that was measured{}.",
            share * 100.0,
            others(busy.len())
        )
    });
    let closed = arms.iter().enumerate().map(|(arm, found)| (lost(found), arm, &*found.arm));
    let closed: Vec<_> = closed.filter(|(lost, ..)| *lost > 0).collect();
    let most = closed.iter().max_by_key(|(lost, ..)| *lost).map(|(lost, arm, name)| {
        let longest_ns = data.usable_of(*arm).flat_map(|trial| &trial.slices).map(|slice| slice.rest_ns).max().unwrap_or(0);
        let plural = if *lost == 1 { "" } else { "s" };
        format!(
            "The arm {name} closed {} connection{plural} while it rested, for up to {:.1} s{}, and they were opened \
             again at once{}.",
            names::count(*lost),
            longest_ns as f64 / 1e9,
            timeout(run, name),
            others(closed.len())
        )
    });
    busiest.into_iter().chain(most).collect()
}

/// Returns the CPUs that an arm's proxy used while it rested.
fn share(data: &LoadData<'_>, arm: usize) -> f64 {
    let rest_ns = sum(data.usable_of(arm), |slice| slice.rest_ns);
    sum(data.usable_of(arm), |slice| slice.rest_cpu_ns) / rest_ns.max(1.0)
}

/// Returns the number of connections that an arm closed while it rested.
fn lost(found: &ArmFindings) -> u64 {
    found
        .connections
        .as_ref()
        .map_or(0, |connections| connections.asking.lost_at_rest + connections.held.lost_at_rest)
}

/// Returns a clause with the proxy's setting for how long it keeps idle connections; empty if it is unknown.
fn timeout(run: &Run, arm: &str) -> String {
    let effective = run.records.iter().rev().filter_map(|record| match record {
        Record::Proxy(proxy) if proxy.arm == arm => Some(&proxy.effective),
        _ => None,
    });
    effective
        .flat_map(|effective| TIMEOUT_PARAMETERS.map(|id| Some((id, effective.get(id)?))))
        .flatten()
        .next()
        .map_or_else(String::new, |(id, timeout)| format!(" (its {id} is {timeout})"))
}

fn others(all: usize) -> String {
    match all {
        0 | 1 => String::new(),
        2 => "; so did another arm".to_owned(),
        all => format!("; so did {} other arms", all - 1),
    }
}
