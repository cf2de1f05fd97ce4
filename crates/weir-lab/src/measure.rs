//! One continuous trial over several arms: the load moves, counters are read at every switch, and
//! each block is handed on when everything that belongs to it is known.
//!
//! The load and the counters may be on different hosts. Whoever has counters is told when the trial
//! began, in the time of its own clock, and reads by the timeline from then on. How far the clocks are
//! apart is found out before the load begins: it takes some round trips.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use weir_agent::message::{Ask, LoadEnd, LoadEvent, LoadJob, SliceJob, WatchEnd, WatchJob};
use weir_agent::server::data_of;
use weir_agent::{AgentError, Client, Part, PartBody};
use weir_model::study::CpuRoles;

use crate::assembly::{Assembly, Before, FinishedBlock};
use crate::places::{Places, Role};
use crate::timeline::Timeline;

/// How often a stop is looked for.
const LOOK: Duration = Duration::from_millis(50);

/// Tag of the load's messages; those of watches are the place of their host above it.
const LOAD: usize = 0;

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
            LoadEvent::Slice { slice, counts } => {
                let confused = |words: &str| AgentError::Confused {
                    place: self.generator().place().to_owned(),
                    words: words.to_owned(),
                };
                let data = data_of(&counts)
                    .ok_or_else(|| confused("a slice's histograms cannot be read"))?;
                let turn = self.trial.timeline.turns.get(slice);
                let turn = turn.ok_or_else(|| confused("a slice that the trial does not have"))?;
                self.end.answered[turn.arm] += data.completed_whole;
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
