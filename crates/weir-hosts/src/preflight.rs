//! Checks for foreseeable failures before anything is started.

use std::path::Path;

use weir_model::quantity::CpuSet;
use weir_model::room::{self, Descriptors};
use weir_model::study::{CpuRoles, LoadSpec, ProxyKind, Study};
use weir_proposers::budget::plan_of;

use crate::error::HostError;
use crate::host::Host;
use crate::hosts::Hosts;
use crate::options::Role;

/// Estimated bytes of logs for one second of trial, on a fast machine with long lines.
const LOG_BYTES_PER_SECOND: u64 = 8 << 20;

/// Estimated bytes of records and histograms for each arm and block.
const RECORD_BYTES: u64 = 12 << 10;

/// Checks the disk space for logs (in the folder for temporary files) and records.
pub fn disk_space(study: &Study, run_folder: &Path, proxies: &Host) -> Result<(), HostError> {
    let plan = plan_of(study);
    let seconds: u64 = plan.iter().map(|(_, _, length)| length.as_secs()).sum();
    let blocks: u64 = plan.iter().map(|(_, blocks, _)| u64::from(*blocks)).sum();
    // What weir did not start writes its logs elsewhere.
    let is_started = study.proxy_kinds().into_iter().any(ProxyKind::is_started);
    let logs = u64::from(is_started) * seconds * LOG_BYTES_PER_SECOND;
    let records = (16 << 20) + blocks * study.arms.len() as u64 * RECORD_BYTES;
    let is = &proxies.is;
    room(&proxies.at(&is.temp_folder), is.temp_free_bytes, logs)?;
    let parent = run_folder.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("."));
    room(parent, weir_probe::free_disk_bytes(parent)?, records)
}

fn room(path: &Path, free: u64, needed: u64) -> Result<(), HostError> {
    if free >= needed {
        return Ok(());
    }
    Err(HostError::DiskSpace {
        path: path.to_owned(),
        free_mib: free >> 20,
        needed_mib: needed >> 20,
    })
}

/// Checks that descriptors and ports suffice for all connections of the generators and the origin server, and
/// descriptors for the proxies' start.
///
/// # Errors
/// For some load, a generator has more connections than descriptors, even with as many threads as it can have, or more
/// than ports; or the origin server's process has more connections than descriptors; or proxies cannot be given their
/// limit.
pub fn connections(study: &Study, roles: &CpuRoles, hosts: &Hosts) -> Result<(), HostError> {
    let cpus = roles.generator.cpus().len() as u64;
    study.loads.iter().try_for_each(|load| {
        generators(study, load, hosts).try_for_each(|(generator, wanted)| {
            // First as many as one thread would need: what is not there then takes more threads.
            let limit = generator.is.most_descriptors;
            enough(wanted.for_each_of(wanted.threads(limit, cpus)), generator)?;
            ports(load, hosts, generator)
        })
    })?;
    if study.proxy_kinds().into_iter().any(ProxyKind::is_started) {
        enough(room::STOCK_NOFILE, hosts.host(Role::Proxy))?;
    }
    let arms = study.arms.len() as u64;
    if hosts.meet(Role::Generator, Role::Origin) || !Hosts::has_origin(study) {
        Ok(())
    } else {
        enough(room::OF_STUDY + room::at_origin(&study.loads, arms), hosts.host(Role::Origin))
    }
}

pub fn enough(needed: u64, host: &Host) -> Result<(), HostError> {
    let limit = host.is.most_descriptors;
    if needed <= limit {
        Ok(())
    } else {
        Err(HostError::Descriptors { host: host.called().to_owned(), needed, limit })
    }
}

/// Checks that a generator has enough local ports: between hosts it has one address, and each arm listens on a port of
/// its own.
pub fn ports(load: &LoadSpec, hosts: &Hosts, generator: &Host) -> Result<(), HostError> {
    let needed = (load.asking() + load.held()).div_ceil(hosts.generators().len() as u64);
    let ports = generator.is.local_ports;
    if needed <= ports || hosts.together() {
        Ok(())
    } else {
        Err(HostError::Ports {
            load: load.name.clone(),
            host: generator.called().to_owned(),
            needed,
            ports,
        })
    }
}

/// Share of each generator in a load.
pub struct LoadShare {
    /// Number of generators that have a share: no more than the load's smallest flow has connections.
    pub generators: u32,
    /// Threads of each generator, with the CPUs that they are bound to: one for each CPU, and more, in turn, if
    /// connections need the descriptors of more threads.
    pub threads: Vec<Option<u32>>,
    /// Number of descriptors that each thread may need.
    pub descriptors: u64,
}

/// Divides a load into equal shares for all generators.
pub fn deal_load(study: &Study, load: &LoadSpec, hosts: &Hosts, cpus: &CpuSet) -> LoadShare {
    let with_room = generators(study, load, hosts);
    let generators = with_room.clone().count() as u32;
    let (threads, descriptors) = with_room
        .map(|(host, wanted)| {
            let threads = wanted.threads(host.is.most_descriptors, cpus.cpus().len() as u64);
            (threads, wanted.at_most())
        })
        .reduce(|one, other| (one.0.max(other.0), one.1.max(other.1)))
        .unwrap_or((1, 0));
    let bound = cpus.cpus().iter().copied().map(Some).cycle();
    LoadShare { generators, threads: bound.take(threads as usize).collect(), descriptors }
}

/// Returns the generators that have a share of a load, and the descriptors that each needs.
fn generators<'h>(
    study: &Study,
    load: &LoadSpec,
    hosts: &'h Hosts,
) -> impl Iterator<Item = (&'h Host, Descriptors)> + Clone {
    let arms = study.arms.len() as u64;
    let all = hosts.generators().len() as u64;
    let one_table = Descriptors::of_load(load, arms, false, false);
    let count = all.min(one_table.most_threads).max(1);
    let origin = Hosts::has_origin(study).then(|| hosts.host(Role::Origin));
    let with_room = hosts.generators().take(count as usize).map(|host| {
        // Simulated hosts are one, whichever of them is asked.
        let at_origin = origin.is_some_and(|origin| {
            std::ptr::eq(origin, host) || hosts.share(Role::Generator, Role::Origin)
        });
        let needed = Descriptors::of_load(load, arms, at_origin, host.is.own_tables);
        (host, needed.of_study().dealt(count))
    });
    with_room.collect::<Vec<_>>().into_iter()
}
