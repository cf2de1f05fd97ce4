//! What arms did while another one had the load: CPU time beside the arm that was measured, and connections that
//! they closed.

use weir_model::record::Record;
use weir_record::Run;

use crate::blocks::LoadData;
use crate::findings::ArmFindings;
use crate::names;
use crate::outcomes::sum;

/// From which share of a CPU on an arm that rests is named: as much as an effect that studies look for.
const MUCH: f64 = 0.01;

/// The parameters that say how long a proxy keeps an idle connection to a client; the first that is set is in force.
const KEPT: [&str; 3] = [
    "keepalive_timeout",
    "timeout_http_keep_alive",
    "timeout_client",
];

/// A sentence on the arm that used the most CPU time while it rested, and one on the arm that closed the most
/// connections; each says how many others did so too.
pub(crate) fn sentences(run: &Run, data: &LoadData<'_>, arms: &[ArmFindings]) -> Vec<String> {
    let each = || arms.iter().enumerate();
    let busy = each().map(|(arm, found)| (share(data, arm), arm, &*found.arm));
    let busy: Vec<_> = busy.filter(|(share, ..)| *share > MUCH).collect();
    let busiest = busy.iter().max_by(|a, b| a.0.total_cmp(&b.0));
    let busiest = busiest.map(|(share, _, name)| {
        format!(
            "The arm {name} used {:.1} % of a CPU while it rested, beside the arm that was measured{}.",
            share * 100.0,
            others(busy.len())
        )
    });
    let closed = each().map(|(arm, found)| (lost(found), arm, &*found.arm));
    let closed: Vec<_> = closed.filter(|(lost, ..)| *lost > 0).collect();
    let most = closed.iter().max_by_key(|(lost, ..)| *lost);
    let most = most.map(|(lost, arm, name)| {
        let slices = data.usable_of(*arm).flat_map(|trial| &trial.slices);
        let longest_ns = slices.map(|slice| slice.rest_ns).max().unwrap_or(0);
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

/// CPUs that an arm's proxy used while it rested.
fn share(data: &LoadData<'_>, arm: usize) -> f64 {
    let rest_ns = sum(data.usable_of(arm), |slice| slice.rest_ns);
    sum(data.usable_of(arm), |slice| slice.rest_cpu_ns) / rest_ns.max(1.0)
}

/// Connections that an arm closed while it rested.
fn lost(found: &ArmFindings) -> u64 {
    found.connections.as_ref().map_or(0, |connections| {
        connections.asking.lost_at_rest + connections.held.lost_at_rest
    })
}

/// How long the arm's proxy says that it keeps connections on which nothing is asked.
fn timeout(run: &Run, arm: &str) -> String {
    let records = run.records.iter().rev();
    let effective = records.filter_map(|record| match record {
        Record::Proxy(proxy) if proxy.arm == arm => Some(&proxy.effective),
        _ => None,
    });
    let said = effective.flat_map(|effective| KEPT.map(|id| Some((id, effective.get(id)?))));
    said.flatten()
        .next()
        .map_or_else(String::new, |(id, timeout)| {
            format!(" (its {id} is {timeout})")
        })
}

fn others(all: usize) -> String {
    match all {
        0 | 1 => String::new(),
        2 => "; so did another arm".to_owned(),
        all => format!("; so did {} other arms", all - 1),
    }
}
