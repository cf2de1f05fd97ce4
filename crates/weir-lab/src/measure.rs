//! One continuous trial over several arms: the load moves, counters are read at every switch, and
//! each block is handed on when everything that belongs to it is known.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use weir_load::{Control, Errors, Flow, Io, LoadError, Outcome, Plan, SliceData};
use weir_model::quantity::CpuSet;
use weir_model::record::SliceRecord;
use weir_probe::{CpuTimes, CpuTimesReader, ProbeError, ProcessCpu, ThreadCpu};

use crate::part::{Answers, Edges, SharedEdges};
use crate::timeline::Timeline;

/// Counters at the begin of a slice.
#[derive(Debug, Clone, Copy, Default)]
struct Reading {
    /// The slice; their number at the end of the trial.
    slice: usize,
    /// The arm whose counters these are.
    arm: usize,
    proxy_cpu_ns: u64,
    origin_requests: u64,
    origin_connects: u64,
    origin_cpu_ns: u64,
    proxy: CpuTimes,
    generator: CpuTimes,
}

/// Requests and connections that an arm's origin listener has seen.
pub(crate) type OriginCounters = Arc<dyn Fn(usize) -> (u64, u64) + Send + Sync>;

/// Reads the counters of all arms from the thread that switches the load.
pub(crate) struct Counters {
    /// Processes of each arm's proxy.
    pub(crate) proxies: Vec<Vec<ProcessCpu>>,
    pub(crate) origin: OriginCounters,
    pub(crate) origin_threads: Vec<ThreadCpu>,
    pub(crate) proxy_cpus: CpuTimesReader,
    pub(crate) generator_cpus: CpuTimesReader,
}

impl Counters {
    /// Readers for these processes and CPUs.
    pub(crate) fn open(
        proxies: &[Vec<u32>],
        origin: OriginCounters,
        origin_threads: &[u32],
        proxy_cpus: &CpuSet,
        generator_cpus: &CpuSet,
    ) -> Result<Counters, ProbeError> {
        let open_all = |pids: &Vec<u32>| pids.iter().copied().map(ProcessCpu::open).collect();
        Ok(Counters {
            proxies: proxies.iter().map(open_all).collect::<Result<_, _>>()?,
            origin,
            origin_threads: origin_threads
                .iter()
                .map(|&tid| ThreadCpu::of_own_thread(tid))
                .collect::<Result<_, _>>()?,
            proxy_cpus: CpuTimesReader::open(proxy_cpus)?,
            generator_cpus: CpuTimesReader::open(generator_cpus)?,
        })
    }

    /// A counter that cannot be read any more stands still; that its process has ended is found
    /// out elsewhere, and ends the run.
    fn read(&mut self, slice: usize, arm: usize) -> Reading {
        let (origin_requests, origin_connects) = (self.origin)(arm);
        Reading {
            slice,
            arm,
            proxy_cpu_ns: self.proxies[arm]
                .iter_mut()
                .map(|cpu| cpu.read_ns().unwrap_or(0))
                .sum(),
            origin_requests,
            origin_connects,
            origin_cpu_ns: self
                .origin_threads
                .iter_mut()
                .map(|t| t.read_ns().unwrap_or(0))
                .sum(),
            proxy: self.proxy_cpus.read().unwrap_or_default(),
            generator: self.generator_cpus.read().unwrap_or_default(),
        }
    }
}

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
    /// A flow for each arm of the timeline.
    pub(crate) flows: Vec<Flow>,
    pub(crate) timeout: Duration,
    /// The generator's threads, each with its CPU.
    pub(crate) cpus: Vec<Option<u32>>,
    pub(crate) counters: Counters,
    /// Slices and time of the load's earlier trials in this session: records count on.
    pub(crate) before: Before,
    pub(crate) stop: &'a Arc<AtomicBool>,
    /// Takes what the host counts from the begin to the end.
    pub(crate) edges: SharedEdges,
}

impl Trial<'_> {
    /// Runs it and hands every block on as soon as it is whole.
    pub(crate) fn run(
        self,
        on_block: &mut dyn FnMut(&FinishedBlock),
    ) -> Result<Outcome, LoadError> {
        let plan = Plan {
            flows: self.flows,
            slices: self.timeline.slices.clone(),
            ramp_up: Duration::ZERO,
            drain: self.timeout,
            spin: Duration::ZERO,
            io: Io::Auto,
            cpus: self.cpus,
        };
        let (send, readings) = channel();
        let edges = SharedEdges::clone(&self.edges);
        let hook = hook(self.counters, self.timeline, send, self.edges);
        let control = Control::new(plan.cpus.len(), Arc::clone(self.stop));
        let mut assembly = Assembly::new(self.timeline, self.before, readings);
        let mut of_held = Errors::default();
        let mut answers = Answers::of(self.timeline.arms);
        let outcome = weir_load::run(&plan, &control, Some(hook), |slice, data| {
            // Connections that are held have no requests: what fails there is no block's failure.
            let (asking, held) = (&data[0], &data[1..]);
            held.iter().for_each(|held| of_held.add(&held.errors));
            answers.add(self.timeline.turns[slice].arm, asking.completed_whole);
            assembly.take(slice, asking);
            assembly.hand_on(on_block);
        });
        assembly.hand_on(on_block);
        answers.tell(&edges);
        let mut outcome = outcome?;
        outcome.errors.add(&of_held);
        Ok(outcome)
    }
}

fn hook(
    mut counters: Counters,
    timeline: &Timeline,
    send: Sender<Reading>,
    edges: SharedEdges,
) -> weir_load::engine::SliceHook {
    let arms: Vec<usize> = timeline.turns.iter().map(|turn| turn.arm).collect();
    let all = timeline.arms;
    let processes: Vec<Vec<u32>> = counters.proxies[..all]
        .iter()
        .map(|proxies| proxies.iter().map(ProcessCpu::pid).collect())
        .collect();
    Box::new(move |slice, _now| {
        let read = match arms.get(slice) {
            Some(&arm) => arm..arm + 1,
            None => 0..all,
        };
        for arm in read {
            // Nobody listens any more only when the trial is being torn down.
            let _ = send.send(counters.read(slice, arm));
        }
        let is_end = slice >= arms.len();
        if slice == 0 || is_end {
            Edges::read(&edges, is_end, &processes);
        }
    })
}

/// Puts slices and readings together to blocks.
struct Assembly<'a> {
    timeline: &'a Timeline,
    before: Before,
    incoming: Receiver<Reading>,
    /// At the begin of each slice, the counters of its arm.
    readings: Vec<Option<Reading>>,
    /// At the end of the trial, the counters of each arm.
    last: Vec<Option<Reading>>,
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
    fn new(timeline: &'a Timeline, before: Before, incoming: Receiver<Reading>) -> Assembly<'a> {
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
            incoming,
            readings: vec![None; slices],
            last: vec![None; timeline.arms],
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

    /// Hands on the blocks that are whole, in order.
    fn hand_on(&mut self, on_block: &mut dyn FnMut(&FinishedBlock)) {
        for reading in self.incoming.try_iter() {
            match self.readings.get_mut(reading.slice) {
                Some(place) => *place = Some(reading),
                None => self.last[reading.arm] = Some(reading),
            }
        }
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
        let begin = self.readings[place]?;
        let end = self.reading(place + 1, begin.arm)?;
        let again = self.reading(self.timeline.next_of_arm[place], begin.arm)?;
        Some(SliceRecord {
            proxy_cpu_ns: again.proxy_cpu_ns.saturating_sub(begin.proxy_cpu_ns),
            origin_requests: again.origin_requests.saturating_sub(begin.origin_requests),
            origin_connects: again.origin_connects.saturating_sub(begin.origin_connects),
            origin_cpu_ns: end.origin_cpu_ns.saturating_sub(begin.origin_cpu_ns),
            proxy_steal_ns: (end.proxy - begin.proxy).steal_ns,
            generator_steal_ns: (end.generator - begin.generator).steal_ns,
            proxy_cpus_idle_ns: (end.proxy - begin.proxy).idle_ns,
            ..self.records[place]?
        })
    }

    fn reading(&self, place: usize, arm: usize) -> Option<Reading> {
        match self.readings.get(place) {
            Some(reading) => *reading,
            None => self.last[arm],
        }
    }
}
