//! A simulated host and its time: arms, counters, and trials in progress.

use std::collections::BTreeMap;

use weir_agent::message::{LoadEvent, LoadJob, Reading, SampleEnd, SampleJob, WatchEnd, WatchJob};
use weir_agent::{Failure, FailureKind, Part};
use weir_load::{Slice, SliceData};
use weir_model::record::{HoldUps, SocketCounts};
use weir_stats::SplitMix64;

use crate::chance::Chance;
use crate::load::{Load, ToLoad};
use crate::memory::Memory;
use crate::model::{ArmModel, Fault, Grain, Model};
use crate::noise::{NS_PER_S, NoiseState};
use crate::slice::{Play, Played, UnderWay};
use crate::stills::Stills;

/// Time that a proxy takes to start, nanoseconds.
pub(crate) const START_NS: u64 = 50_000_000;
/// Time that opening connections takes before a trial's first slice, nanoseconds.
const OPENING_NS: u64 = 10_000_000;

type ToWatch = Box<dyn FnMut(Part<WatchJob>)>;

/// A simulated host. Time advances when something is started, and in [`World::advance`].
pub struct World {
    pub(crate) model: Model,
    /// Nanoseconds since the world began.
    pub now_ns: u64,
    seeds: SplitMix64,
    machine: NoiseState,
    /// Random numbers for hold-ups.
    chance: Chance,
    /// Hold-ups of the previous slice, as the meters recorded them.
    held_up: HoldUps,
    /// Running arms by slot.
    pub(crate) arms: BTreeMap<usize, RunningArm>,
    /// Ended connections in the namespace of each slot, whichever instance of its arm is in it.
    pub(crate) memories: BTreeMap<usize, Memory>,
    pub(crate) status: u16,
    /// True if arms have namespaces of their own.
    pub(crate) has_networks: bool,
    next_id: u64,
    loads: Vec<Load>,
    watches: Vec<Watch>,
    /// Index of the next slice of the trial in progress.
    slice: usize,
    origin_ns: u64,
    under_way: Option<UnderWay>,
    /// Counters of the whole host.
    generator_steal_ns: f64,
    origin_cpu_ns: f64,
}

/// A running arm.
pub(crate) struct RunningArm {
    pub(crate) name: String,
    pub(crate) model: ArmModel,
    noise: NoiseState,
    chance: Chance,
    /// Start of its instance, nanoseconds of the world.
    pub(crate) born_ns: u64,
    pub(crate) pid: u32,
    /// Factor by which this instance is slower than others.
    instance: f64,
    failing: bool,
    /// CPU time of the arm, nanoseconds; the following fields are counters too.
    cpu_ns: f64,
    pub(crate) requests: u64,
    connections: u64,
    busy_ns: f64,
}

struct Watch {
    id: u64,
    job: WatchJob,
    to: ToWatch,
    is_stopped: bool,
}

impl World {
    /// Makes the host of a model, on which nothing runs yet.
    pub fn new(model: &Model) -> World {
        let mut seeds = SplitMix64::new(model.seed);
        World {
            machine: NoiseState::new(&model.machine.noise, seeds.next_u64()),
            chance: Chance::new(!model.seed),
            held_up: HoldUps::default(),
            model: model.clone(),
            now_ns: 0,
            seeds,
            arms: BTreeMap::new(),
            memories: BTreeMap::new(),
            status: 200,
            has_networks: false,
            next_id: 1,
            loads: Vec::new(),
            watches: Vec::new(),
            slice: 0,
            origin_ns: 0,
            under_way: None,
            generator_steal_ns: 0.0,
            origin_cpu_ns: 0.0,
        }
    }

    /// Begins to carry out a load and returns its id. `to` receives its messages as time goes on.
    pub fn begin_load(&mut self, job: LoadJob, to: ToLoad) -> u64 {
        let id = self.number();
        self.loads.push(Load::new(id, job, to));
        id
    }

    /// Begins to read counters and returns an id. `to` receives the readings as time goes on.
    pub fn begin_watch(&mut self, job: WatchJob, to: Box<dyn FnMut(Part<WatchJob>)>) -> u64 {
        let id = self.number();
        self.watches.push(Watch { id, job, to, is_stopped: false });
        id
    }

    /// Begins sampling and returns an id. Nothing is sampled here, so `to` receives the end at once.
    pub fn begin_samples(&mut self, to: &mut dyn FnMut(Part<SampleJob>)) -> u64 {
        to(Part::End(Ok(SampleEnd::default())));
        self.number()
    }

    fn number(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// Stops a load or a watch before its time.
    pub fn stop(&mut self, id: u64) {
        let load = self.loads.iter_mut().find(|load| load.id == id);
        load.into_iter().for_each(|load| load.is_stopped = true);
        let watch = self.watches.iter_mut().find(|watch| watch.id == id);
        watch.into_iter().for_each(|watch| watch.is_stopped = true);
    }

    /// Advances time until a callback has received a message. Returns false if nothing is in progress.
    pub fn advance(&mut self) -> bool {
        if self.loads.iter().all(|load| load.has_told) && self.end_stopped_watches() {
            return true;
        }
        if self.loads.is_empty() {
            return false;
        }
        if let Some(load) = self.loads.iter_mut().find(|load| !load.has_told) {
            if self.slice == 0 && self.origin_ns < self.now_ns {
                self.under_way = None;
                self.origin_ns = self.now_ns + OPENING_NS;
            }
            load.has_told = true;
            let late_ns = self.model.generator.apart_ns * u64::from(load.job.others.before > 0);
            if let Err(failure) = opened(&load.job, &self.arms, self.now_ns) {
                for mut load in std::mem::take(&mut self.loads) {
                    (load.to)(Part::End(Err(failure.clone().into())));
                }
                self.slice = 0;
                return true;
            }
            let at_ns = self.origin_ns + late_ns;
            (load.to)(Part::Event(LoadEvent::Started { at_ns }));
            return true;
        }
        let slices = self.loads[0].job.slices.len();
        if self.slice < slices && !self.loads.iter().any(|load| load.is_stopped) {
            self.play_slice();
        } else {
            self.end_trial();
        }
        true
    }

    /// Ends the watches that were stopped. Returns true if there were any.
    fn end_stopped_watches(&mut self) -> bool {
        let ended: Vec<usize> =
            (0..self.watches.len()).filter(|&place| self.watches[place].is_stopped).collect();
        for place in ended.iter().rev() {
            let mut watch = self.watches.remove(*place);
            (watch.to)(Part::End(Ok(WatchEnd::default())));
        }
        !ended.is_empty()
    }

    fn play_slice(&mut self) {
        let (place, load) = (self.slice, &self.loads[0]);
        let job = load.job.slices[place];
        let slice =
            Slice { arm: job.arm, start: job.start, measure_from: job.measure_from, end: job.end };
        self.tell_reading(place, slice.start);
        let played = self.play(slice);
        let length = (slice.end - slice.start) as f64;
        self.now_ns = self.origin_ns + slice.end;
        let steal = length * self.model.machine.steal;
        self.generator_steal_ns += steal;
        let sent: u64 = played.iter().map(|data| data.offered).sum();
        self.origin_cpu_ns += 5e3 * sent as f64;
        self.slice += 1;
        for (load, data) in self.loads.iter_mut().zip(played) {
            (load.to)(Part::Event(LoadEvent::Slice {
                slice: place,
                flow: 0,
                data: Box::new(data),
            }));
        }
    }

    /// Simulates the slice and returns the counts of each generator.
    fn play(&mut self, slice: Slice) -> Vec<SliceData> {
        let (mut senders, mut counts) = (Vec::new(), Vec::new());
        for load in &mut self.loads {
            let of_load = load.senders(slice);
            counts.push(of_load.len());
            senders.extend(of_load);
        }
        let at_ns = self.origin_ns + slice.start;
        let machine = self.machine.factor(at_ns);
        let slot = self.slot_of(slice.arm);
        let (hold_ups, held_up) = Stills::of(&self.model.machine, slice, &mut self.chance);
        self.held_up = held_up;
        let (generator, status) = (&self.model.generator, self.status);
        let other_arms = self.arms.len().saturating_sub(1) as f64;
        let Some(arm) = self.arms.get_mut(&slot) else {
            return self.loads.iter().map(|_| SliceData::new()).collect();
        };
        let memory = self.memories.entry(slot).or_default();
        let time_wait = arm.model.time_wait;
        let crowd = 1.0 + arm.model.crowding * other_arms;
        let factor = machine * crowd * arm.factor(at_ns) * memory.factor(time_wait.as_ref(), at_ns);
        let mut chance = arm.chance.clone();
        let due: usize =
            senders.iter().filter_map(|sender| sender.due.as_ref()).map(Vec::len).sum();
        let rate = due as f64 / ((slice.end - slice.start) as f64 / 1e9);
        let mut play = Play {
            slice,
            origin_ns: self.origin_ns,
            arm: &arm.model,
            factor,
            lag: generator.lag_at(rate),
            held_up: &generator.held_up,
            hold_ups: &hold_ups,
            senders,
            status,
        };
        let Played { data, busy_ns, requests, under_way } =
            if self.model.grain == Grain::Slices && play.is_plain() {
                play.play_whole(&mut chance)
            } else {
                let before = self.under_way.take().filter(|before| before.goes_on_in(slice));
                play.play(before, &mut chance, &mut arm.failing)
            };
        self.under_way = under_way;
        arm.chance = chance;
        arm.cpu_ns += busy_ns * arm.model.cpu_share;
        arm.busy_ns += busy_ns * arm.model.cpu_share;
        arm.requests += requests;
        memory.add(time_wait.as_ref(), requests, at_ns);
        let mut flows = data.into_iter();
        let sums = counts.into_iter().map(|count| {
            let mut data = SliceData::new();
            flows.by_ref().take(count).for_each(|flow| data.add(&flow));
            data.cpu_ns = (generator.cpu_ns * data.completed_whole as f64) as u64;
            data
        });
        sums.collect()
    }

    /// Returns the slot of the arm at an index of the trial; without a watch, the index itself.
    fn slot_of(&self, place: usize) -> usize {
        let watch = self.watches.first();
        watch.and_then(|watch| watch.job.slots.get(place).copied()).unwrap_or(place)
    }

    /// Sends the watches the readings of counters at the beginning of a slice, or at the end of the last one.
    fn tell_reading(&mut self, slice: usize, at: u64) {
        let mut watches = std::mem::take(&mut self.watches);
        for watch in &mut watches {
            let arms: Vec<usize> = match watch.job.arms.get(slice) {
                Some(arm) => vec![*arm],
                None => (0..watch.job.slots.len()).collect(),
            };
            for arm in arms {
                let before = slice.checked_sub(1).and_then(|before| watch.job.arms.get(before));
                let arm_before = if watch.job.arms.len() > slice { before.copied() } else { None };
                let reading = self.reading(&watch.job, slice, (arm, arm_before.unwrap_or(arm)), at);
                (watch.to)(Part::Event(reading));
            }
        }
        self.watches = watches;
    }

    fn reading(
        &self,
        job: &WatchJob,
        slice: usize,
        (arm, left): (usize, usize),
        at: u64,
    ) -> Reading {
        let running = job.slots.get(arm).and_then(|slot| self.arms.get(slot));
        let proxies = |value: u64| if job.proxies.is_some() { value } else { 0 };
        let origin = |value: u64| if job.origin { value } else { 0 };
        let steal = self.model.machine.steal;
        let wall = (self.origin_ns + at) as f64;
        // What others did meanwhile on the same CPUs is all arms' together.
        let busy: f64 = self.arms.values().map(|arm| arm.busy_ns).sum();
        let sets = job.proxies.as_deref().unwrap_or_default();
        let [[steal_ns, idle_ns], [left_steal_ns, left_idle_ns]] = [arm, left].map(|place| {
            let cpus = sets.get(place).map_or(1, |set| set.cpus().len()) as f64;
            let idle = (wall * cpus * (1.0 - steal) - busy).max(0.0);
            [(wall * cpus * steal) as u64, idle as u64]
        });
        Reading {
            slice,
            arm,
            proxy_cpu_ns: proxies(running.map_or(0, |arm| arm.cpu_ns as u64)),
            origin_requests: origin(running.map_or(0, |arm| arm.requests)),
            origin_connects: origin(running.map_or(0, |arm| arm.connections)),
            origin_cpu_ns: origin(self.origin_cpu_ns as u64),
            proxy_steal_ns: proxies(steal_ns),
            proxy_idle_ns: proxies(idle_ns),
            left_steal_ns: proxies(left_steal_ns),
            left_idle_ns: proxies(left_idle_ns),
            sockets: self.sockets(job, arm),
            left_sockets: self.sockets(job, left),
            generator_steal_ns: match job.generator {
                Some(_) => self.generator_steal_ns as u64,
                None => 0,
            },
            held_up: HoldUps {
                proxy: self.held_up.proxy.filter(|_| job.proxies.is_some()),
                generator: self.held_up.generator.filter(|_| job.generator.is_some()),
                origin: None,
            },
            late_ns: self.model.generator.late_ns,
            ..Reading::default()
        }
    }

    /// Returns the socket counts in the namespace of the arm at an index.
    fn sockets(&self, job: &WatchJob, place: usize) -> Option<SocketCounts> {
        job.proxies.as_ref()?;
        let memory = self.memories.get(job.slots.get(place)?);
        Some(memory.map_or_else(SocketCounts::default, Memory::sockets))
    }

    /// Ends all loads and watches of the trial.
    fn end_trial(&mut self) {
        let is_whole = self.slice == self.loads[0].job.slices.len();
        if is_whole {
            let end = self.loads[0].job.slices.last().map_or(0, |slice| slice.end);
            self.tell_reading(self.slice, end);
        }
        for mut watch in std::mem::take(&mut self.watches) {
            let memory = if watch.job.proxies.is_some() {
                vec![10 << 20; watch.job.slots.len()]
            } else {
                Vec::new()
            };
            (watch.to)(Part::End(Ok(WatchEnd {
                memory,
                late_ns: self.model.generator.late_ns,
                ..WatchEnd::default()
            })));
        }
        for mut load in std::mem::take(&mut self.loads) {
            let end = load.end();
            (load.to)(Part::End(Ok(end)));
        }
        self.slice = 0;
    }

    /// Starts an instance of an arm.
    pub(crate) fn instance(&mut self, name: &str) -> Result<RunningArm, Failure> {
        let model = self.model.arms.get(name).unwrap_or(&self.model.others).clone();
        for fault in &model.faults {
            if let Fault::DoesNotStart(why) = fault {
                return Err(Failure { kind: FailureKind::BadInput, ..Failure::other(why) });
            }
        }
        self.now_ns += START_NS;
        let mut chance = Chance::new(self.seeds.next_u64());
        Ok(RunningArm {
            name: name.to_owned(),
            noise: NoiseState::new(&model.noise, self.seeds.next_u64()),
            instance: (model.instance_sd * chance.normal()).exp(),
            chance,
            model,
            born_ns: self.now_ns,
            pid: 1000 + self.next_id as u32,
            failing: false,
            cpu_ns: 0.0,
            requests: 0,
            connections: 0,
            busy_ns: 0.0,
        })
    }

    /// Replaces the instance of the arm in a slot by a new one, whose counters begin at 0. Returns its PID.
    pub(crate) fn renewed(&mut self, slot: usize) -> Result<u32, Failure> {
        let before = self
            .arms
            .get(&slot)
            .ok_or_else(|| Failure::other(format!("there is no arm in slot {slot}")))?;
        // What goes on around it goes on.
        let (name, noise) = (before.name.clone(), before.noise.clone());
        self.next_id += 1;
        let arm = RunningArm { noise, ..self.instance(&name)? };
        let pid = arm.pid;
        self.arms.insert(slot, arm);
        Ok(pid)
    }
}

impl RunningArm {
    /// Returns the factor for its service times at a moment.
    fn factor(&mut self, at_ns: u64) -> f64 {
        let age_s = at_ns.saturating_sub(self.born_ns) as f64 / NS_PER_S;
        let slow = self.model.slow_start;
        let slow =
            slow.map_or(1.0, |slow| 1.0 + (slow.factor - 1.0) * (-age_s / slow.time_s).exp());
        let leak = 1.0 + self.model.leak_per_s * age_s;
        self.noise.factor(at_ns) * self.instance * slow * leak
    }

    /// Returns true if it has ended by itself.
    pub(crate) fn has_crashed(&self, now_ns: u64) -> bool {
        self.model.faults.iter().any(
            |fault| matches!(fault, Fault::Crash { at_s } if now_ns as f64 / NS_PER_S >= *at_s),
        )
    }
}

/// Checks if a load's connections can be opened.
fn opened(job: &LoadJob, arms: &BTreeMap<usize, RunningArm>, now_ns: u64) -> Result<(), Failure> {
    let all_gone = !arms.is_empty() && arms.values().all(|arm| arm.has_crashed(now_ns));
    if all_gone || job.flows.is_empty() {
        Err(Failure {
            kind: FailureKind::NoConnection,
            ..Failure::other("no connection could be opened: Connection refused (os error 111)")
        })
    } else {
        Ok(())
    }
}
