//! Assembles blocks from the load's slices and the counters of all hosts as they arrive.

use std::borrow::Cow;
use std::collections::VecDeque;

use hdrhistogram::Histogram;
use weir_agent::message::Reading;
use weir_load::SliceData;
use weir_model::record::{GeneratorShare, SliceRecord};
use weir_proposers::Timeline;

/// Longest standstill of CPUs with which a slice still counts for an arm's p99, nanoseconds (docs/study.md gives the
/// reason).
const LONGEST_STANDSTILL_NS: u64 = 500_000;

/// One arm's part of a block.
pub(crate) struct ArmBlock {
    pub(crate) arm: usize,
    pub(crate) slices: Vec<SliceRecord>,
    /// Merged data of the arm's slices.
    pub(crate) data: SliceData,
    /// Response times of an open loop in the slices in which the machine did not stand still; `None` unless there are
    /// such slices and others.
    pub(crate) undisturbed: Option<Histogram<u64>>,
    /// Share of each generator if there are several; otherwise empty.
    pub(crate) generators: Vec<GeneratorShare>,
}

/// A block with complete data.
pub(crate) struct FinishedBlock {
    pub(crate) block: u32,
    /// Parts of the arms, in the order of the arms.
    pub(crate) arms: Vec<ArmBlock>,
}

/// Slices and nanoseconds that came before a trial.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LoadOffset {
    pub(crate) slices: u64,
    pub(crate) ns: u64,
}

/// A partial reading, to which each host adds its part.
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

/// Assembles blocks from slices and readings.
pub(crate) struct Assembly<'a> {
    timeline: &'a Timeline,
    before: LoadOffset,
    /// Number of hosts that read counters.
    hosts: usize,
    /// Names of the generators' hosts.
    generators: Vec<String>,
    /// Counters of the slice's arm at the start of each slice.
    readings: Vec<Gathered>,
    /// Counters of each arm at the end of the trial.
    last: Vec<Gathered>,
    records: Vec<Option<SliceRecord>>,
    /// Incomplete blocks, oldest first.
    open: VecDeque<OpenBlock>,
    spare: Vec<SliceData>,
}

struct OpenBlock {
    block: u32,
    /// Indexes of the block's slices in the timeline.
    places: Vec<usize>,
    /// Data by arm.
    data: Vec<SliceData>,
    /// Data by arm and generator; empty lists with a single generator.
    of_each: Vec<Vec<SliceData>>,
    /// Response times of each slice in an open loop, kept because standstills of the machine are known only later.
    responses: Vec<Option<Histogram<u64>>>,
}

impl<'a> Assembly<'a> {
    /// Creates an assembly that expects counters of `hosts` hosts; `generators` are the names of the hosts among which
    /// the load is divided.
    pub(crate) fn new(
        timeline: &'a Timeline,
        before: LoadOffset,
        hosts: usize,
        generators: Vec<String>,
    ) -> Assembly<'a> {
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
                    of_each: vec![Vec::new(); timeline.arms],
                    responses: Vec::new(),
                }),
            }
        }
        Assembly {
            timeline,
            before,
            hosts,
            generators,
            readings: vec![Gathered::default(); slices],
            last: vec![Gathered::default(); timeline.arms],
            records: vec![None; slices],
            open,
            spare: Vec::new(),
        }
    }

    /// Takes the counts of each generator for the slice at `place`.
    pub(crate) fn take(&mut self, place: usize, each: &[SliceData]) {
        let turn = self.timeline.turns[place];
        let slice = self.timeline.slices[place];
        let Some(block) = turn.block else { return };
        let data = match each {
            [data] => Cow::Borrowed(data),
            several => Cow::Owned(sum(several)),
        };
        // In an open loop the rate is given.
        let is_closed = data.due == 0;
        self.records[place] = Some(SliceRecord {
            index: self.before.slices + place as u64,
            start_ns: self.before.ns + slice.start,
            measured_ns: slice.end - slice.measure_from,
            whole_ns: (slice.end - slice.start) * u64::from(self.timeline.is_stepped),
            offered: data.offered,
            due: data.due,
            sent: sent(&data),
            queued: data.queued,
            dropped: data.dropped,
            completed: data.completed,
            served_thousandths: data.served_thousandths * u64::from(is_closed),
            served_ns: (slice.served_until() - slice.measure_from) * u64::from(is_closed),
            completed_whole: data.completed_whole,
            received_bytes: data.received_bytes,
            reconnects: data.reconnects,
            switch_late_ns: data.switch_late_ns,
            generator_cpu_ns: data.cpu_ns,
            ..SliceRecord::default()
        });
        let Some(open) = self.open.iter_mut().find(|open| open.block == block) else {
            return;
        };
        while open.data.len() < self.timeline.arms {
            open.data.push(self.spare.pop().unwrap_or_default());
        }
        open.data[turn.arm].add(&data);
        if each.len() > 1 {
            let histograms = &mut open.of_each[turn.arm];
            histograms.resize_with(each.len(), || self.spare.pop().unwrap_or_default());
            histograms.iter_mut().zip(each).for_each(|(sum, data)| sum.add(data));
        }
        open.responses.resize(open.places.len(), None);
        let index = open.places.iter().position(|measured| *measured == place);
        if let Some(index) = index.filter(|_| data.due > 0) {
            open.responses[index] = Some(data.histograms.response.clone());
        }
    }

    pub(crate) fn reading(&mut self, part: &Reading) {
        let sum = match self.readings.get_mut(part.slice) {
            Some(sum) => Some(sum),
            None => self.last.get_mut(part.arm),
        };
        // One of another trial's shape would be a mistake of a host's; its block is never whole then.
        if let Some(sum) = sum {
            sum.add(part);
        }
    }

    /// Returns true if the load has reported every slice.
    pub(crate) fn has_all_slices(&self) -> bool {
        let mut turns = self.timeline.turns.iter().zip(&self.records);
        turns.all(|(turn, record)| turn.block.is_none() || record.is_some())
    }

    /// Passes complete blocks to `on_block`, in order.
    pub(crate) fn hand_on(&mut self, on_block: &mut dyn FnMut(&FinishedBlock)) {
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
                    undisturbed: None,
                    generators: (self.generators.iter().zip(&open.of_each[arm]))
                        .map(|(host, data)| share(host, data))
                        .collect(),
                })
                .collect();
            let responses = open.responses.into_iter();
            for ((place, slice), response) in open.places.into_iter().zip(slices).zip(responses) {
                let arm = &mut arms[self.timeline.turns[place].arm];
                arm.slices.push(slice);
                if let Some(response) = response.filter(|_| !slice.stood_still) {
                    arm.undisturbed = Some(match arm.undisturbed.take() {
                        Some(sum) => sum + response,
                        None => response,
                    });
                }
            }
            for arm in &mut arms {
                let is_part = arm.slices.iter().any(|slice| slice.stood_still);
                arm.undisturbed = arm.undisturbed.take().filter(|_| is_part);
            }
            let block = FinishedBlock { block: open.block, arms };
            on_block(&block);
            let used = block
                .arms
                .into_iter()
                .map(|arm| arm.data)
                .chain(open.of_each.into_iter().flatten());
            self.spare.extend(used.map(|mut data| {
                data.clear();
                data
            }));
        }
    }

    /// Returns the records of a block's slices; `None` if some are not known yet.
    fn slices_of(&self, open: &OpenBlock) -> Option<Vec<SliceRecord>> {
        open.places.iter().map(|&place| self.slice(place)).collect()
    }

    fn slice(&self, place: usize) -> Option<SliceRecord> {
        let begin = self.at(place, self.timeline.turns[place].arm)?;
        let end = self.at(place + 1, begin.arm)?;
        let again = self.at(self.timeline.next_of_arm[place], begin.arm)?;
        Some(SliceRecord {
            proxy_cpu_ns: again.proxy_cpu_ns.saturating_sub(begin.proxy_cpu_ns),
            rest_ns: again.rest_ns,
            rest_cpu_ns: again.rest_cpu_ns,
            origin_requests: again.origin_requests.saturating_sub(begin.origin_requests),
            origin_connects: again.origin_connects.saturating_sub(begin.origin_connects),
            origin_cpu_ns: end.origin_cpu_ns.saturating_sub(begin.origin_cpu_ns),
            // The kernel's idle and iowait counters are known to step back now and then (proc(5)).
            proxy_steal_ns: end.left_steal_ns.saturating_sub(begin.proxy_steal_ns),
            generator_steal_ns: (end.generator_steal_ns).saturating_sub(begin.generator_steal_ns),
            proxy_cpus_idle_ns: end.left_idle_ns.saturating_sub(begin.proxy_idle_ns),
            proxy_irq_ns: end.left_irq_ns.saturating_sub(begin.proxy_irq_ns),
            throttled_ns: end.throttled_ns.saturating_sub(begin.throttled_ns),
            proxy_throttled_ns: (again.proxy_throttled_ns).saturating_sub(begin.proxy_throttled_ns),
            sockets: begin.sockets,
            sockets_after: end.left_sockets,
            held_up: end.held_up,
            stood_still: end.held_up.worst_ns() > LONGEST_STANDSTILL_NS,
            late_ns: begin.late_ns.max(end.late_ns).max(again.late_ns),
            ..self.records[place]?
        })
    }

    /// Returns the counters at the start of the slice at `place`, or at the end of the trial; `None` until all hosts
    /// have reported theirs.
    fn at(&self, place: usize, arm: usize) -> Option<Reading> {
        let gathered = self.readings.get(place).unwrap_or(&self.last[arm]);
        (gathered.hosts == self.hosts).then_some(gathered.reading)
    }
}

/// Adds up the counts of all generators. Histograms add exactly, since all have the same bounds.
fn sum(each: &[SliceData]) -> SliceData {
    let mut all = SliceData::new();
    each.iter().for_each(|data| all.add(data));
    all
}

fn median_and_p99(histogram: &Histogram<u64>) -> [u64; 2] {
    [0.5, 0.99].map(|q| histogram.value_at_quantile(q))
}

/// Returns a generator's share of an arm's slices in a block.
fn share(host: &str, data: &SliceData) -> GeneratorShare {
    let histograms = &data.histograms;
    GeneratorShare {
        host: host.to_owned(),
        due: data.due,
        sent: sent(data),
        queued: data.queued,
        dropped: data.dropped,
        completed: data.completed,
        cpu_ns: data.cpu_ns,
        timed: histograms.response.len(),
        response_time: median_and_p99(&histograms.response),
        dispatch_lag: median_and_p99(&histograms.dispatch_lag),
    }
}

/// Returns the number of due requests that were sent; 0 unless it is an open loop.
fn sent(data: &SliceData) -> u64 {
    match data.due {
        0 => 0,
        _ => data.histograms.dispatch_lag.len(),
    }
}
