//! Samples of every host during a trial.
//!
//! Sampling begins before the load and ends after it. Counters that cannot be sampled are missing, but never end a
//! trial: no result rests on samples.

use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

use weir_agent::message::SampleJob;
use weir_agent::{AgentError, Part};
use weir_hosts::pod_samples::{self, ArmPods, PodSampler};
use weir_hosts::{Host, HostEvent, Hosts, Role};
use weir_kube::ProxyPod;
use weir_model::sample::{Counters, MissingCounter, SampleRow};

use crate::observation::not_sampled;

/// Time limit for hosts to end their sampling: a proxy is given five seconds for each of two answers.
const PATIENCE: Duration = Duration::from_secs(12);

/// Time that a load may take longer than its slices: connections are opened before, and requests end after.
const BESIDE: Duration = Duration::from_secs(3600);

/// Maximum number of messages of one sample: the kernel's counters, and each of up to 256 proxies' own, are sent
/// separately.
const TELLERS: usize = 257;

/// Interval of samples, and the start of their time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sampled {
    /// Interval between samples.
    pub(crate) interval: Duration,
    /// True if requests of proxies are sampled too.
    pub(crate) requests: bool,
    /// Start of the run by this process's clock, nanoseconds; negative if the run began before the machine was booted.
    pub(crate) begun_ns: i64,
}

/// Data of a host, with the host's name. Times are nanoseconds since the run began.
#[derive(Debug)]
pub(crate) enum SampleMessage {
    Rows(String, Vec<SampleRow>),
    Missing(String, Vec<MissingCounter>),
}

/// Sampling in progress.
#[derive(Default)]
pub(crate) struct Sampling<'a> {
    hosts: Vec<Sampler<'a>>,
    /// Data not yet passed on.
    pub(crate) said: Vec<SampleMessage>,
    /// CPU time that the sampling took, nanoseconds.
    pub(crate) cpu_ns: u64,
    /// True if anything was read.
    pub(crate) has_rows: bool,
}

/// Host or pod that is sampled.
enum Whom<'a> {
    /// A host, with the number of its sampling request.
    Host(&'a Host, u64),
    /// A pod of a proxy.
    Pod(PodSampler),
}

/// Sampling of one host or pod.
struct Sampler<'a> {
    whom: Whom<'a>,
    /// Start of the run by the clock of the host, nanoseconds.
    begun_ns: i64,
    has_ended: bool,
}

impl<'a> Sampling<'a> {
    /// Begins to sample every host, and the pods of proxies; `ahead_ns` has how far the clock of each host is ahead of
    /// this process's. If proxies are in pods, no host samples proxies.
    ///
    /// # Errors
    /// A host is lost.
    pub(crate) fn begin(
        sampled: Sampled,
        hosts: &'a Hosts,
        (slots, pods): (&[usize], &[ArmPods]),
        (ahead_ns, length): (&[i64], Duration),
        to: &Sender<HostEvent>,
    ) -> Result<Sampling<'a>, AgentError> {
        let most = (length + BESIDE).as_nanos() / sampled.interval.as_nanos().max(1);
        let most = (most as usize).saturating_mul(TELLERS);
        let mut sampling = Sampling::default();
        for (place, ((host, here), ahead_ns)) in hosts.each().zip(ahead_ns).enumerate() {
            let job = SampleJob {
                interval: sampled.interval,
                generator: here.contains(&Role::Generator),
                proxies: if here.contains(&Role::Proxy) && pods.is_empty() {
                    slots.to_vec()
                } else {
                    Vec::new()
                },
                origin: here.contains(&Role::Origin),
                requests: sampled.requests,
                external: None,
            };
            sampling.hosts.push(Sampler {
                whom: Whom::Host(host, host.begin_samples(job, place, most, to)?),
                begun_ns: sampled.begun_ns.saturating_add(*ahead_ns),
                has_ended: false,
            });
        }
        let pods = pod_samples::begin(pods, sampled.interval, sampling.hosts.len(), to);
        sampling.hosts.extend(pods.into_iter().map(|pod| Sampler {
            whom: Whom::Pod(pod),
            begun_ns: sampled.begun_ns,
            has_ended: false,
        }));
        Ok(sampling)
    }

    /// Takes a message of a host or pod.
    pub(crate) fn take(&mut self, place: usize, part: Part<SampleJob>) {
        let sampler = &mut self.hosts[place];
        let called = match &sampler.whom {
            Whom::Host(host, _) => host.called().to_owned(),
            Whom::Pod(pod) => pod.called.clone(),
        };
        match part {
            Part::Event(mut rows) => {
                rows.retain(is_whole);
                for row in &mut rows {
                    row.at_ns = row.at_ns.saturating_add_signed(sampler.begun_ns.saturating_neg());
                }
                self.has_rows |= !rows.is_empty();
                self.said.push(SampleMessage::Rows(called, rows));
            }
            Part::End(result) => {
                sampler.has_ended = true;
                let end = result.unwrap_or_else(not_sampled);
                self.cpu_ns += end.cpu_ns;
                self.said.push(SampleMessage::Missing(called, end.missing));
            }
        }
    }

    /// Returns the pods that answered at first and then no longer.
    pub(crate) fn unheard(&self) -> Vec<ProxyPod> {
        self.hosts
            .iter()
            .filter_map(|sampler| match &sampler.whom {
                Whom::Pod(pod) => pod.unheard(),
                Whom::Host(..) => None,
            })
            .cloned()
            .collect()
    }

    /// Ends the sampling on all hosts.
    pub(crate) fn stop(&self) {
        self.hosts.iter().filter(|sampler| !sampler.has_ended).for_each(|sampler| {
            match &sampler.whom {
                Whom::Host(host, id) => host.stop(*id),
                Whom::Pod(pod) => pod.stop(),
            }
        });
    }

    /// Ends the sampling and takes the remaining messages.
    pub(crate) fn end(&mut self, told: &Receiver<HostEvent>) {
        self.stop();
        let until = Instant::now() + PATIENCE;
        while self.hosts.iter().any(|sampler| !sampler.has_ended) {
            let remaining = until.saturating_duration_since(Instant::now());
            match told.recv_timeout(remaining) {
                Ok(HostEvent::Samples(place, part)) => self.take(place, part),
                Ok(_) => {}
                Err(_) => return,
            }
        }
    }
}

/// Returns true if a row has the columns of a known table. Other rows are dropped, because a distant host may send
/// anything.
fn is_whole(row: &SampleRow) -> bool {
    let table = Counters::builtin().table(&row.table);
    table.is_some_and(|table| {
        row.keys.len() == table.keys().count() && row.values.len() == table.values().count()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_row(table: &str, keys: usize, values: usize) -> SampleRow {
        SampleRow {
            table: table.to_owned(),
            keys: vec![String::new(); keys],
            values: vec![None; values],
            ..SampleRow::default()
        }
    }

    #[test]
    fn rows_of_other_tables_or_columns_are_not_believed() {
        assert!(is_whole(&sample_row("proxy", 1, 1)));
        for wrong in
            [sample_row("proxy", 1, 2), sample_row("proxy", 2, 1), sample_row("../x", 1, 1)]
        {
            assert!(!is_whole(&wrong), "{wrong:?}");
        }
    }
}
