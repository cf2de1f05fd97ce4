//! A host and the connection to it. No other module distinguishes the kinds of connection: an agent on a thread of this
//! process, an agent behind ssh(1), an agent in a pod, or a model that answers the same questions.

use std::cell::RefCell;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;
use std::time::Duration;

use weir_agent::message::{
    Describe, Description, LoadJob, Question, Rows, SampleJob, StartLoad, Task, WatchJob,
};
use weir_agent::ssh::{self, Limit, SshPlace};
use weir_agent::{AgentError, Client, Part, local, server};
use weir_kube::{Generators, Pod};
use weir_model::quantity::CpuSet;
use weir_simulation::World;

use crate::error::HostError;
use crate::options::Options;
use crate::pods::{self, Pods};

/// Time limit for starting an agent on another host, including copying weir there.
const CONNECT: Duration = Duration::from_secs(90);

/// Name of a simulated host in errors.
const SIMULATED: &str = "the simulated host";

/// A host of the run.
pub struct Host {
    link: Link,
    pub is: Description,
    /// CPUs of a pod; `None` for other hosts.
    pod: Option<InPod>,
}

/// CPUs of a pod. Its [`Host`] has only as many of them as the pod requested.
struct InPod {
    /// All CPUs that the pod may use.
    seen: CpuSet,
    /// True if the pod's threads are bound to the CPUs of its [`Host`], which no other pod of the run uses then.
    is_kept: bool,
}

/// Connection to a host.
enum Link {
    /// An agent on a thread of this process.
    Here(Client),
    /// An agent that ssh(1), or the API server of a cluster, has started on another host.
    Distant {
        agent: Client,
        /// Host name as for ssh(1), or name of the pod.
        name: String,
        /// Address at which other hosts reach the host; `None`: not known.
        address: Option<IpAddr>,
    },
    /// A simulated host.
    Simulated(Rc<RefCell<World>>),
}

/// Messages of hosts during a trial.
pub enum HostEvent {
    /// Message of a generator, with its index among the generators.
    Load(usize, Part<LoadJob>),
    /// Message of a host that reads counters, with its index among the hosts.
    Watch(usize, Box<Part<WatchJob>>),
    /// Message of a host that takes samples, with its index among the hosts.
    Samples(usize, Part<SampleJob>),
}

impl Host {
    /// Starts the agent of this host.
    pub fn here(options: &Options) -> Result<Host, HostError> {
        let agent = local::start(server::Options {
            weir: options.weir_version.clone(),
            launcher: options.launcher.clone(),
            catalog: options.catalog.clone(),
            silence: None,
            stop: Arc::default(),
        })
        .map_err(|error| AgentError::Lost {
            place: local::PLACE.to_owned(),
            words: error.to_string(),
            restore: String::new(),
        })?;
        Ok(Host { is: agent.ask(Describe)?, link: Link::Here(agent), pod: None })
    }

    /// Connects to a host that ssh(1) reaches by this name.
    pub fn distant(name: &str, options: &Options) -> Result<Host, HostError> {
        let ssh_place = SshPlace {
            options: options.places.ssh_options.clone(),
            remote: options.places.remote.clone(),
            ..SshPlace::new(name)
        };
        // The very program that runs, even if its file has been replaced since.
        let weir = Path::new("/proc/self/exe");
        let limit = Limit { at_most: CONNECT, stop: &options.stop };
        let connected = ssh::connect(&ssh_place, weir, &options.weir_version, limit)?;
        if connected.hello.weir != options.weir_version {
            // Its load engine, or the way it sets up a proxy, may be another.
            return Err(HostError::Version {
                host: name.to_owned(),
                theirs: connected.hello.weir,
                ours: options.weir_version.clone(),
            });
        }
        let address = connected.address;
        Host::over(ssh::client(name, connected), name.to_owned(), address, options)
    }

    /// Connects to all pods of a run.
    pub fn in_pods(pods: &Pods, options: &Options) -> Result<Vec<Host>, HostError> {
        pods.with(&options.stop, |generators| {
            let all = generators.pods();
            let mut hosts = all
                .iter()
                .map(|pod| Host::pod((pods, generators), pod, options))
                .collect::<Result<Vec<Host>, HostError>>()?;
            let node_cpus: Vec<(&str, &CpuSet)> =
                hosts.iter().zip(all).map(|(host, pod)| (&*pod.node, &host.is.cpus)).collect();
            let dealt = pods::deal(&node_cpus, pods.cpus());
            for ((host, pod), own) in hosts.iter_mut().zip(all).zip(dealt) {
                pods.has_seen((&pod.name, &pod.node), &host.is.cpus, own.as_ref());
                host.have(own, pods.cpus());
            }
            Ok(hosts)
        })
    }

    /// Restricts the host to the CPUs assigned to its pod. Without such, it gets as many as the pod requested, and its
    /// threads are not bound to them.
    fn have(&mut self, dealt: Option<CpuSet>, count: usize) {
        let is_kept = dealt.is_some();
        let cpus = dealt
            .or_else(|| CpuSet::new(self.is.cpus.cpus().iter().copied().take(count).collect()));
        if let Some(cpus) = cpus {
            self.pod = Some(InPod { seen: std::mem::replace(&mut self.is.cpus, cpus), is_kept });
        }
    }

    /// Returns a place for each thread: one of the host's CPUs, or `None` if the kernel chooses.
    pub fn places_of_threads(&self) -> Vec<Option<u32>> {
        let is_kept = self.is_kept();
        self.is.cpus.cpus().iter().map(|cpu| is_kept.then_some(*cpu)).collect()
    }

    /// Returns true if threads are bound to the host's CPUs.
    pub fn is_kept(&self) -> bool {
        self.pod.as_ref().is_none_or(|pod| pod.is_kept)
    }

    /// Returns all CPUs that the host may use.
    pub fn allowed(&self) -> &CpuSet {
        self.pod.as_ref().map_or(&self.is.cpus, |pod| &pod.seen)
    }

    /// Connects to a running pod. The pod may see more CPUs than its limit lets it use.
    fn pod(
        (pods, generators): (&Pods, &Generators),
        pod: &Pod,
        options: &Options,
    ) -> Result<Host, HostError> {
        let version = &options.weir_version;
        let connected = generators.agent(pod, version, CONNECT)?;
        if connected.hello.weir != *version {
            return Err(HostError::Image {
                image: pods.image().to_owned(),
                theirs: connected.hello.weir,
                ours: version.clone(),
            });
        }
        let name = format!("pod {} on node {}", pod.name, pod.node);
        let address = connected.address;
        let agent = weir_kube::client(&name, connected);
        Host::over(agent, name, address, options)
    }

    /// Makes a host of an agent that has sent its greeting.
    fn over(
        client: Client,
        name: String,
        address: Option<IpAddr>,
        options: &Options,
    ) -> Result<Host, HostError> {
        let agent = client.until(&options.stop);
        let is = agent.ask(Describe)?;
        agent.ask(Rows(options.catalog.user_rows().to_vec()))?;
        Ok(Host { is, link: Link::Distant { agent, name, address }, pod: None })
    }

    /// Makes a host that is a part of a simulated world.
    pub fn simulated(world: &Rc<RefCell<World>>) -> Result<Host, HostError> {
        let is = Describe.put_to(&mut *world.borrow_mut());
        Ok(Host {
            is: is.map_err(AgentError::from)?,
            link: Link::Simulated(Rc::clone(world)),
            pod: None,
        })
    }

    /// Returns the host's agent; `None` if the host is simulated.
    fn agent(&self) -> Option<&Client> {
        match &self.link {
            Link::Here(agent) | Link::Distant { agent, .. } => Some(agent),
            Link::Simulated(_) => None,
        }
    }

    /// Returns the name as for ssh(1), or the pod's; `None` for this host and simulated ones.
    pub fn name(&self) -> Option<&str> {
        match &self.link {
            Link::Distant { name, .. } => Some(name),
            Link::Here(_) | Link::Simulated(_) => None,
        }
    }

    /// Returns the host's name for errors.
    pub fn called(&self) -> &str {
        match &self.link {
            Link::Distant { name, .. } => name,
            Link::Here(_) => local::PLACE,
            Link::Simulated(_) => SIMULATED,
        }
    }

    /// Returns the host's CPUs that stand for these: the same, or as many of its own if it lacks some. A pod lacks some
    /// if its node's kubelet gave it other CPUs than the run's pods on other nodes.
    pub fn own_cpus(&self, of_all: &CpuSet) -> CpuSet {
        let (cpus, count) = (&self.is.cpus, of_all.cpus().len());
        if of_all.shared_with(cpus).len() == count {
            return of_all.clone();
        }
        CpuSet::new(cpus.cpus().iter().copied().take(count).collect())
            .unwrap_or_else(|| of_all.clone())
    }

    /// Returns the address at which other hosts reach the host; `None` for this host or if not known.
    pub fn address(&self) -> Option<IpAddr> {
        match &self.link {
            Link::Distant { address, .. } => *address,
            Link::Here(_) | Link::Simulated(_) => None,
        }
    }

    /// Returns true if the host is simulated.
    pub fn is_simulated(&self) -> bool {
        matches!(self.link, Link::Simulated(_))
    }

    /// Returns true if the host is this one, so that its agent runs in this process.
    pub fn is_this_one(&self) -> bool {
        matches!(self.link, Link::Here(_))
    }

    /// Returns a path on the host as scp(1) writes it.
    pub fn at(&self, path: &Path) -> PathBuf {
        match self.name() {
            Some(name) => PathBuf::from(format!("{name}:{}", path.display())),
            None => path.to_owned(),
        }
    }

    /// Sends a question and waits for the answer.
    ///
    /// # Errors
    /// The host could not do it, or is lost.
    pub fn ask<Q: Task>(&self, question: Q) -> Result<Q::Answer, AgentError> {
        self.ask_until(question, None)
    }

    /// The same of a question that is stopped once `stop` is set.
    ///
    /// # Errors
    /// Same as [`Host::ask`].
    pub fn ask_until<Q: Task>(
        &self,
        question: Q,
        stop: Option<&AtomicBool>,
    ) -> Result<Q::Answer, AgentError> {
        match &self.link {
            Link::Here(agent) | Link::Distant { agent, .. } => agent.ask_until(question, stop),
            Link::Simulated(world) => Ok(question.put_to(&mut *world.borrow_mut())?),
        }
    }

    /// Begins to generate a load. Its messages go to `to` with the index `generator`; the returned number is for
    /// [`Host::stop`].
    pub fn begin_load(
        &self,
        job: LoadJob,
        generator: usize,
        to: &Sender<HostEvent>,
    ) -> Result<u64, AgentError> {
        let sender = to.clone();
        // That it is ready, its start, and each slice.
        let slices = if job.is_whole {
            job.engine_slices().len() * job.flows.len()
        } else {
            job.slices.len()
        };
        let most = 2 + slices;
        // Whoever waited may have given up.
        let tell = at_most(most, self.called().to_owned(), move |part| {
            drop(sender.send(HostEvent::Load(generator, part)));
        });
        match &self.link {
            Link::Here(agent) | Link::Distant { agent, .. } => agent.begin(job, tell),
            Link::Simulated(world) => Ok(world.borrow_mut().begin_load(job, Box::new(tell))),
        }
    }

    /// Starts a load that waits for its start; `at_ns` is by the host's clock.
    pub fn start_load(&self, load: u64, at_ns: u64) -> Result<(), AgentError> {
        match &self.link {
            // Nobody waits for the answer: others are to be told as soon.
            Link::Here(agent) | Link::Distant { agent, .. } => {
                agent.begin(StartLoad { load, at_ns }, |_| {}).map(drop)
            }
            // They start together by themselves.
            Link::Simulated(_) => Ok(()),
        }
    }

    /// Begins to read counters. Readings go to `to` with the index `place`.
    pub fn begin_watch(
        &self,
        job: WatchJob,
        place: usize,
        to: &Sender<HostEvent>,
    ) -> Result<u64, AgentError> {
        let sender = to.clone();
        // One at each time, and at the end those of all arms.
        let most = job.times.len() + job.slots.len();
        let tell = at_most(most, self.called().to_owned(), move |part| {
            drop(sender.send(HostEvent::Watch(place, Box::new(part))));
        });
        match &self.link {
            Link::Here(agent) | Link::Distant { agent, .. } => agent.begin(job, tell),
            Link::Simulated(world) => Ok(world.borrow_mut().begin_watch(job, Box::new(tell))),
        }
    }

    /// Begins to take at most `most` samples. They go to `to` with the index `place`.
    pub fn begin_samples(
        &self,
        job: SampleJob,
        place: usize,
        most: usize,
        to: &Sender<HostEvent>,
    ) -> Result<u64, AgentError> {
        let sender = to.clone();
        let mut tell = at_most(most, self.called().to_owned(), move |part| {
            drop(sender.send(HostEvent::Samples(place, part)));
        });
        match &self.link {
            Link::Here(agent) | Link::Distant { agent, .. } => agent.begin(job, tell),
            Link::Simulated(world) => Ok(world.borrow_mut().begin_samples(&mut tell)),
        }
    }

    /// Stops a load, the reading of counters or the taking of samples before its end.
    pub fn stop(&self, id: u64) {
        match &self.link {
            Link::Here(agent) | Link::Distant { agent, .. } => agent.stop(id),
            Link::Simulated(world) => world.borrow_mut().stop(id),
        }
    }

    /// Adds to an error of the host's agent the reason for which the agent was lost, if known.
    pub fn explained(&self, error: AgentError) -> AgentError {
        match self.agent() {
            Some(agent) => agent.with_words(error),
            None => error,
        }
    }

    /// Advances simulated time until a message arrives. Returns false if time is real, or nothing goes on.
    pub fn advance(&self) -> bool {
        match &self.link {
            Link::Here(_) | Link::Distant { .. } => false,
            Link::Simulated(world) => world.borrow_mut().advance(),
        }
    }

    /// Returns the time of the run's clock: simulated time, or this process's.
    pub fn now(&self) -> Duration {
        Duration::from_nanos(match &self.link {
            Link::Here(_) | Link::Distant { .. } => weir_agent::monotonic_ns(),
            Link::Simulated(world) => world.borrow().now_ns,
        })
    }

    /// Returns how far the host's clock is ahead of this host's, and the error bound of that, nanoseconds.
    pub fn clock_offset_ns(&self) -> Result<(i64, u64), AgentError> {
        self.agent().map_or(Ok((0, 0)), Client::clock_offset_ns)
    }

    /// Binds the thread that reads the host's messages in this process to some CPUs.
    pub fn read_on(&self, cpus: &CpuSet) {
        if let Some(agent) = self.agent() {
            agent.keep_to(cpus);
        }
    }
}

/// Passes on at most `left` events, since more would fill the memory of the receiver; then ends with an error.
fn at_most<Q: Question>(
    mut left: usize,
    place: String,
    mut to: impl FnMut(Part<Q>),
) -> impl FnMut(Part<Q>) {
    let mut is_over = false;
    move |part| {
        let part = match part {
            _ if is_over => return,
            Part::Event(_) if left == 0 => Part::End(Err(AgentError::Confused {
                place: place.clone(),
                words: "more events than can be".to_owned(),
            })),
            part => part,
        };
        left = left.saturating_sub(1);
        is_over = matches!(part, Part::End(_));
        to(part);
    }
}
