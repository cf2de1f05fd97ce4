//! What can be known to fail before anything is started.

use std::path::Path;

use weir_model::quantity::CpuSet;
use weir_model::room::{self, Descriptors};
use weir_model::study::{CpuRoles, LoadSpec, ProxyKind, Study};

use crate::LabError;
use crate::budget::plan_of;
use crate::host::Host;
use crate::hosts::Hosts;
use crate::options::Role;

/// Bytes of logs that one second of trial may write, on a fast machine with long lines.
const LOG_BYTES_PER_SECOND: u64 = 8 << 20;

/// Bytes of records and histograms for each arm and block.
const RECORD_BYTES: u64 = 12 << 10;

/// Room for logs (in the folder for temporary files) and records.
pub(crate) fn disk_space(study: &Study, run_folder: &Path, proxies: &Host) -> Result<(), LabError> {
    let plan = plan_of(study);
    let seconds: u64 = plan.iter().map(|(_, _, length)| length.as_secs()).sum();
    let blocks: u64 = plan.iter().map(|(_, blocks, _)| u64::from(*blocks)).sum();
    // What weir did not start writes its logs elsewhere.
    let is_started = study.proxy_kinds().into_iter().any(ProxyKind::is_started);
    let logs = u64::from(is_started) * seconds * LOG_BYTES_PER_SECOND;
    let records = (16 << 20) + blocks * study.arms.len() as u64 * RECORD_BYTES;
    let is = &proxies.is;
    room(&proxies.at(&is.temp_folder), is.temp_free_bytes, logs)?;
    let parent = run_folder.ancestors().find(|folder| folder.exists());
    let parent = parent.unwrap_or(Path::new("."));
    room(parent, weir_probe::free_disk_bytes(parent)?, records)
}

fn room(path: &Path, free: u64, needed: u64) -> Result<(), LabError> {
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

/// Whether there is room for all connections of the generator and the origin server.
///
/// # Errors
/// Some load has more connections than the generator's process, or as many threads of it as it can
/// have, may have descriptors, or than it has ports; or than the origin server's process may have.
pub(crate) fn connections(study: &Study, roles: &CpuRoles, hosts: &Hosts) -> Result<(), LabError> {
    let generator = hosts.host(Role::Generator);
    study.loads.iter().try_for_each(|load| {
        let wanted = descriptors(study, load, hosts);
        // First as many as one thread would need: what is not there then takes more threads.
        let limit = generator.is.most_descriptors;
        let cpus = roles.generator.cpus().len() as u64;
        enough(wanted.for_each_of(wanted.threads(limit, cpus)), generator)?;
        ports(load, hosts)
    })?;
    let arms = study.arms.len() as u64;
    match hosts.share(Role::Generator, Role::Origin) || !Hosts::has_origin(study) {
        true => Ok(()),
        false => enough(
            room::at_origin(&study.loads, arms),
            hosts.host(Role::Origin),
        ),
    }
}

fn enough(needed: u64, host: &Host) -> Result<(), LabError> {
    let limit = host.is.most_descriptors;
    match needed <= limit {
        true => Ok(()),
        false => Err(LabError::Descriptors {
            host: host.called().to_owned(),
            needed,
            limit,
        }),
    }
}

/// Between hosts the generator has one address, and each arm a port of its own to be asked at.
fn ports(load: &LoadSpec, hosts: &Hosts) -> Result<(), LabError> {
    let generator = hosts.host(Role::Generator);
    let needed = load.asking() + load.held();
    let ports = generator.is.local_ports;
    match needed <= ports || hosts.together() {
        true => Ok(()),
        false => Err(LabError::Ports {
            load: load.name.clone(),
            host: generator.called().to_owned(),
            needed,
            ports,
        }),
    }
}

/// The generator's threads under a load, each with the CPU that it is bound to: one for each CPU,
/// and more, in turn, where connections need the descriptors of more of them. And the descriptors
/// that each may need.
pub(crate) fn threads(
    study: &Study,
    load: &LoadSpec,
    hosts: &Hosts,
    cpus: &CpuSet,
) -> (Vec<Option<u32>>, u64) {
    let wanted = descriptors(study, load, hosts);
    let limit = hosts.host(Role::Generator).is.most_descriptors;
    let threads = wanted.threads(limit, cpus.cpus().len() as u64);
    let cpus = cpus.cpus().iter().copied().map(Some).cycle();
    let threads: Vec<Option<u32>> = cpus.take(threads as usize).collect();
    (threads, wanted.at_most())
}

fn descriptors(study: &Study, load: &LoadSpec, hosts: &Hosts) -> Descriptors {
    let at_origin = hosts.share(Role::Generator, Role::Origin) && Hosts::has_origin(study);
    let own_tables = hosts.host(Role::Generator).is.own_tables;
    Descriptors::of_load(load, study.arms.len() as u64, at_origin, own_tables)
}
