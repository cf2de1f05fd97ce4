//! Activity of resting arms: CPU time used beside the arm that was measured, and connections that they closed.

use weir_model::record::Record;
use weir_record::Run;

use crate::blocks::LoadData;
use crate::findings::{ArmFindings, RestingActivity, RestingArm};
use crate::outcomes::sum;

/// Share of a CPU from which on a resting arm is named: as much as an effect that studies look for.
const LEAST_CPUS: f64 = 0.01;

/// Parameters that set how long a proxy keeps an idle client connection; the first one that is set is in force.
const TIMEOUT_PARAMETERS: [&str; 3] =
    ["keepalive_timeout", "timeout_http_keep_alive", "timeout_client"];

/// Returns the arm that used the most CPU time while it rested, and the one that closed the most connections.
pub(crate) fn find(run: &Run, data: &LoadData<'_>, arms: &[ArmFindings]) -> Vec<RestingArm> {
    let busy = arms.iter().enumerate().map(|(arm, found)| (share(data, arm), found));
    let busy: Vec<_> = busy.filter(|(share, _)| *share > LEAST_CPUS).collect();
    let busiest = busy.iter().max_by(|a, b| a.0.total_cmp(&b.0)).map(|(cpus, found)| RestingArm {
        arm: found.arm.clone(),
        activity: RestingActivity::UsedCpu { cpus: *cpus },
        others: busy.len() as u32 - 1,
    });
    let closed = arms.iter().enumerate().map(|(arm, found)| (lost(found), arm, found));
    let closed: Vec<_> = closed.filter(|(lost, ..)| *lost > 0).collect();
    let most = closed.iter().max_by_key(|(lost, ..)| *lost).map(|(connections, arm, found)| {
        let slices = data.usable_of(*arm).flat_map(|trial| &trial.slices);
        RestingArm {
            arm: found.arm.clone(),
            activity: RestingActivity::ClosedConnections {
                connections: *connections,
                longest_rest_ns: slices.map(|slice| slice.rest_ns).max().unwrap_or(0),
                timeout: timeout(run, &found.arm),
            },
            others: closed.len() as u32 - 1,
        }
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

/// Returns the proxy's setting for how long it keeps idle connections; `None` if it is not known.
fn timeout(run: &Run, arm: &str) -> Option<(String, String)> {
    let effective = run.records.iter().rev().filter_map(|record| match record {
        Record::Proxy(proxy) if proxy.arm == arm => Some(&proxy.effective),
        _ => None,
    });
    effective
        .flat_map(|effective| TIMEOUT_PARAMETERS.map(|id| effective.get_key_value(id)))
        .flatten()
        .next()
        .map(|(id, value)| (id.clone(), value.clone()))
}
