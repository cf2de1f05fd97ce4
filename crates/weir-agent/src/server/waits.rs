//! Sample rows of things that proxies do not log: waits in accept queues, and retransmitted segments. They are
//! available only if weir may use eBPF.

use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;

use weir_model::sample::{MissingCounter, SampleRow};
use weir_probe::WaitMeter;
use weir_probe::sample::PROXY;
use weir_probe::waits::{BUCKETS, Listens, Waits};

use super::arm::Arm;
use crate::message::Failure;

/// Names of the tables.
const ACCEPT: &str = "accept_waits";
const AGAIN: &str = "retransmits";

/// Keys of the table `retransmits`.
const SIDES: [&str; 3] = ["inbound", "outbound", "clients"];

/// Converts the readings of a meter to rows.
#[derive(Default)]
pub(super) struct WaitRows {
    meter: Option<WaitMeter>,
    arms: Vec<String>,
    /// True if clients are on this host.
    has_clients: bool,
    /// Last reading of each arm; `None` before the first.
    told: Vec<Option<Waits>>,
}

/// Returns the listeners of an arm.
pub(super) fn listens(
    arm: &Arm,
    addresses: Vec<SocketAddr>,
    is_alone: bool,
) -> Result<Listens, Failure> {
    let namespace = arm
        .keeper()
        .run(|| std::fs::metadata("/proc/thread-self/ns/net").map(|found| found.ino()))?
        .map_err(Failure::other)?;
    Ok(Listens { namespace, addresses, is_alone })
}

impl WaitRows {
    /// Starts a meter. If that fails, returns the tables as missing.
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

    /// Returns all counters at the first call, so that readers see where counters start anew, and later only those that
    /// have changed.
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
            let has_clients = self.has_clients;
            let earlier = before.map(|waits| list_sides(waits, has_clients));
            let sides = SIDES.into_iter().zip(list_sides(now, has_clients));
            for (side, (name, now)) in sides.enumerate() {
                if now.is_some() && earlier.is_none_or(|earlier| earlier[side] != now) {
                    row(AGAIN, name.to_owned(), vec![now]);
                }
            }
        }
        rows
    }
}

fn list_sides(waits: Waits, has_clients: bool) -> [Option<u64>; 3] {
    [Some(waits.inbound), waits.outbound, has_clients.then_some(waits.clients)]
}
