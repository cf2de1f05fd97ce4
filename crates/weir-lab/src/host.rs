//! A host, and how it is reached. This is the one place that knows the ways: an agent on a thread of this
//! process, one behind ssh(1), one in a pod, or a model that answers the same questions.

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

use crate::LabError;
use crate::options::Options;
use crate::pods::{self, Pods};

/// How long it may take to have an agent on another host, a copy of weir included.
const CONNECT: Duration = Duration::from_secs(90);

/// What errors call a host that is only modelled.
const SIMULATED: &str = "the simulated host";

/// A host.
pub(crate) struct Host {
    link: Link,
    pub(crate) is: Description,
    /// Of a pod, how its CPUs are shared with others.
    pod: Option<InPod>,
}

/// CPUs of a pod, of which its host has as many as it asked for.
struct InPod {
    /// All that it may use.
    seen: CpuSet,
    /// Whether its threads are kept to its host's CPUs, which no other pod of the run has then.
    is_kept: bool,
}

/// How a host is reached.
enum Link {
    /// An agent on a thread of this process.
    Here(Client),
    /// An agent that ssh(1), or the API server of a cluster, has started there.
    Distant {
        agent: Client,
        /// As ssh(1) takes it, or the pod's.
        name: String,
        /// Where others reach it; `None`: nobody here knows.
        address: Option<IpAddr>,
    },
    /// A model.
    Simulated(Rc<RefCell<World>>),
}

/// What is told while a trial goes on.
pub(crate) enum Told {
    /// By a generator, the place of which among the generators stands before it.
    Load(usize, Part<LoadJob>),
    /// By whoever reads counters, the place of which among the hosts stands before it.
    Watch(usize, Box<Part<WatchJob>>),
    /// By whoever takes samples, the place of which among the hosts stands before it.
    Samples(usize, Part<SampleJob>),
}

impl Host {
    /// This host.
    pub(crate) fn here(options: &Options) -> Result<Host, LabError> {
        let agent = local::start(server::Options {
            weir: options.weir_version.clone(),
            launcher: options.launcher.clone(),
            catalog: options.catalog.clone(),
            silence: None,
            stop: Arc::default(),
        });
        let agent = agent.map_err(|error| AgentError::Lost {
            place: local::PLACE.to_owned(),
            words: error.to_string(),
            restore: String::new(),
        })?;
        Ok(Host {
            is: agent.ask(Describe)?,
            link: Link::Here(agent),
            pod: None,
        })
    }

    /// One that ssh(1) reaches by this name.
    pub(crate) fn distant(name: &str, options: &Options) -> Result<Host, LabError> {
        let place = SshPlace {
            options: options.places.ssh_options.clone(),
            remote: options.places.remote.clone(),
            ..SshPlace::new(name)
        };
        // The very program that runs, even if its file has been replaced since.
        let weir = Path::new("/proc/self/exe");
        let limit = Limit {
            at_most: CONNECT,
            stop: &options.stop,
        };
        let connected = ssh::connect(&place, weir, &options.weir_version, limit)?;
        if connected.hello.weir != options.weir_version {
            // Its load engine, or the way it sets up a proxy, may be another.
            return Err(LabError::Version {
                host: name.to_owned(),
                theirs: connected.hello.weir,
                ours: options.weir_version.clone(),
            });
        }
        let address = connected.address;
        Host::over(
            ssh::client(name, connected),
            name.to_owned(),
            address,
            options,
        )
    }

    /// Each of the pods of a run.
    pub(crate) fn in_pods(pods: &Pods, options: &Options) -> Result<Vec<Host>, LabError> {
        pods.with(&options.stop, |generators| {
            let all = generators.pods();
            let each = all.iter();
            let each = each.map(|pod| Host::pod((pods, generators), pod, options));
            let mut hosts = each.collect::<Result<Vec<Host>, LabError>>()?;
            let seen = hosts.iter().zip(all);
            let seen: Vec<(&str, &CpuSet)> = seen
                .map(|(host, pod)| (&*pod.node, &host.is.cpus))
                .collect();
            let dealt = pods::deal(&seen, pods.cpus());
            for ((host, pod), own) in hosts.iter_mut().zip(all).zip(dealt) {
                pods.has_seen((&pod.name, &pod.node), &host.is.cpus, own.as_ref());
                host.have(own, pods.cpus());
            }
            Ok(hosts)
        })
    }

    /// Takes the CPUs that were dealt to a pod, or as many as it asked for, to which its threads are not kept then.
    fn have(&mut self, dealt: Option<CpuSet>, count: usize) {
        let is_kept = dealt.is_some();
        let some = || CpuSet::new(self.is.cpus.cpus().iter().copied().take(count).collect());
        let Some(own) = dealt.or_else(some) else {
            return;
        };
        let seen = std::mem::replace(&mut self.is.cpus, own);
        self.pod = Some(InPod { seen, is_kept });
    }

    /// Where its threads run: each on one of its CPUs, or wherever the kernel has them.
    pub(crate) fn places_of_threads(&self) -> Vec<Option<u32>> {
        let is_kept = self.is_kept();
        let cpus = self.is.cpus.cpus().iter();
        cpus.map(|cpu| is_kept.then_some(*cpu)).collect()
    }

    /// Whether threads are kept to its CPUs.
    pub(crate) fn is_kept(&self) -> bool {
        self.pod.as_ref().is_none_or(|pod| pod.is_kept)
    }

    /// All CPUs that it may use.
    pub(crate) fn allowed(&self) -> &CpuSet {
        self.pod.as_ref().map_or(&self.is.cpus, |pod| &pod.seen)
    }

    /// A pod that runs. It may see more CPUs than its limit lets it use.
    fn pod(
        (pods, generators): (&Pods, &Generators),
        pod: &Pod,
        options: &Options,
    ) -> Result<Host, LabError> {
        let version = &options.weir_version;
        let connected = generators.agent(pod, version, CONNECT)?;
        if connected.hello.weir != *version {
            return Err(LabError::Image {
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

    /// A host with an agent that has said hello.
    fn over(
        agent: Client,
        name: String,
        address: Option<IpAddr>,
        options: &Options,
    ) -> Result<Host, LabError> {
        let agent = agent.until(&options.stop);
        let is = agent.ask(Describe)?;
        agent.ask(Rows(options.catalog.user_rows().to_vec()))?;
        Ok(Host {
            is,
            link: Link::Distant {
                agent,
                name,
                address,
            },
            pod: None,
        })
    }

    /// A part of a world that is only modelled.
    pub(crate) fn simulated(world: &Rc<RefCell<World>>) -> Result<Host, LabError> {
        let is = Describe.put_to(&mut *world.borrow_mut());
        Ok(Host {
            is: is.map_err(AgentError::from)?,
            link: Link::Simulated(Rc::clone(world)),
            pod: None,
        })
    }

    /// The agent there, where there is one.
    fn agent(&self) -> Option<&Client> {
        match &self.link {
            Link::Here(agent) | Link::Distant { agent, .. } => Some(agent),
            Link::Simulated(_) => None,
        }
    }

    /// As ssh(1) takes it, or the pod's; `None`: this host.
    pub(crate) fn name(&self) -> Option<&str> {
        match &self.link {
            Link::Distant { name, .. } => Some(name),
            Link::Here(_) | Link::Simulated(_) => None,
        }
    }

    /// What errors call it.
    pub(crate) fn called(&self) -> &str {
        match &self.link {
            Link::Distant { name, .. } => name,
            Link::Here(_) => local::PLACE,
            Link::Simulated(_) => SIMULATED,
        }
    }

    /// Its CPUs that stand for these: the same, or as many of its own where it does not have them, as a pod to which its
    /// node's kubelet has given others than to the pods of the same run elsewhere.
    pub(crate) fn own_cpus(&self, of_all: &CpuSet) -> CpuSet {
        let (own, count) = (&self.is.cpus, of_all.cpus().len());
        let own = match of_all.shared_with(own).len() == count {
            true => None,
            false => CpuSet::new(own.cpus().iter().copied().take(count).collect()),
        };
        own.unwrap_or_else(|| of_all.clone())
    }

    /// Where others reach it, where it is another host than this one.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        match &self.link {
            Link::Distant { address, .. } => *address,
            Link::Here(_) | Link::Simulated(_) => None,
        }
    }

    /// Whether it is only modelled.
    pub(crate) fn is_simulated(&self) -> bool {
        matches!(self.link, Link::Simulated(_))
    }

    /// Whether threads of this process run there.
    pub(crate) fn is_this_one(&self) -> bool {
        matches!(self.link, Link::Here(_))
    }

    /// A path there, as scp(1) names it.
    pub(crate) fn at(&self, path: &Path) -> PathBuf {
        match self.name() {
            Some(name) => PathBuf::from(format!("{name}:{}", path.display())),
            None => path.to_owned(),
        }
    }

    /// Asks and waits for the answer.
    ///
    /// # Errors
    /// It could not be done, or the host is gone.
    pub(crate) fn ask<Q: Task>(&self, question: Q) -> Result<Q::Answer, AgentError> {
        self.ask_until(question, None)
    }

    /// The same of a question that is stopped once `stop` is set.
    ///
    /// # Errors
    /// Those of [`Host::ask`].
    pub(crate) fn ask_until<Q: Task>(
        &self,
        question: Q,
        stop: Option<&AtomicBool>,
    ) -> Result<Q::Answer, AgentError> {
        match &self.link {
            Link::Here(agent) | Link::Distant { agent, .. } => agent.ask_until(question, stop),
            Link::Simulated(world) => Ok(question.put_to(&mut *world.borrow_mut())?),
        }
    }

    /// Begins to carry a load out. What it tells goes to `to` as the `generator`-th one's; its number is for
    /// [`Host::stop`].
    pub(crate) fn begin_load(
        &self,
        job: LoadJob,
        generator: usize,
        to: &Sender<Told>,
    ) -> Result<u64, AgentError> {
        let to = to.clone();
        // That it is ready, its start, and each slice.
        let slices = match job.is_whole {
            true => job.engine_slices().len() * job.flows.len(),
            false => job.slices.len(),
        };
        let most = 2 + slices;
        // Whoever waited may have given up.
        let tell = at_most(most, self.called().to_owned(), move |part| {
            drop(to.send(Told::Load(generator, part)));
        });
        match &self.link {
            Link::Here(agent) | Link::Distant { agent, .. } => agent.begin(job, tell),
            Link::Simulated(world) => Ok(world.borrow_mut().begin_load(job, Box::new(tell))),
        }
    }

    /// Has a load start that waits for it: `at_ns` is by its clock.
    pub(crate) fn start_load(&self, load: u64, at_ns: u64) -> Result<(), AgentError> {
        match &self.link {
            // Nobody waits for the answer: others are to be told as soon.
            Link::Here(agent) | Link::Distant { agent, .. } => {
                agent.begin(StartLoad { load, at_ns }, |_| {}).map(drop)
            }
            // They start together by themselves.
            Link::Simulated(_) => Ok(()),
        }
    }

    /// Begins to read counters. What is read goes to `to` as the `place`-th host's.
    pub(crate) fn begin_watch(
        &self,
        job: WatchJob,
        place: usize,
        to: &Sender<Told>,
    ) -> Result<u64, AgentError> {
        let to = to.clone();
        // One at each time, and at the end those of all arms.
        let most = job.times.len() + job.slots.len();
        let tell = at_most(most, self.called().to_owned(), move |part| {
            drop(to.send(Told::Watch(place, Box::new(part))));
        });
        match &self.link {
            Link::Here(agent) | Link::Distant { agent, .. } => agent.begin(job, tell),
            Link::Simulated(world) => Ok(world.borrow_mut().begin_watch(job, Box::new(tell))),
        }
    }

    /// Begins to take samples, `most` times at most. What is read goes to `to` as the `place`-th host's.
    pub(crate) fn begin_samples(
        &self,
        job: SampleJob,
        place: usize,
        most: usize,
        to: &Sender<Told>,
    ) -> Result<u64, AgentError> {
        let to = to.clone();
        let mut tell = at_most(most, self.called().to_owned(), move |part| {
            drop(to.send(Told::Samples(place, part)));
        });
        match &self.link {
            Link::Here(agent) | Link::Distant { agent, .. } => agent.begin(job, tell),
            Link::Simulated(world) => Ok(world.borrow_mut().begin_samples(&mut tell)),
        }
    }

    /// Ends something that goes on before its time.
    pub(crate) fn stop(&self, id: u64) {
        match &self.link {
            Link::Here(agent) | Link::Distant { agent, .. } => agent.stop(id),
            Link::Simulated(world) => world.borrow_mut().stop(id),
        }
    }

    /// An error of its agent, with what is known of how it was lost.
    pub(crate) fn explained(&self, error: AgentError) -> AgentError {
        match self.agent() {
            Some(agent) => agent.with_words(error),
            None => error,
        }
    }

    /// Lets simulated time go on until something is told; `false` where time goes by itself, or nothing goes
    /// on.
    pub(crate) fn advance(&self) -> bool {
        match &self.link {
            Link::Here(_) | Link::Distant { .. } => false,
            Link::Simulated(world) => world.borrow_mut().advance(),
        }
    }

    /// What the clock shows that a run goes by: simulated time, or this process's.
    pub(crate) fn now(&self) -> Duration {
        Duration::from_nanos(match &self.link {
            Link::Here(_) | Link::Distant { .. } => weir_agent::monotonic_ns(),
            Link::Simulated(world) => world.borrow().now_ns,
        })
    }

    /// How far its clock is ahead of this host's, and by how much that may be wrong, nanoseconds.
    pub(crate) fn clock_offset_ns(&self) -> Result<(i64, u64), AgentError> {
        self.agent().map_or(Ok((0, 0)), Client::clock_offset_ns)
    }

    /// Keeps what reads its messages in this process to some CPUs.
    pub(crate) fn read_on(&self, cpus: &CpuSet) {
        if let Some(agent) = self.agent() {
            agent.keep_to(cpus);
        }
    }
}

/// Hands on so many events at most: whoever tells more would fill the memory of those who wait.
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
