//! Samples of a proxy's pods: the shell of the image prints the kernel's files on request, over the API server's exec
//! stream. A pod that does not allow this has no rows, and the samples give the reason.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use weir_agent::message::SampleEnd;
use weir_agent::{Part, monotonic_ns};
use weir_kube::{Cluster, KubeError, PodsOf, ProxyPod};
use weir_model::record::LostNode;
use weir_model::sample::{MissingCounter, SampleRow};
use weir_probe::sample::{END, PROXY, PodFiles as ToldByShell, SCRIPT, Sampler, TABLES};

use crate::host::HostEvent;

/// Maximum number of sampled pods: each takes a stream and a thread.
const MOST: usize = 16;
/// Interval between checks for the end, between two readings.
const LOOK: Duration = Duration::from_millis(20);
/// Time that a cluster may take to notice a lost node: 50 s by default (node-monitor-grace-period of
/// kube-controller-manager, 40 s before Kubernetes 1.32), and 5 s between its checks.
const NOTICED: Duration = Duration::from_secs(60);
/// Interval between checks for lost nodes.
const SETTLED: Duration = Duration::from_secs(1);

/// Pods of an arm's proxy.
#[derive(Debug, Clone, PartialEq)]
pub struct ArmPods {
    pub cluster: Cluster,
    pub of: PodsOf,
    /// Name of the arm that the pods belong to; empty: to all arms.
    pub arm: String,
}

/// Sampler of a pod; dropping it ends the sampling.
pub struct PodSampler {
    /// Name of the pod in samples.
    pub called: String,
    stop: Arc<AtomicBool>,
    /// Set when the pod no longer answers.
    is_lost: Arc<AtomicBool>,
    /// The sampled pod; `None` if no pod could be found.
    pod: Option<ProxyPod>,
}

impl PodSampler {
    /// Returns the pod if it answered at first and then no longer.
    pub fn unheard(&self) -> Option<&ProxyPod> {
        let is_lost = self.is_lost.load(Ordering::Relaxed);
        self.pod.as_ref().filter(|_| is_lost)
    }

    /// Ends the sampling after one more reading.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl Drop for PodSampler {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Begins to sample pods, each on a thread of its own. Readings go to `to` with indexes from `place` on; their times
/// are by this process's clock.
pub fn begin(
    all: &[ArmPods],
    interval: Duration,
    place: usize,
    to: &Sender<HostEvent>,
) -> Vec<PodSampler> {
    let mut samplers: Vec<PodSampler> = Vec::new();
    let mut nodes = BTreeSet::new();
    for arm in all {
        let (pods, lacking) = match arm.cluster.proxy_pods(&arm.of) {
            Err(error) => (Vec::new(), missing(&error.to_string())),
            Ok(mut pods) => {
                let left_out = pods.len().saturating_sub(MOST);
                pods.truncate(MOST);
                (pods, not_sampled(left_out))
            }
        };
        for pod in pods {
            let sampler = PodSampler {
                called: pod.name.clone(),
                stop: Arc::default(),
                is_lost: Arc::default(),
                pod: Some(pod.clone()),
            };
            let reader = OnePod {
                arm: arm.clone(),
                // Pods of one node would tell the same of it.
                has_node: nodes.insert(pod.node.clone()),
                pod,
                interval,
                stop: Arc::clone(&sampler.stop),
                is_lost: Arc::clone(&sampler.is_lost),
            };
            let (to, place) = (to.clone(), place + samplers.len());
            thread::spawn(move || {
                reader.run(&|part| drop(to.send(HostEvent::Samples(place, part))));
            });
            samplers.push(sampler);
        }
        if !lacking.is_empty() {
            let end = SampleEnd { missing: lacking, ..SampleEnd::default() };
            let index = place + samplers.len();
            drop(to.send(HostEvent::Samples(index, Part::End(Ok(end)))));
            samplers.push(PodSampler {
                called: arm.of.to_string(),
                stop: Arc::default(),
                is_lost: Arc::default(),
                pod: None,
            });
        }
    }
    samplers
}

/// Lists every table for which a pod has rows as missing, with the reason.
fn missing(why: &str) -> Vec<MissingCounter> {
    let counters = TABLES.iter().map(|table| MissingCounter {
        table: (*table).to_owned(),
        column: String::new(),
        role: PROXY.to_owned(),
        why: why.to_owned(),
    });
    counters.collect()
}

/// Makes the entry for pods beyond [`MOST`], which are not sampled. It names no table, because the other pods have the
/// same ones.
fn not_sampled(left_out: usize) -> Vec<MissingCounter> {
    let counter = MissingCounter {
        role: PROXY.to_owned(),
        why: format!("{left_out} of them are not sampled: at most {MOST} pods are"),
        ..MissingCounter::default()
    };
    (left_out > 0).then_some(counter).into_iter().collect()
}

/// Returns the nodes of these pods that the cluster has lost, with the cluster's reason. The cluster notices late: for
/// a pod in `unheard`, which answered and then no longer did, this waits until the pod answers again or is gone by
/// itself.
pub fn lost_nodes(
    all: &[ArmPods],
    unheard: &[ProxyPod],
    interrupted: &AtomicBool,
) -> Vec<LostNode> {
    let until = Instant::now() + NOTICED;
    loop {
        let lost: BTreeMap<String, String> =
            all.iter().flat_map(|arm| arm.cluster.lost_nodes(&arm.of)).flatten().collect();
        let is_over = Instant::now() > until || interrupted.load(Ordering::Relaxed);
        if !lost.is_empty()
            || is_over
            || !unheard.iter().any(|pod| all.iter().all(|arm| !arm.knows(pod)))
        {
            return lost.into_iter().map(|(node, why)| LostNode { node, why }).collect();
        }
        thread::sleep(SETTLED);
    }
}

impl ArmPods {
    /// Returns true if the fate of a pod is known: it answers, or it no longer runs.
    fn knows(&self, pod: &ProxyPod) -> bool {
        match self.cluster.proxy_pods(&self.of) {
            Ok(pods) if !pods.contains(pod) => true,
            Ok(_) => {
                let talk = self.cluster.converse(pod, &["sh", "-c", SCRIPT]);
                talk.and_then(|mut talk| talk.ask(END)).is_ok()
            }
            Err(_) => false,
        }
    }
}

struct OnePod {
    arm: ArmPods,
    pod: ProxyPod,
    has_node: bool,
    interval: Duration,
    stop: Arc<AtomicBool>,
    is_lost: Arc<AtomicBool>,
}

impl OnePod {
    fn run(self, tell: &dyn Fn(Part<weir_agent::message::SampleJob>)) {
        let by_shell = ToldByShell::default();
        let mut sampler = None;
        let read = self.read(&by_shell, &mut sampler, &|rows| tell(Part::Event(rows)));
        let mut end = SampleEnd {
            missing: sampler.iter().flat_map(Sampler::missing).collect(),
            cpu_ns: weir_agent::thread_cpu_ns(),
            ..SampleEnd::default()
        };
        if let Err(error) = read {
            self.is_lost.store(sampler.is_some(), Ordering::Relaxed);
            end.missing.extend(missing(&error.to_string()));
        }
        tell(Part::End(Ok(end)));
    }

    /// Reads until it is stopped, and then once more.
    fn read(
        &self,
        told: &ToldByShell,
        sampler: &mut Option<Sampler>,
        tell: &dyn Fn(Vec<SampleRow>),
    ) -> Result<(), KubeError> {
        let command = ["sh", "-c", SCRIPT];
        let mut talk = self.arm.cluster.converse(&self.pod, &command)?;
        loop {
            let is_last = self.stop.load(Ordering::Relaxed);
            let (begun, asked_ns) = (Instant::now(), monotonic_ns());
            told.take(&talk.ask(END)?);
            // It was read at some moment in between.
            let at_ns = asked_ns.midpoint(monotonic_ns());
            let sampler =
                sampler.get_or_insert_with(|| Sampler::of_pod(told, &self.arm.arm, self.has_node));
            tell(sampler.read(at_ns));
            if is_last {
                return Ok(());
            }
            while begun.elapsed() < self.interval && !self.stop.load(Ordering::Relaxed) {
                thread::sleep(LOOK);
            }
        }
    }
}
