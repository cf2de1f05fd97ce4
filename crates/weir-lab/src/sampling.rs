//! Samples of every host while a trial goes on.
//!
//! They begin before the load and end after it. What cannot be sampled is missing, and never ends a trial: no figure
//! rests on samples.

use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

use weir_agent::message::SampleJob;
use weir_agent::{AgentError, Part};
use weir_kube::ProxyPod;
use weir_model::sample::{Counters, MissingCounter, SampleRow};

use crate::host::{Host, Told};
use crate::hosts::Hosts;
use crate::observation::not_sampled;
use crate::options::Role;
use crate::pod_samples::{self, ArmPods, PodSampler};

/// How long hosts may take to end their sampling: a proxy is given five seconds for each of two answers.
const PATIENCE: Duration = Duration::from_secs(12);

/// What a load may take longer than its slices: connections are opened before, and requests end after.
const BESIDE: Duration = Duration::from_secs(3600);

/// Readings of the kernel's counters, and of so many proxies' own, are told on their own.
const TELLERS: usize = 257;

/// How often samples are taken, and since when their time counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sampled {
    /// From one to the next.
    pub(crate) interval: Duration,
    /// Whether requests of proxies are looked at too.
    pub(crate) requests: bool,
    /// When the run began by the clock of this process, nanoseconds: below zero where that was before its machine was
    /// booted.
    pub(crate) begun_ns: i64,
}

/// What is told of a host, which stands before it. Times are nanoseconds since the run began.
#[derive(Debug)]
pub(crate) enum Said {
    Rows(String, Vec<SampleRow>),
    Missing(String, Vec<MissingCounter>),
}

/// Sampling that goes on.
#[derive(Default)]
pub(crate) struct Sampling<'a> {
    hosts: Vec<Sampler<'a>>,
    /// What was told and not yet handed on.
    pub(crate) said: Vec<Said>,
    /// CPU time that it took.
    pub(crate) cpu_ns: u64,
    /// Whether anything was read.
    pub(crate) has_rows: bool,
}

/// What is sampled.
enum Whom<'a> {
    /// A host, by a request of this number.
    Host(&'a Host, u64),
    /// A pod of a proxy.
    Pod(PodSampler),
}

/// One host's, or one pod's.
struct Sampler<'a> {
    whom: Whom<'a>,
    /// What its clock showed when the run began.
    begun_ns: i64,
    has_ended: bool,
}

impl<'a> Sampling<'a> {
    /// Begins it on every host, and in the pods of proxies; `ahead_ns` says how far the clock of each host is ahead of this
    /// process's. Where proxies are in pods, no host has any.
    ///
    /// # Errors
    /// A host is gone.
    pub(crate) fn begin(
        sampled: Sampled,
        hosts: &'a Hosts,
        (slots, pods): (&[usize], &[ArmPods]),
        (ahead_ns, length): (&[i64], Duration),
        to: &Sender<Told>,
    ) -> Result<Sampling<'a>, AgentError> {
        let most = (length + BESIDE).as_nanos() / sampled.interval.as_nanos().max(1);
        let most = (most as usize).saturating_mul(TELLERS);
        let mut sampling = Sampling::default();
        for (place, ((host, here), ahead_ns)) in hosts.each().zip(ahead_ns).enumerate() {
            let has = |role: Role| here.contains(&role);
            let job = SampleJob {
                interval: sampled.interval,
                generator: has(Role::Generator),
                proxies: match has(Role::Proxy) && pods.is_empty() {
                    true => slots.to_vec(),
                    false => Vec::new(),
                },
                origin: has(Role::Origin),
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

    /// Takes what a host tells.
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
                    row.at_ns = row
                        .at_ns
                        .saturating_add_signed(sampler.begun_ns.saturating_neg());
                }
                self.has_rows |= !rows.is_empty();
                self.said.push(Said::Rows(called, rows));
            }
            Part::End(end) => {
                sampler.has_ended = true;
                let end = end.unwrap_or_else(not_sampled);
                self.cpu_ns += end.cpu_ns;
                self.said.push(Said::Missing(called, end.missing));
            }
        }
    }

    /// Pods that answered and then no longer did.
    pub(crate) fn unheard(&self) -> Vec<ProxyPod> {
        let pods = self.hosts.iter().filter_map(|sampler| match &sampler.whom {
            Whom::Pod(pod) => pod.unheard(),
            Whom::Host(..) => None,
        });
        pods.cloned().collect()
    }

    /// Ends it on all hosts.
    pub(crate) fn stop(&self) {
        let going_on = self.hosts.iter().filter(|sampler| !sampler.has_ended);
        going_on.for_each(|sampler| match &sampler.whom {
            Whom::Host(host, id) => host.stop(*id),
            Whom::Pod(pod) => pod.stop(),
        });
    }

    /// Ends it and takes what is still told.
    pub(crate) fn end(&mut self, told: &Receiver<Told>) {
        self.stop();
        let until = Instant::now() + PATIENCE;
        while self.hosts.iter().any(|sampler| !sampler.has_ended) {
            let left = until.saturating_duration_since(Instant::now());
            match told.recv_timeout(left) {
                Ok(Told::Samples(place, part)) => self.take(place, part),
                Ok(_) => {}
                Err(_) => return,
            }
        }
    }
}

/// A distant host may tell anything: only rows of tables that are known go on.
fn is_whole(row: &SampleRow) -> bool {
    let table = Counters::builtin().table(&row.table);
    table.is_some_and(|table| {
        row.keys.len() == table.keys().count() && row.values.len() == table.values().count()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_other_tables_or_columns_are_not_believed() {
        let row = |table: &str, keys: usize, values: usize| SampleRow {
            table: table.to_owned(),
            keys: vec![String::new(); keys],
            values: vec![None; values],
            ..SampleRow::default()
        };
        assert!(is_whole(&row("proxy", 1, 1)));
        for wrong in [row("proxy", 1, 2), row("proxy", 2, 1), row("../x", 1, 1)] {
            assert!(!is_whole(&wrong), "{wrong:?}");
        }
    }
}
