//! What can be known to fail before anything is started.

use std::path::Path;
use std::time::Duration;

use weir_load::descriptors::make_room;
use weir_model::quantity::CpuSet;
use weir_model::study::{CpuRoles, LoadSpec, ProxyRole, Study};

use crate::LabError;
use crate::cpus;

/// Descriptors beside connections: logs, listeners, counters, the run folder.
const OTHER_DESCRIPTORS: u64 = 64;

/// Longest slice that a pilot may choose; what a study without a slice is planned with.
const PLANNED_SLICE: Duration = Duration::from_millis(100);

/// Bytes of logs that one second of trial may write, on a fast machine with long lines.
const LOG_BYTES_PER_SECOND: u64 = 8 << 20;

/// Bytes of records and histograms for each arm and block.
const RECORD_BYTES: u64 = 12 << 10;

/// The CPUs of each role: those that the study names, or a share of those that weir may use.
pub(crate) fn cpu_roles(study: &Study) -> Result<CpuRoles, LabError> {
    let allowed = weir_probe::allowed_cpus()?;
    let Some(roles) = &study.cpus else {
        return Ok(cpus::share_out(&allowed));
    };
    for wanted in [&roles.proxy, &roles.generator, &roles.origin] {
        if wanted.shared_with(&allowed).len() != wanted.cpus().len() {
            let (wanted, allowed) = (wanted.to_string(), allowed.to_string());
            return Err(LabError::Cpus { wanted, allowed });
        }
    }
    Ok(roles.clone())
}

/// Blocks of one load when a slice lasts `slice`.
pub(crate) fn blocks(study: &Study, load: &LoadSpec, slice: Duration) -> u32 {
    let block = slice * 2 * study.arms.len() as u32;
    let fit = load.duration.as_nanos() / block.as_nanos().max(1);
    (fit.min(u128::from(u32::MAX)) as u32).max(study.blocks.at_least)
}

/// How many blocks each load is planned to have, and how long its trial takes; the pilot may
/// change the number, and nearly never the length.
pub fn plan_of(study: &Study) -> Vec<(String, u32, Duration)> {
    let slice = study.blocks.slice.unwrap_or(PLANNED_SLICE);
    let plan = study.loads.iter().map(|load| {
        let blocks = blocks(study, load, slice);
        (
            load.name.clone(),
            blocks,
            slice * 2 * study.arms.len() as u32 * blocks,
        )
    });
    plan.collect()
}

/// Room for logs (in the folder for temporary files) and records.
pub(crate) fn disk_space(study: &Study, run_folder: &Path) -> Result<(), LabError> {
    let plan = plan_of(study);
    let seconds: u64 = plan.iter().map(|(_, _, length)| length.as_secs()).sum();
    let blocks: u64 = plan.iter().map(|(_, blocks, _)| u64::from(*blocks)).sum();
    let logs = seconds * LOG_BYTES_PER_SECOND;
    let records = (16 << 20) + blocks * study.arms.len() as u64 * RECORD_BYTES;
    room(&std::env::temp_dir(), logs)?;
    let parent = run_folder.ancestors().find(|folder| folder.exists());
    room(parent.unwrap_or(Path::new(".")), records)
}

fn room(path: &Path, needed: u64) -> Result<(), LabError> {
    let free = weir_probe::free_disk_bytes(path)?;
    if free >= needed {
        return Ok(());
    }
    let path = path.to_owned();
    Err(LabError::DiskSpace {
        path,
        free_mib: free >> 20,
        needed_mib: needed >> 20,
    })
}

/// Makes room for all connections of the generator and the origin server, which are weir's own.
pub(crate) fn descriptors(study: &Study) -> Result<(), LabError> {
    let hops = if study.proxy.role == ProxyRole::ReverseProxy {
        2
    } else {
        1
    };
    // What is held asks nothing, so the origin server never hears of it.
    let of_load = |load: &LoadSpec| u64::from(load.connections) * hops + u64::from(load.held);
    let most = study.loads.iter().map(of_load).max().unwrap_or(0);
    let arms = study.arms.len() as u64;
    let needed = most * arms + arms * 4 + OTHER_DESCRIPTORS;
    make_room(needed).map_err(|limit| LabError::Descriptors { needed, limit })
}

/// Keeps weir itself (the thread that calls, and all that it starts) off the proxy's CPUs.
pub(crate) fn keep_to(cpus: &CpuSet) {
    let mut set = rustix::thread::CpuSet::new();
    cpus.cpus().iter().for_each(|&cpu| set.set(cpu as usize));
    // The set was checked; if a CPU has gone offline since, the kernel's choice is as good.
    let _ = rustix::thread::sched_setaffinity(None, &set);
}
