//! Hardware facts of a host, and how quiet the host is while nothing is measured.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::thread;
use std::time::Duration;

use weir_model::quantity::CpuSet;
use weir_model::record::{CardFacts, HoldUps, HostFacts, Unmeasured};
use weir_probe::{Machine, source_towards};

use super::watch::{SharedMeter, lock};
use crate::message::{FactsJob, Failure};

/// Time over which hold-ups of CPUs are measured.
const WATCHED: Duration = Duration::from_millis(200);

/// Collects the facts about this host.
pub(super) fn facts(job: &FactsJob, meter: &SharedMeter) -> Result<HostFacts, Failure> {
    let roles = [&job.generator, &job.proxy, &job.origin];
    let cpus =
        CpuSet::new(roles.into_iter().flatten().flat_map(|set| set.cpus().to_vec()).collect())
            .ok_or_else(|| Failure::other("a host without roles"))?;
    let mut missing = Vec::new();
    let machine = Machine::default();
    let governors = known(machine.governors(&cpus), "frequency governor", &mut missing);
    let siblings = known(machine.siblings(&cpus), "threads of a core", &mut missing);
    let nodes: BTreeMap<u32, CpuSet> = known(machine.nodes(), "NUMA nodes", &mut missing);
    let mut cards: Vec<CardFacts> = Vec::new();
    for &address in &job.towards {
        match card(&machine, address) {
            Ok(card) if cards.contains(&card) => {}
            Ok(card) => cards.push(card),
            Err(why) => {
                missing.push(Unmeasured::new(format!("network card towards {address}"), why));
            }
        }
    }
    let held_up = watch_hold_ups(job, &cpus, meter);
    let watched_ns = held_up.is_ok() as u64 * WATCHED.as_nanos() as u64;
    Ok(HostFacts {
        governors,
        siblings,
        nodes,
        cards,
        held_up: known(held_up, "hold-ups", &mut missing),
        watched_ns,
        unmeasured: missing,
    })
}

/// Returns what was read. After an error, adds the reason to `missing` and returns the default value.
fn known<T: Default>(read: Result<T, String>, what: &str, missing: &mut Vec<Unmeasured>) -> T {
    read.unwrap_or_else(|why| {
        missing.push(Unmeasured::new(what, why));
        T::default()
    })
}

/// Returns the network card through which bytes go to an address.
fn card(machine: &Machine, address: IpAddr) -> Result<CardFacts, String> {
    let source = source_towards(address).ok_or("there is no way to it")?;
    let interface = weir_host::interface_with(source).map_err(|error| error.to_string())?;
    let name = interface.ok_or_else(|| format!("no interface has {source}"))?.name;
    machine.card(&name).ok_or_else(|| format!("{name} is not a card's"))
}

/// Measures for how long the CPUs stand still while the run does nothing.
fn watch_hold_ups(job: &FactsJob, cpus: &CpuSet, meter: &SharedMeter) -> Result<HoldUps, String> {
    {
        let mut meter = lock(meter);
        let watched = meter.watch(cpus.cpus().iter().copied());
        watched.map_err(|error| error.to_string())?;
        let watched = meter.belong(Some(BTreeSet::from([std::process::id()])));
        watched.map_err(|error| error.to_string())?;
        meter.turn();
    }
    thread::sleep(WATCHED);
    let mut meter = lock(meter);
    meter.turn();
    let [proxy, generator, origin] = [&job.proxy, &job.generator, &job.origin]
        .map(|set| set.as_ref().and_then(|set| meter.held_up(set)));
    Ok(HoldUps { proxy, generator, origin })
}
