//! Samples of hosts while something other than the lab sends the load: `weir load --observe`.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use weir_agent::message::{SampleEnd, SampleJob};
use weir_agent::{AgentError, Part};
use weir_hosts::pod_samples::{self, PodSampler};
use weir_hosts::{HostEvent, Hosts, Options, Role};
use weir_model::sample::MissingCounter;
use weir_probe::sample::PROXY;
use weir_record::{Sample, Samples};

use crate::{Generators, LabError};

/// Maximum time that hosts may take to end their sampling: a reading that goes on and the last one, of at most five
/// seconds together. The figures of the load wait for that.
const PATIENCE: Duration = Duration::from_secs(6);
/// Maximum number of readings of each host.
const MOST: usize = 10 * 24 * 3600;

/// Sampling of hosts: those that send the load, and the host of a proxy that weir did not start, or the proxy's pods.
pub struct Observation<'g> {
    hosts: Held<'g>,
    told: Receiver<HostEvent>,
    /// For each host, the number of its sampling request, and how far its clock is ahead of this one's, nanoseconds.
    going: Vec<(u64, i64)>,
    /// Sampled pods; their indexes in messages follow those of the hosts.
    pods: Vec<PodSampler>,
    /// Description of the pods.
    named: Option<String>,
}

/// Hosts, either opened for the observation or borrowed from generators.
enum Held<'g> {
    Own(Box<Hosts>),
    Of(&'g Generators),
}

impl Held<'_> {
    fn hosts(&self) -> &Hosts {
        match self {
            Held::Own(hosts) => hosts,
            Held::Of(generators) => generators.hosts(),
        }
    }
}

impl<'g> Observation<'g> {
    /// Begins to sample the generators, here or on other hosts. The proxy is sampled in its pods if `options` name
    /// them, otherwise on the proxies' hosts, as the process that listens at `address`.
    ///
    /// # Errors
    /// A host cannot be reached.
    pub fn begin(
        address: SocketAddr,
        interval: Duration,
        options: &Options,
        generators: Option<&'g Generators>,
    ) -> Result<Observation<'g>, LabError> {
        let held = match generators {
            Some(generators) => Held::Of(generators),
            None => Held::Own(Box::new(Hosts::open(options)?)),
        };
        let hosts = held.hosts();
        let pods = options.places.pods_of_proxy();
        let (send, told) = channel();
        let mut going = Vec::new();
        for (place, (host, roles)) in hosts.each().enumerate() {
            let job = SampleJob {
                requests: false,
                interval,
                generator: roles.contains(&Role::Generator),
                proxies: Vec::new(),
                origin: false,
                external: (roles.contains(&Role::Proxy) && pods.is_none()).then_some(address),
            };
            let (ahead_ns, _) = host.clock_offset_ns()?;
            going.push((host.begin_samples(job, place, MOST, &send)?, ahead_ns));
        }
        let named = pods.as_ref().map(|pods| pods.of.to_string());
        let pods = pod_samples::begin(pods.as_slice(), interval, going.len(), &send);
        Ok(Observation { hosts: held, told, going, pods, named })
    }

    /// Returns the description of the proxy's pods; `None` if no pods are sampled.
    pub fn pods(&self) -> Option<String> {
        self.named.clone()
    }

    /// Ends it, and gives what was sampled, with the names of hosts that have not ended in time; times are this host's
    /// CLOCK_MONOTONIC.
    pub fn end(self) -> (Samples, Vec<String>) {
        let hosts = self.hosts.hosts();
        for ((host, _), (id, _)) in hosts.each().zip(&self.going) {
            host.stop(*id);
        }
        self.pods.iter().for_each(PodSampler::stop);
        let names = hosts
            .each()
            .map(|(host, _)| host.called().to_owned())
            .chain(self.pods.iter().map(|pod| pod.called.clone()));
        let names: Vec<String> = names.collect();
        let mut samples = Samples::default();
        let mut going_on: BTreeSet<usize> = (0..names.len()).collect();
        let until = Instant::now() + PATIENCE;
        while !going_on.is_empty() {
            let remaining = until.saturating_duration_since(Instant::now());
            let Ok(HostEvent::Samples(place, part)) = self.told.recv_timeout(remaining) else {
                break;
            };
            let host = names[place].clone();
            match part {
                Part::Event(rows) => samples.rows.extend(rows.into_iter().map(|mut row| {
                    // The time of pods is this host's.
                    let ahead_ns = self.going.get(place).map_or(0, |(_, ahead_ns)| *ahead_ns);
                    row.at_ns = row.at_ns.saturating_add_signed(ahead_ns.saturating_neg());
                    Sample { host: host.clone(), row }
                })),
                Part::End(result) => {
                    going_on.remove(&place);
                    let end = result.unwrap_or_else(not_sampled);
                    let missing = end.missing.into_iter();
                    samples.missing.extend(missing.map(|missing| (host.clone(), missing)));
                    samples.settings.extend(end.settings);
                    samples.cpus.extend(end.cpus);
                }
            }
        }
        let late: Vec<String> = going_on.into_iter().map(|at| names[at].clone()).collect();
        samples.missing.extend(late.iter().map(|host| {
            let missing = MissingCounter {
                table: "proxy".to_owned(),
                role: PROXY.to_owned(),
                why: format!("samples have not ended after {} s", PATIENCE.as_secs()),
                ..MissingCounter::default()
            };
            (host.clone(), missing)
        }));
        (samples, late)
    }
}

/// Makes the result of a host whose sampling failed: no table can be read.
pub(crate) fn not_sampled(error: AgentError) -> SampleEnd {
    SampleEnd {
        missing: vec![MissingCounter { why: error.to_string(), ..MissingCounter::default() }],
        ..SampleEnd::default()
    }
}
