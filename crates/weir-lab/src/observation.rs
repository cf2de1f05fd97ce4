//! Samples of hosts while something else than the lab sends the load: `weir load --observe`.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use weir_agent::message::{SampleEnd, SampleJob};
use weir_agent::{AgentError, Part};
use weir_model::sample::MissingCounter;
use weir_record::{Sample, Samples};

use crate::LabError;
use crate::host::Told;
use crate::hosts::Hosts;
use crate::options::{Options, Role};

/// How long hosts may take to end their sampling.
const PATIENCE: Duration = Duration::from_secs(12);
/// Readings at most, of each host.
const MOST: usize = 10 * 24 * 3600;

/// Hosts that are sampled: this one, which sends the load, and that of a proxy which weir did not start.
pub struct Observation {
    hosts: Hosts,
    told: Receiver<Told>,
    /// Of each host its request and how far its clock is ahead of this one's, nanoseconds.
    going: Vec<(u64, i64)>,
}

impl Observation {
    /// Begins it: the generator here, the proxy that listens at `address` where `options` say that proxies are.
    ///
    /// # Errors
    /// A host cannot be reached.
    pub fn begin(
        address: SocketAddr,
        interval: Duration,
        options: &Options,
    ) -> Result<Observation, LabError> {
        let hosts = Hosts::open(options)?;
        let (send, told) = channel();
        let mut going = Vec::new();
        for (place, (host, roles)) in hosts.each().enumerate() {
            let job = SampleJob {
                requests: false,
                interval,
                generator: roles.contains(&Role::Generator),
                proxies: Vec::new(),
                origin: false,
                external: roles.contains(&Role::Proxy).then_some(address),
            };
            let (ahead_ns, _) = host.clock_offset_ns()?;
            going.push((host.begin_samples(job, place, MOST, &send)?, ahead_ns));
        }
        Ok(Observation { hosts, told, going })
    }

    /// Ends it, and gives what was sampled; times are this host's CLOCK_MONOTONIC.
    pub fn end(self) -> Samples {
        for ((host, _), (id, _)) in self.hosts.each().zip(&self.going) {
            host.stop(*id);
        }
        let names: Vec<String> = self
            .hosts
            .each()
            .map(|(host, _)| host.called().to_owned())
            .collect();
        let mut samples = Samples::default();
        let mut left = self.going.len();
        let until = Instant::now() + PATIENCE;
        while left > 0 {
            let rest = until.saturating_duration_since(Instant::now());
            let Ok(Told::Samples(place, part)) = self.told.recv_timeout(rest) else {
                break;
            };
            let host = names[place].clone();
            match part {
                Part::Event(rows) => samples.rows.extend(rows.into_iter().map(|mut row| {
                    let ahead_ns = self.going[place].1;
                    row.at_ns = row.at_ns.saturating_add_signed(ahead_ns.saturating_neg());
                    Sample {
                        host: host.clone(),
                        row,
                    }
                })),
                Part::End(end) => {
                    left -= 1;
                    let missing = end.unwrap_or_else(not_sampled).missing;
                    samples
                        .missing
                        .extend(missing.into_iter().map(|missing| (host.clone(), missing)));
                }
            }
        }
        samples
    }
}

/// What a host that fails leaves: nothing of it can be read.
pub(crate) fn not_sampled(error: AgentError) -> SampleEnd {
    SampleEnd {
        missing: vec![MissingCounter {
            why: error.to_string(),
            ..MissingCounter::default()
        }],
        cpu_ns: 0,
    }
}
