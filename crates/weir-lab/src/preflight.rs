//! What can be known to fail before anything is started.

use std::path::Path;
use std::time::Duration;

use weir_model::quantity::CpuSet;
use weir_model::record::Phase;
use weir_model::room::{self, Descriptors};
use weir_model::study::{CpuRoles, LoadSpec, Study};

use crate::LabError;
use crate::history::History;
use crate::host::Host;
use crate::hosts::Hosts;
use crate::options::Role;
use crate::pilot;
use crate::plan::{self, are_alike};
use crate::timeline::warm_up;

/// Longest slice that a pilot may choose; what a study without a slice is planned with.
const PLANNED_SLICE: Duration = Duration::from_millis(100);

/// Bytes of logs that one second of trial may write, on a fast machine with long lines.
const LOG_BYTES_PER_SECOND: u64 = 8 << 20;

/// Bytes of records and histograms for each arm and block.
const RECORD_BYTES: u64 = 12 << 10;

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

/// What a continuous trial takes beside its slices: connections are opened, counters read, answers waited for.
const PER_TRIAL: Duration = Duration::from_millis(250);

/// How long everything takes that earlier sessions have left, once all arms run. Starting them all took
/// `start`, and that is done again for every other instance.
pub(crate) fn takes(study: &Study, history: &History, start: Duration) -> Duration {
    let arms = study.arms.len() as u32;
    let mut piloted: Vec<&LoadSpec> = Vec::new();
    let each = study.loads.iter().map(|load| {
        let pilot = history.pilots.get(&load.name);
        let is_known = piloted.iter().any(|other| are_alike(other, load));
        piloted.push(load);
        let of_pilot = match (pilot, study.blocks.slice) {
            (None, None) if !is_known => length(arms, pilot::OF_PILOT, pilot::blocks(study, load)),
            _ => Duration::ZERO,
        };
        let slice = slice(study, history, load);
        let left = blocks(study, load, slice).saturating_sub(history.whole_blocks(&load.name));
        let parts: Vec<u32> = plan::parts(left, study.blocks.instances)
            .filter(|blocks| *blocks > 0)
            .collect();
        let renewals = start * (parts.len() as u32).saturating_sub(1);
        let measured: Duration = parts
            .iter()
            .map(|blocks| length(arms, slice, *blocks))
            .sum();
        of_pilot + measured + renewals
    });
    each.sum()
}

/// The slice of a load, as far as it is known.
pub(crate) fn slice(study: &Study, history: &History, load: &LoadSpec) -> Duration {
    let pilot = history.pilots.get(&load.name);
    let chosen = pilot.map(|pilot| Duration::from_nanos(pilot.slice_ns));
    chosen.or(study.blocks.slice).unwrap_or(PLANNED_SLICE)
}

/// A continuous trial of so many arms.
fn length(arms: u32, slice: Duration, blocks: u32) -> Duration {
    of_phase(Phase::Measurement, arms, slice, blocks)
}

/// The same in a phase.
pub(crate) fn of_phase(phase: Phase, arms: u32, slice: Duration, blocks: u32) -> Duration {
    (warm_up(slice, blocks, phase) + slice * 2 * blocks) * arms + slice + PER_TRIAL
}

/// Room for logs (in the folder for temporary files) and records.
pub(crate) fn disk_space(study: &Study, run_folder: &Path, proxies: &Host) -> Result<(), LabError> {
    let plan = plan_of(study);
    let seconds: u64 = plan.iter().map(|(_, _, length)| length.as_secs()).sum();
    let blocks: u64 = plan.iter().map(|(_, blocks, _)| u64::from(*blocks)).sum();
    let logs = seconds * LOG_BYTES_PER_SECOND;
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
