//! One continuous trial over several arms: the load moves from arm to arm, counters are read at every switch, and each
//! block is passed on as soon as it is complete.
//!
//! The load and the counters may be on different hosts. Each host with counters gets the start of the trial by its own
//! clock, and reads by the timeline from then on. The differences between the clocks are measured before the load
//! begins, since that takes some round trips. A load may be divided among several generators, which start together;
//! their counts of a slice are added.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use weir_agent::message::{LoadEnd, LoadEvent, LoadJob, SliceJob, WatchEnd, WatchJob};
use weir_agent::{AgentError, Part};
use weir_hosts::pod_samples::{self, ArmPods};
use weir_hosts::start::Start;
use weir_hosts::{Host, HostEvent, Hosts, Role};
use weir_load::SliceData;
use weir_model::quantity::CpuSet;
use weir_model::record::{ClockOffset, GeneratorStart, LostNode};
use weir_model::study::{Reduction, TakenFrom};
use weir_proposers::Timeline;

use crate::assembly::{Assembly, FinishedBlock, LoadOffset};
use crate::sampling::{SampleMessage, Sampled, Sampling};

/// Interval between checks whether the user wants to stop.
const LOOK: Duration = Duration::from_millis(50);

/// Maximum difference between the present time and the start that a generator reports for its load, nanoseconds.
const NEWS: u64 = 60_000_000_000;

/// Description of a trial to run.
pub(crate) struct Trial<'a> {
    pub(crate) timeline: &'a Timeline,
    /// Load of each generator, without the slices, which come from the timeline.
    pub(crate) jobs: Vec<LoadJob>,
    pub(crate) hosts: &'a Hosts,
    pub(crate) watched: Watched<'a>,
    /// Slices and time of the load's earlier trials in this session, after which records continue their numbering.
    pub(crate) before: LoadOffset,
    /// Interval and start time of samples; `None`: no samples.
    pub(crate) sampled: Option<Sampled>,
    /// Set when the user wants to end the run.
    pub(crate) interrupted: &'a AtomicBool,
}

/// Arms whose counters are read, and the CPUs of all roles.
pub(crate) struct Watched<'a> {
    /// Slot of each arm, in the order of the cell.
    pub(crate) slots: Vec<usize>,
    /// Pods of the arms' proxies, as far as known.
    pub(crate) pods: Vec<ArmPods>,
    /// CPUs of each arm's proxy.
    pub(crate) proxies: Vec<CpuSet>,
    pub(crate) generator: &'a CpuSet,
    /// CPUs of the origin server.
    pub(crate) origin: &'a CpuSet,
    /// Resource of which each arm has less than the others; `None` for none.
    pub(crate) taken: Vec<Option<Reduction>>,
}

impl Watched<'_> {
    /// Returns CPUs and percentage that each arm has less, of roles on this host; empty if no arm has less of anything.
    fn taken(&self, roles: &[Role]) -> Vec<Option<(CpuSet, u32)>> {
        if self.taken.iter().all(Option::is_none) {
            return Vec::new();
        }
        self.taken
            .iter()
            .zip(&self.proxies)
            .map(|(taken, proxy)| {
                let share = (*taken)?;
                let (role, cpus) = match share.from {
                    TakenFrom::Generator => (Role::Generator, self.generator),
                    TakenFrom::Proxy => (Role::Proxy, proxy),
                    TakenFrom::Origin => (Role::Origin, self.origin),
                };
                roles.contains(&role).then(|| (cpus.clone(), share.percent))
            })
            .collect()
    }
}

/// Data that a trial passes on while it runs.
pub(crate) enum TrialEvent<'a> {
    /// A complete block.
    Block(&'a FinishedBlock),
    /// Sampled counters.
    Sampled(SampleMessage),
}

/// Results of a trial in addition to its blocks.
#[derive(Debug, Default)]
pub(crate) struct TrialEnd {
    /// Sum of the generators' counts.
    pub(crate) load: LoadEnd,
    /// Sum of the hosts' counters.
    pub(crate) watch: WatchEnd,
    /// Number of requests answered, by arm.
    pub(crate) answered: Vec<u64>,
    /// Clock offsets of the hosts; empty with a single host.
    pub(crate) clocks: Vec<ClockOffset>,
    /// Starts of the generators; empty with a single generator.
    pub(crate) starts: Vec<GeneratorStart>,
    /// Offset to add to the time of slices to get that of samples, nanoseconds; `None` without samples.
    pub(crate) samples_at_ns: Option<i64>,
    /// CPU time that samples took, nanoseconds.
    pub(crate) samples_cpu_ns: u64,
    /// Nodes of the proxies' pods that were lost.
    pub(crate) lost_nodes: Vec<LostNode>,
}

impl Trial<'_> {
    /// Runs the trial and passes on every block as soon as it is complete, and samples. `hear` returns whether to go
    /// on; after false it gets no further block.
    pub(crate) fn run(
        &self,
        hear: &mut dyn FnMut(TrialEvent<'_>) -> bool,
    ) -> Result<TrialEnd, AgentError> {
        let ahead = self.clocks_ahead()?;
        let clocks = self.clocks(&ahead);
        let generators =
            self.hosts.generators().zip(self.hosts.places_of_generators()).take(self.jobs.len());
        let names = generators.clone().map(|(host, _)| host.called().to_owned());
        let start = Start::of(generators.clone().map(|(host, place)| (host, ahead[*place])));
        let (send, told) = channel();
        let mut going = RunningTrial {
            trial: self,
            send,
            loads: Vec::new(),
            start,
            ahead,
            watches: Vec::new(),
            sampling: Sampling::default(),
            dealt: BTreeMap::new(),
            assembly: Assembly::new(
                self.timeline,
                self.before,
                self.hosts.each().len(),
                names.collect(),
            ),
            end: TrialEnd { answered: vec![0; self.timeline.arms], clocks, ..TrialEnd::default() },
        };
        let result = going.through(&told, hear);
        if result.is_err() {
            going.stop();
            going.sampling.stop();
        }
        going.end.starts = going.start.starts();
        result.map(|()| going.end)
    }

    fn slices(&self) -> Vec<SliceJob> {
        let slices = self.timeline.slices.iter().map(|slice| SliceJob {
            arm: slice.arm,
            start: slice.start,
            measure_from: slice.measure_from,
            end: slice.end,
        });
        slices.collect()
    }

    /// Returns how far the clock of each host is ahead of this process's, nanoseconds.
    fn clocks_ahead(&self) -> Result<Vec<i64>, AgentError> {
        self.hosts
            .each()
            .map(|(host, _)| if host.is_this_one() { Ok(0) } else { Ok(host.clock_offset_ns()?.0) })
            .collect()
    }

    /// Returns for the records how far the clock of each host is ahead of the generator's, of several the first one's.
    /// Empty with a single host.
    fn clocks(&self, ahead: &[i64]) -> Vec<ClockOffset> {
        let generator = ahead[self.hosts.places_of_generators()[0]];
        let clocks = self.hosts.each().zip(ahead).map(|((host, _), ahead)| ClockOffset {
            host: host.called().to_owned(),
            ahead_ns: ahead.wrapping_sub(generator),
        });
        match ahead {
            [_] => Vec::new(),
            _ => clocks.collect(),
        }
    }

    /// Builds the job of reading counters for a host.
    fn watch(&self, (host, here): (&Host, &[Role]), start_ns: u64) -> WatchJob {
        let slices = &self.timeline.slices;
        let mut times: Vec<u64> = slices.iter().map(|slice| slice.start).collect();
        times.extend(slices.last().map(|slice| slice.end));
        WatchJob {
            start_ns,
            times,
            settled: slices.iter().map(|slice| slice.measure_from).collect(),
            arms: self.timeline.turns.iter().map(|turn| turn.arm).collect(),
            slots: self.watched.slots.clone(),
            proxies: here.contains(&Role::Proxy).then(|| self.watched.proxies.clone()),
            generator: here
                .contains(&Role::Generator)
                .then(|| host.own_cpus(self.watched.generator)),
            origin: here.contains(&Role::Origin),
            taken: self.watched.taken(here),
        }
    }
}

/// A job in progress on a host.
struct Request<'a> {
    host: &'a Host,
    id: u64,
    has_ended: bool,
}

/// A running trial.
struct RunningTrial<'a> {
    trial: &'a Trial<'a>,
    send: Sender<HostEvent>,
    /// Load jobs, one for each generator.
    loads: Vec<Request<'a>>,
    start: Start<'a>,
    /// Lead of each host's clock over this process's, nanoseconds.
    ahead: Vec<i64>,
    /// Jobs that read counters, one for each host once the load has begun.
    watches: Vec<Request<'a>>,
    sampling: Sampling<'a>,
    /// Counts of slices that some generators have reported and others not yet, by slice and generator.
    dealt: BTreeMap<usize, Vec<Option<SliceData>>>,
    assembly: Assembly<'a>,
    end: TrialEnd,
}

impl RunningTrial<'_> {
    fn through(
        &mut self,
        told: &Receiver<HostEvent>,
        hear: &mut dyn FnMut(TrialEvent<'_>) -> bool,
    ) -> Result<(), AgentError> {
        self.begin_samples()?;
        self.begin_loads()?;
        let (mut is_wanted, mut stopping) = (true, false);
        while self.goes_on() {
            match told.try_recv() {
                Ok(told) => self.take(told)?,
                Err(_) if self.loads.iter().any(|load| load.host.advance()) => {}
                Err(_) => match told.recv_timeout(LOOK) {
                    Ok(told) => self.take(told)?,
                    Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
                },
            }
            self.assembly.hand_on(&mut |block| {
                is_wanted = is_wanted && hear(TrialEvent::Block(block));
            });
            for message in self.sampling.said.drain(..) {
                is_wanted &= hear(TrialEvent::Sampled(message));
            }
            let interrupted = self.trial.interrupted.load(Ordering::Relaxed);
            if !stopping && (interrupted || !is_wanted) {
                stopping = true;
                self.stop();
            }
        }
        self.sampling.end(told);
        for message in self.sampling.said.drain(..) {
            hear(TrialEvent::Sampled(message));
        }
        self.end.samples_cpu_ns = self.sampling.cpu_ns;
        let unheard = self.sampling.unheard();
        let pods = &self.trial.watched.pods;
        self.end.lost_nodes = pod_samples::lost_nodes(pods, &unheard, self.trial.interrupted);
        self.end.samples_at_ns = self.end.samples_at_ns.filter(|_| self.sampling.has_rows);
        Ok(())
    }

    fn begin_samples(&mut self) -> Result<(), AgentError> {
        let Some(sampled) = self.trial.sampled else {
            return Ok(());
        };
        let ahead = &self.ahead;
        let (hosts, watched) = (self.trial.hosts, &self.trial.watched);
        let proxies = (&watched.slots[..], &watched.pods[..]);
        let length = self.trial.timeline.length();
        self.sampling = Sampling::begin(sampled, hosts, proxies, (ahead, length), &self.send)?;
        Ok(())
    }

    fn goes_on(&self) -> bool {
        let mut all = self.loads.iter().chain(&self.watches);
        all.any(|request| !request.has_ended)
    }

    fn begin_loads(&mut self) -> Result<(), AgentError> {
        let trial = self.trial;
        for (generator, (host, job)) in trial.hosts.generators().zip(&trial.jobs).enumerate() {
            let job = LoadJob { slices: trial.slices(), ..job.clone() };
            let id = host.begin_load(job, generator, &self.send)?;
            self.loads.push(Request { host, id, has_ended: false });
        }
        Ok(())
    }

    /// Stops the jobs that still run, as far as their hosts can be reached.
    fn stop(&self) {
        self.loads
            .iter()
            .chain(&self.watches)
            .filter(|request| !request.has_ended)
            .for_each(|request| request.host.stop(request.id));
    }

    fn take(&mut self, told: HostEvent) -> Result<(), AgentError> {
        match told {
            HostEvent::Load(generator, Part::Event(LoadEvent::Ready)) => {
                self.start.ready(generator, |place| self.loads[place].id)
            }
            HostEvent::Load(generator, Part::Event(LoadEvent::Started { at_ns })) => {
                let here_ns = self.start.started(generator, at_ns);
                let now = self.loads[generator].host.now().as_nanos() as u64;
                if here_ns.abs_diff(now) > NEWS {
                    Err(self.confused(generator, "a load that began at another time"))
                } else {
                    self.begun(here_ns);
                    self.watch_all(here_ns)
                }
            }
            HostEvent::Load(generator, Part::Event(LoadEvent::Slice { slice, data, .. })) => {
                self.counted(generator, slice, *data)
            }
            HostEvent::Load(generator, Part::End(result)) => {
                // What cannot be understood may go on all the same.
                let end = result.map_err(|error| self.loads[generator].host.explained(error))?;
                self.loads[generator].has_ended = true;
                if end.arms.len() > self.trial.timeline.arms {
                    return Err(self.confused(generator, "an arm that the trial does not have"));
                }
                self.add_load(end);
                // One that was stopped ended before its time: so do the watches then.
                if self.loads.iter().all(|load| load.has_ended) && !self.assembly.has_all_slices() {
                    self.stop();
                }
                Ok(())
            }
            HostEvent::Samples(host, part) => {
                self.sampling.take(host, part);
                Ok(())
            }
            HostEvent::Watch(host, part) => match *part {
                Part::Event(reading) => {
                    self.assembly.reading(&reading);
                    Ok(())
                }
                Part::End(result) => {
                    let end = result?;
                    self.watches[host].has_ended = true;
                    self.add_watch(end);
                    Ok(())
                }
            },
        }
    }

    fn confused(&self, generator: usize, words: &str) -> AgentError {
        AgentError::Confused {
            place: self.loads[generator].host.called().to_owned(),
            words: words.to_owned(),
        }
    }

    /// Takes a generator's counts of a slice; the slice is passed on when all generators have reported it.
    fn counted(
        &mut self,
        generator: usize,
        slice: usize,
        data: SliceData,
    ) -> Result<(), AgentError> {
        let Some(turn) = self.trial.timeline.turns.get(slice) else {
            return Err(self.confused(generator, "a slice that the trial does not have"));
        };
        self.end.answered[turn.arm] += data.completed_whole;
        let generators = self.loads.len();
        let parts = self.dealt.entry(slice).or_default();
        parts.resize(generators, None);
        parts[generator] = Some(data);
        if parts.iter().all(Option::is_some)
            && let Some(parts) = self.dealt.remove(&slice)
        {
            self.assembly.take(slice, &parts.into_iter().flatten().collect::<Vec<SliceData>>());
        }
        Ok(())
    }

    /// Notes the start of the load by this process's clock.
    fn begun(&mut self, at_ns: u64) {
        let Some(sampled) = self.trial.sampled else {
            return;
        };
        let since = (at_ns as i64).saturating_sub(sampled.begun_ns);
        let at_ns = since.saturating_sub(self.trial.before.ns as i64);
        self.end.samples_at_ns.get_or_insert(at_ns);
    }

    /// Starts the reading of counters on all hosts, once. `at_ns` is the start by this process's clock.
    fn watch_all(&mut self, at_ns: u64) -> Result<(), AgentError> {
        if !self.watches.is_empty() {
            return Ok(());
        }
        let hosts = self.trial.hosts.each().zip(&self.ahead);
        for (place, ((host, here), &ahead)) in hosts.enumerate() {
            let host_ns = at_ns.wrapping_add_signed(ahead);
            let job = self.trial.watch((host, &here), host_ns);
            let id = host.begin_watch(job, place, &self.send)?;
            self.watches.push(Request { host, id, has_ended: false });
        }
        Ok(())
    }

    fn add_load(&mut self, end: LoadEnd) {
        let all = &mut self.end.load;
        if all.arms.is_empty() {
            *all = end;
            return;
        }
        for (all, one) in all.arms.iter_mut().zip(end.arms) {
            all.asking.add(&one.asking);
            all.held.add(&one.held);
            match (&mut all.tls, one.tls) {
                (Some(all), Some(one)) => all.add(one),
                (all, one) => *all = all.take().or(one),
            }
        }
        all.errors.extend(end.errors);
        all.threads += end.threads;
        all.starved += end.starved;
    }

    fn add_watch(&mut self, end: WatchEnd) {
        let all = &mut self.end.watch;
        all.listen_overflows += end.listen_overflows;
        all.late_ns = all.late_ns.max(end.late_ns);
        if !end.memory.is_empty() {
            all.memory = end.memory;
        }
        if !end.arm_overflows.is_empty() {
            all.arm_overflows = end.arm_overflows;
        }
    }
}
