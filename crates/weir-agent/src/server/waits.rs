//! Rows of what proxies' logs cannot tell, where it is allowed to look: waits in accept queues, and segments that are
//! sent again.

use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;

use weir_model::sample::{MissingCounter, SampleRow};
use weir_probe::WaitMeter;
use weir_probe::sample::PROXY;
use weir_probe::waits::{BUCKETS, Listens, Waits};

use super::arm::Arm;
use crate::message::Failure;

/// The tables.
const ACCEPT: &str = "accept_waits";
const AGAIN: &str = "retransmits";

/// The keys of that.
const SIDES: [&str; 3] = ["inbound", "outbound", "clients"];

/// Reads a meter again and again.
#[derive(Default)]
pub(super) struct WaitRows {
    meter: Option<WaitMeter>,
    arms: Vec<String>,
    /// Whether clients are on this host.
    has_clients: bool,
    /// What was told of each arm; nothing before the first time.
    told: Vec<Option<Waits>>,
}

/// Where an arm listens.
pub(super) fn listens(
    arm: &Arm,
    addresses: Vec<SocketAddr>,
    is_alone: bool,
) -> Result<Listens, Failure> {
    let inode = || std::fs::metadata("/proc/thread-self/ns/net").map(|found| found.ino());
    let namespace = arm.keeper().run(inode)?.map_err(Failure::other)?;
    Ok(Listens {
        namespace,
        addresses,
        is_alone,
    })
}

impl WaitRows {
    /// Begins, or says why not.
    pub(super) fn begin(
        arms: Vec<(String, Listens)>,
        has_clients: bool,
    ) -> (WaitRows, Vec<MissingCounter>) {
        if arms.is_empty() {
            return (WaitRows::default(), Vec::new());
        }
        let (arms, listens): (Vec<_>, Vec<_>) = arms.into_iter().unzip();
        match WaitMeter::watch(&listens) {
            Ok(meter) => {
                let rows = WaitRows {
                    meter: Some(meter),
                    told: vec![None; arms.len()],
                    arms,
                    has_clients,
                };
                (rows, Vec::new())
            }
            Err(error) => {
                let missing = [ACCEPT, AGAIN].map(|table| MissingCounter {
                    table: table.to_owned(),
                    column: String::new(),
                    role: PROXY.to_owned(),
                    why: error.to_string(),
                });
                (WaitRows::default(), missing.to_vec())
            }
        }
    }

    /// Everything the first time, so that a reader sees where counters begin anew, and then what has changed.
    pub(super) fn read(&mut self, at_ns: u64) -> Vec<SampleRow> {
        let Some(meter) = &self.meter else {
            return Vec::new();
        };
        let mut rows = Vec::new();
        for (place, (arm, told)) in self.arms.iter().zip(&mut self.told).enumerate() {
            let Some(now) = meter.waits(place) else {
                continue;
            };
            let before = told.replace(now);
            let mut row = |table: &str, key: String, values: Vec<Option<u64>>| {
                rows.push(SampleRow {
                    table: table.to_owned(),
                    at_ns,
                    arm: arm.clone(),
                    keys: vec![key],
                    values,
                });
            };
            for bucket in 0..BUCKETS {
                let connections = now.connections[bucket];
                if before.is_none_or(|before| before.connections[bucket] != connections) {
                    let values = [connections, now.wait_ns[bucket] / 1000].map(Some);
                    row(ACCEPT, (1u64 << bucket).to_string(), values.to_vec());
                }
            }
            let sides = |waits: Waits| {
                let clients = self.has_clients.then_some(waits.clients);
                [Some(waits.inbound), waits.outbound, clients]
            };
            let before = before.map(sides);
            for (side, (name, now)) in SIDES.into_iter().zip(sides(now)).enumerate() {
                if now.is_some() && before.is_none_or(|before| before[side] != now) {
                    row(AGAIN, name.to_owned(), vec![now]);
                }
            }
        }
        rows
    }
}
