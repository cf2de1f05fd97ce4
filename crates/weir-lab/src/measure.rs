//! One continuous trial over several arms: the load moves, counters are read at every switch, and
//! each block is handed on when everything that belongs to it is known.
//!
//! The load and the counters may be on different hosts. Whoever has counters is told when the trial
//! began, in the time of its own clock, and reads by the timeline from then on. How far the clocks are
//! apart is found out before the load begins: it takes some round trips.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use weir_agent::message::{
    Ask, LoadEnd, LoadEvent, LoadJob, Reading, SliceJob, WatchEnd, WatchJob,
};
use weir_agent::server::data_of;
use weir_agent::{AgentError, Client, Part, PartBody};
use weir_load::SliceData;
use weir_model::record::SliceRecord;
use weir_model::study::CpuRoles;

use crate::places::{Places, Role};
use crate::timeline::Timeline;

/// How often a stop is looked for.
const LOOK: Duration = Duration::from_millis(50);

/// Tag of the load's messages; those of watches are the place of their host above it.
const LOAD: usize = 0;

/// One arm's part of a block.
pub(crate) struct ArmBlock {
    pub(crate) arm: usize,
    pub(crate) slices: Vec<SliceRecord>,
    /// Everything that the arm's slices counted, merged.
    pub(crate) data: SliceData,
}

/// A block of which everything is known.
pub(crate) struct FinishedBlock {
    pub(crate) block: u32,
    /// In the order of the arms.
    pub(crate) arms: Vec<ArmBlock>,
}

/// What came before a trial.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Before {
    pub(crate) slices: u64,
    pub(crate) ns: u64,
}

/// What a trial is to do.
pub(crate) struct Trial<'a> {
    pub(crate) timeline: &'a Timeline,
    /// The load, but for its slices, which are the timeline's.
    pub(crate) job: LoadJob,
    pub(crate) places: &'a Places,
    pub(crate) roles: &'a CpuRoles,
    /// Slices and time of the load's earlier trials in this session: records count on.
    pub(crate) before: Before,
    pub(crate) stop: &'a AtomicBool,
}

/// What a trial leaves beside its blocks.
#[derive(Debug, Default)]
pub(crate) struct TrialEnd {
    pub(crate) load: LoadEnd,
    /// What all hosts have watched, together.
    pub(crate) watch: WatchEnd,
    /// Requests answered, by arm.
    pub(crate) answered: Vec<u64>,
}

impl Trial<'_> {
    /// Runs it and hands every block on as soon as it is whole.
    pub(crate) fn run(
        self,
        on_block: &mut dyn FnMut(&FinishedBlock),
    ) -> Result<TrialEnd, AgentError> {
        let slices = self.timeline.slices.iter().map(|slice| SliceJob {
            arm: slice.arm,
            start: slice.start,
            measure_from: slice.measure_from,
            end: slice.end,
        });
        let job = LoadJob {
            slices: slices.collect(),
            ..self.job.clone()
        };
        let ahead = self.clocks_ahead()?;
        let (send, parts) = channel();
        let generator = self.places.agent(Role::Generator);
        let load = generator.begin(Ask::Load(Box::new(job)), LOAD, send.clone())?;
        let mut going = Going {
            trial: &self,
            send,
            load,
            load_ended: false,
            ahead,
            watches: Vec::new(),
            assembly: Assembly::new(self.timeline, self.before, self.places.each().count()),
            end: TrialEnd {
                answered: vec![0; self.timeline.arms],
                ..TrialEnd::default()
            },
        };
        let result = going.through(&parts, on_block);
        if result.is_err() {
            going.give_up();
        }
        result.map(|()| going.end)
    }

    /// How far each host's clock is ahead of the generator's, nanoseconds.
    fn clocks_ahead(&self) -> Result<Vec<i64>, AgentError> {
        let places = self.places;
        if places.together() {
            return Ok(vec![0]);
        }
        let of_generator = places.agent(Role::Generator).clock_offset_ns()?;
        let of_each = places
            .each()
            .map(|(agent, here)| match here.contains(&Role::Generator) {
                true => Ok(0),
                false => Ok(agent.clock_offset_ns()? - of_generator),
            });
        of_each.collect()
    }

    /// The counters that a host is to read, if it has any.
    fn watch(&self, here: &[Role], start_ns: u64) -> WatchJob {
        let slices = &self.timeline.slices;
        let mut times: Vec<u64> = slices.iter().map(|slice| slice.start).collect();
        times.extend(slices.last().map(|slice| slice.end));
        let has = |role: Role| here.contains(&role);
        WatchJob {
            start_ns,
            times,
            arms: self.timeline.turns.iter().map(|turn| turn.arm).collect(),
            proxies: has(Role::Proxy).then(|| self.roles.proxy.clone()),
            generator: has(Role::Generator).then(|| self.roles.generator.clone()),
            origin: has(Role::Origin),
        }
    }
}

/// A watch on one host.
struct Watch<'a> {
    agent: &'a Client,
    id: u64,
    ended: bool,
}

/// A trial that goes on.
struct Going<'a> {
    trial: &'a Trial<'a>,
    send: Sender<Part>,
    load: u64,
    load_ended: bool,
    /// How far the clock of each host is ahead of the generator's, nanoseconds.
    ahead: Vec<i64>,
    watches: Vec<Watch<'a>>,
    assembly: Assembly<'a>,
    end: TrialEnd,
}

impl Going<'_> {
    fn through(
        &mut self,
        parts: &Receiver<Part>,
        on_block: &mut dyn FnMut(&FinishedBlock),
    ) -> Result<(), AgentError> {
        let mut stopping = false;
        while !(self.load_ended && self.watches.iter().all(|watch| watch.ended)) {
            match parts.recv_timeout(LOOK) {
                Ok(part) => self.take(part)?,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            self.assembly.hand_on(on_block);
            if !stopping && self.trial.stop.load(Ordering::Relaxed) {
                stopping = true;
                self.generator().stop(self.load);
                self.stop_watches();
            }
        }
        Ok(())
    }

    fn generator(&self) -> &Client {
        self.trial.places.agent(Role::Generator)
    }

    fn stop_watches(&self) {
        let going_on = self.watches.iter().filter(|watch| !watch.ended);
        going_on.for_each(|watch| watch.agent.stop(watch.id));
    }

    /// Ends what still goes on, as far as it can be reached.
    fn give_up(&self) {
        if !self.load_ended {
            self.generator().stop(self.load);
        }
        self.stop_watches();
    }

    fn take(&mut self, part: Part) -> Result<(), AgentError> {
        match (part.tag, part.body?) {
            (LOAD, PartBody::Event(event)) => {
                let event = self.generator().understand(&event)?;
                self.load_event(event)?;
            }
            (LOAD, PartBody::Done(end)) => {
                self.end.load = self.generator().understand(&end)?;
                self.load_ended = true;
                // One that was stopped ended before its time.
                if self.trial.stop.load(Ordering::Relaxed) {
                    self.stop_watches();
                }
            }
            (tag, PartBody::Event(reading)) => {
                let reading = self.watches[tag - 1].agent.understand(&reading)?;
                self.assembly.reading(&reading);
            }
            (tag, PartBody::Done(end)) => {
                let watch = &mut self.watches[tag - 1];
                watch.ended = true;
                let end: WatchEnd = watch.agent.understand(&end)?;
                self.watched(end);
            }
        }
        Ok(())
    }

    fn load_event(&mut self, event: LoadEvent) -> Result<(), AgentError> {
        match event {
            LoadEvent::Started { at_ns } => self.watch_all(at_ns),
            LoadEvent::Slice { slice, counts, .. } => {
                let data = data_of(&counts).ok_or_else(|| AgentError::Confused {
                    place: self.generator().place().to_owned(),
                    words: "a slice's histograms cannot be read".to_owned(),
                })?;
                let arm = self.trial.timeline.turns[slice].arm;
                self.end.answered[arm] += data.completed_whole;
                self.assembly.take(slice, &data);
                Ok(())
            }
        }
    }

    /// Has all hosts read their counters. `at_ns` is the start by the generator's clock.
    fn watch_all(&mut self, at_ns: u64) -> Result<(), AgentError> {
        let places = self.trial.places;
        let agents = places.each().zip(&self.ahead);
        for (place, ((agent, here), &ahead)) in agents.enumerate() {
            let job = self.trial.watch(&here, at_ns.saturating_add_signed(ahead));
            let id = agent.begin(Ask::Watch(job), place + 1, self.send.clone())?;
            self.watches.push(Watch {
                agent,
                id,
                ended: false,
            });
        }
        Ok(())
    }

    fn watched(&mut self, end: WatchEnd) {
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

/// A reading as far as it has come: each host gives its part.
#[derive(Debug, Clone, Copy, Default)]
struct Gathered {
    reading: Reading,
    hosts: usize,
}

impl Gathered {
    fn add(&mut self, part: &Reading) {
        match self.hosts {
            0 => self.reading = *part,
            _ => self.reading.add(part),
        }
        self.hosts += 1;
    }
}

/// Puts slices and readings together to blocks.
struct Assembly<'a> {
    timeline: &'a Timeline,
    before: Before,
    /// Hosts that read counters.
    hosts: usize,
    /// At the begin of each slice, the counters of its arm.
    readings: Vec<Gathered>,
    /// At the end of the trial, the counters of each arm.
    last: Vec<Gathered>,
    records: Vec<Option<SliceRecord>>,
    /// Blocks under way, oldest first.
    open: VecDeque<OpenBlock>,
    spare: Vec<SliceData>,
}

struct OpenBlock {
    block: u32,
    /// Places of its slices in the timeline.
    places: Vec<usize>,
    /// Data of each arm.
    data: Vec<SliceData>,
}

impl<'a> Assembly<'a> {
    fn new(timeline: &'a Timeline, before: Before, hosts: usize) -> Assembly<'a> {
        let slices = timeline.slices.len();
        let mut open: VecDeque<OpenBlock> = VecDeque::new();
        for (place, turn) in timeline.turns.iter().enumerate() {
            let Some(block) = turn.block else { continue };
            match open.back_mut() {
                Some(last) if last.block == block => last.places.push(place),
                _ => open.push_back(OpenBlock {
                    block,
                    places: vec![place],
                    data: Vec::new(),
                }),
            }
        }
        Assembly {
            timeline,
            before,
            hosts,
            readings: vec![Gathered::default(); slices],
            last: vec![Gathered::default(); timeline.arms],
            records: vec![None; slices],
            open,
            spare: Vec::new(),
        }
    }

    fn take(&mut self, place: usize, data: &SliceData) {
        let turn = self.timeline.turns[place];
        let slice = self.timeline.slices[place];
        let Some(block) = turn.block else { return };
        self.records[place] = Some(SliceRecord {
            index: self.before.slices + place as u64,
            start_ns: self.before.ns + slice.start,
            measured_ns: slice.end - slice.measure_from,
            offered: data.offered,
            completed: data.completed,
            completed_whole: data.completed_whole,
            received_bytes: data.received_bytes,
            reconnects: data.reconnects,
            generator_cpu_ns: data.cpu_ns,
            ..SliceRecord::default()
        });
        let Some(open) = self.open.iter_mut().find(|open| open.block == block) else {
            return;
        };
        while open.data.len() < self.timeline.arms {
            open.data.push(self.spare.pop().unwrap_or_default());
        }
        open.data[turn.arm].add(data);
    }

    fn reading(&mut self, part: &Reading) {
        match self.readings.get_mut(part.slice) {
            Some(place) => place.add(part),
            None => self.last[part.arm].add(part),
        }
    }

    /// Hands on the blocks that are whole, in order.
    fn hand_on(&mut self, on_block: &mut dyn FnMut(&FinishedBlock)) {
        while let Some(slices) = self.open.front().and_then(|open| self.slices_of(open)) {
            let Some(open) = self.open.pop_front() else {
                return;
            };
            let mut arms: Vec<ArmBlock> = open
                .data
                .into_iter()
                .enumerate()
                .map(|(arm, data)| ArmBlock {
                    arm,
                    slices: Vec::new(),
                    data,
                })
                .collect();
            for (place, slice) in open.places.into_iter().zip(slices) {
                arms[self.timeline.turns[place].arm].slices.push(slice);
            }
            let block = FinishedBlock {
                block: open.block,
                arms,
            };
            on_block(&block);
            self.spare.extend(block.arms.into_iter().map(|arm| {
                let mut data = arm.data;
                data.clear();
                data
            }));
        }
    }

    /// The records of a block's slices, if all are known.
    fn slices_of(&self, open: &OpenBlock) -> Option<Vec<SliceRecord>> {
        open.places.iter().map(|&place| self.slice(place)).collect()
    }

    fn slice(&self, place: usize) -> Option<SliceRecord> {
        let begin = self.at(place, self.timeline.turns[place].arm)?;
        let end = self.at(place + 1, begin.arm)?;
        let again = self.at(self.timeline.next_of_arm[place], begin.arm)?;
        Some(SliceRecord {
            proxy_cpu_ns: again.proxy_cpu_ns.saturating_sub(begin.proxy_cpu_ns),
            origin_requests: again.origin_requests.saturating_sub(begin.origin_requests),
            origin_connects: again.origin_connects.saturating_sub(begin.origin_connects),
            origin_cpu_ns: end.origin_cpu_ns.saturating_sub(begin.origin_cpu_ns),
            // The kernel's idle and iowait counters are known to step back now and then (proc(5)).
            proxy_steal_ns: end.proxy_steal_ns.saturating_sub(begin.proxy_steal_ns),
            generator_steal_ns: (end.generator_steal_ns).saturating_sub(begin.generator_steal_ns),
            proxy_cpus_idle_ns: end.proxy_idle_ns.saturating_sub(begin.proxy_idle_ns),
            late_ns: begin.late_ns.max(end.late_ns).max(again.late_ns),
            ..self.records[place]?
        })
    }

    /// The counters at the begin of a slice, or at the end, once all hosts have told theirs.
    fn at(&self, place: usize, arm: usize) -> Option<Reading> {
        let gathered = self.readings.get(place).unwrap_or(&self.last[arm]);
        (gathered.hosts == self.hosts).then_some(gathered.reading)
    }
}
