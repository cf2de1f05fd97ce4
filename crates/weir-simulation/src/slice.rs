//! Simulation of one slice, request by request: through the generators' connections and the arm's workers, first come
//! first served.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;

use weir_load::{Errors, Slice, SliceData};
use weir_model::load::{ErrorCount, ErrorKind};

use crate::chance::Chance;
use crate::model::{ArmModel, Distribution, Fault};
use crate::stills::Stills;

/// Size of a response, head and content, bytes.
const RESPONSE_BYTES: u64 = 1200;
/// Kernel's message if nobody listens.
const REFUSED: &str = "Connection refused (os error 111)";
/// Engine's message for a response that takes too long.
const TIMEOUT: &str = "no complete response within the timeout";

/// Inputs of the simulation of a slice. Times are nanoseconds since the trial's start, unless they are times of the
/// world.
pub(crate) struct Play<'a> {
    pub(crate) slice: Slice,
    /// Start of the trial, nanoseconds of the world.
    pub(crate) origin_ns: u64,
    pub(crate) arm: &'a ArmModel,
    /// Factor for service times; `lag` is the distribution of dispatch lags.
    pub(crate) factor: f64,
    pub(crate) lag: Distribution,
    /// Times in which nothing is sent: (seconds of the world, length in seconds).
    pub(crate) held_up: &'a [(f64, f64)],
    /// Times in which the CPUs of the arm and of the generator stand still, ascending.
    pub(crate) hold_ups: &'a Stills,
    /// Senders, one for each flow of each generator.
    pub(crate) senders: Vec<Sender>,
    pub(crate) status: u16,
}

/// Work in progress at the end of a slice. It continues in the next slice if that is the same arm's. Times are
/// nanoseconds since the trial's start.
pub(crate) struct UnderWay {
    arm: usize,
    end: u64,
    /// Time at which each worker becomes free.
    workers: BinaryHeap<Reverse<u64>>,
    /// Work in progress of each sender.
    senders: Vec<PendingWork>,
}

/// Work in progress of a sender at the end of a slice.
#[derive(Default)]
struct PendingWork {
    /// Time at which each connection becomes free.
    free: BinaryHeap<Reverse<u64>>,
    /// Due times of requests that have found no connection.
    unsent: Vec<u64>,
    /// Requests under way: (time sent, time of the answer).
    answers: Vec<(u64, u64)>,
}

impl UnderWay {
    /// Returns true if `slice` continues this work.
    pub(crate) fn goes_on_in(&self, slice: Slice) -> bool {
        (self.arm, self.end) == (slice.arm, slice.start)
    }
}

/// The requests of a flow in a slice.
pub(crate) struct Sender {
    pub(crate) connections: u32,
    pub(crate) timeout_ns: u64,
    /// Times at which requests are due, ascending; `None` in a closed loop.
    pub(crate) due: Option<Vec<u64>>,
}

/// Result of a simulated slice.
pub(crate) struct Played {
    /// Counts of each sender.
    pub(crate) data: Vec<SliceData>,
    /// Time that the arm's workers were busy, nanoseconds.
    pub(crate) busy_ns: f64,
    /// Number of requests that reached the arm.
    pub(crate) requests: u64,
    /// Work in progress at the end; `None` for a slice that was simulated as a whole.
    pub(crate) under_way: Option<UnderWay>,
}

/// State of a sender during the slice.
struct SenderState {
    /// Number of due requests that were sent or given up.
    tried: usize,
    left: PendingWork,
    data: SliceData,
    errors: BTreeMap<(ErrorKind, &'static str), u64>,
}

/// A request to be sent.
#[derive(Clone, Copy)]
struct Request {
    sender: usize,
    intended: u64,
    sent: u64,
}

impl Play<'_> {
    /// Simulates the slice, starting with the work in progress. `failing` is true if the last response was an error,
    /// which makes the next one likely to be one too.
    pub(crate) fn play(
        &mut self,
        under_way: Option<UnderWay>,
        chance: &mut Chance,
        failing: &mut bool,
    ) -> Played {
        let mut senders: Vec<SenderState> =
            self.senders.iter().map(|sender| self.begin(sender)).collect();
        let workers = vec![Reverse(self.slice.start); self.arm.workers.max(1)];
        let mut workers = BinaryHeap::from(workers);
        if let Some(before) = under_way {
            workers = before.workers;
            let pairs = self.senders.iter_mut().zip(&mut senders);
            for ((sender, going), mut left) in pairs.zip(before.senders) {
                going.left.free = left.free;
                for (sent, done) in left.answers {
                    going.answered(self.slice, sent, done);
                }
                if let Some(due) = &mut sender.due {
                    left.unsent.append(due);
                    *due = left.unsent;
                }
            }
        }
        let mut played = Played { data: Vec::new(), busy_ns: 0.0, requests: 0, under_way: None };
        while let Some(request) = self.next(&mut senders, chance) {
            let ended =
                self.serve(request, &mut senders[request.sender], (chance, failing), |service| {
                    played.busy_ns += service as f64;
                    played.requests += 1;
                    // The worker that is free first, but not before the request is there.
                    let free = workers.pop().map_or(0, |Reverse(free)| free);
                    let begin = self.unstalled(free.max(request.sent));
                    let end = self.held_up(begin, service);
                    workers.push(Reverse(end));
                    end
                });
            senders[request.sender].left.free.push(Reverse(ended));
        }
        played.under_way = Some(UnderWay {
            arm: self.slice.arm,
            end: self.slice.end,
            workers,
            senders: senders.iter_mut().map(|going| std::mem::take(&mut going.left)).collect(),
        });
        played.data = senders.into_iter().map(SenderState::told).collect();
        played
    }

    /// Returns true if the slice can be simulated as a whole: see [`crate::Grain::Slices`].
    pub(crate) fn is_plain(&self) -> bool {
        let arm = self.arm;
        let [sender] = &self.senders[..] else {
            return false;
        };
        sender.due.is_none()
            && arm.faults.is_empty()
            && arm.errors.share <= 0.0
            && *self.hold_ups == Stills::default()
    }

    /// Simulates the slice as a whole.
    pub(crate) fn play_whole(&self, chance: &mut Chance) -> Played {
        let (mean, sd) = self.arm.service.moments();
        let workers = self.arm.workers.max(1) as f64;
        let measured_ns = self.slice.end - self.slice.measure_from;
        let mean_count = measured_ns as f64 * workers / (mean * self.factor);
        // The count of a renewal process (Feller, An Introduction to Probability Theory, vol. 2, XI).
        let deviation = sd / mean * mean_count.sqrt() * chance.normal();
        let measured = (mean_count + deviation).max(0.0);
        let length = self.slice.end - self.slice.start;
        let unmeasured_ns = self.slice.measure_from - self.slice.start;
        let mut data = SliceData::new();
        data.completed = measured.round() as u64;
        let served_ns = self.slice.served_until() - self.slice.measure_from;
        let of_all = served_ns as f64 / measured_ns.max(1) as f64;
        data.served_thousandths = (measured * of_all * 1e3) as u64;
        let measured = data.completed;
        let completed_whole = measured
            + (measured as f64 * unmeasured_ns as f64 / (length - unmeasured_ns) as f64) as u64;
        data.offered = measured;
        data.completed_whole = completed_whole;
        data.statuses[usize::from(self.status) - 100] = completed_whole;
        data.received_bytes = RESPONSE_BYTES * completed_whole;
        let waits = f64::from(self.senders[0].connections) / workers;
        let time = (mean * self.factor * waits.max(1.0)) as u64;
        data.histograms.response.saturating_record_n(time, measured);
        Played {
            data: vec![data],
            busy_ns: completed_whole as f64 * mean * self.factor,
            requests: completed_whole,
            under_way: None,
        }
    }

    /// Returns the time at which work that begins at a moment ends, with the standstills of its CPU.
    fn held_up(&self, begin: u64, service: u64) -> u64 {
        let mut end = begin + service;
        for still in &self.hold_ups.proxy {
            if still.start < end && begin < still.end {
                end += still.end - still.start.max(begin);
            }
        }
        end
    }

    /// Returns the first time from a moment on at which the generator does not stand still.
    fn awake(&self, at: u64) -> u64 {
        let mut stills = self.hold_ups.generator.iter();
        stills.find(|still| still.contains(&at)).map_or(at, |still| still.end)
    }

    fn begin(&self, sender: &Sender) -> SenderState {
        let free = vec![Reverse(self.slice.start); sender.connections as usize];
        SenderState {
            tried: 0,
            left: PendingWork { free: BinaryHeap::from(free), ..PendingWork::default() },
            data: SliceData::new(),
            errors: BTreeMap::new(),
        }
    }

    /// Returns the time at which a sender can send its next request; `None` if it has none.
    fn ready(&self, sender: &Sender, going: &SenderState) -> Option<u64> {
        let free = going.left.free.peek().map(|Reverse(free)| *free);
        match &sender.due {
            None => free.filter(|at| *at < self.slice.end),
            Some(due) => {
                let due = *due.get(going.tried)?;
                Some(due.max(free.unwrap_or(self.slice.end)))
            }
        }
    }

    /// Returns the next request that is sent before the slice ends. Due requests that find no connection before that
    /// are given up.
    fn next(&self, senders: &mut [SenderState], chance: &mut Chance) -> Option<Request> {
        loop {
            let (at, sender) = self
                .senders
                .iter()
                .zip(&*senders)
                .enumerate()
                .filter_map(|(place, (sender, going))| Some((self.ready(sender, going)?, place)))
                .min()?;
            let going = &mut senders[sender];
            let free = going.left.free.pop();
            let Some(due) = &self.senders[sender].due else {
                return Some(self.sent(sender, at, at, chance));
            };
            let intended = due[going.tried];
            going.tried += 1;
            let is_measured = self.slice.measures(intended);
            going.data.due += u64::from(is_measured);
            let request = self.sent(sender, intended, at, chance);
            if request.sent < self.slice.end {
                if is_measured {
                    let lag = &mut going.data.histograms.dispatch_lag;
                    lag.saturating_record((request.sent - at).max(1));
                }
                return Some(request);
            }
            going.left.free.extend(free);
            going.left.unsent.push(intended);
            going.data.queued += u64::from(is_measured);
            let censored = &mut going.data.censored;
            censored.queued += u64::from(intended >= self.slice.start);
            censored.oldest_ns = censored.oldest_ns.max(self.slice.end - intended);
        }
    }

    /// Makes a request that could be sent at a moment, with the time at which the generator really sends it.
    fn sent(&self, sender: usize, intended: u64, at: u64, chance: &mut Chance) -> Request {
        let is_open = self.senders[sender].due.is_some();
        let lag = if is_open { chance.time(self.lag).max(0.0) as u64 } else { 0 };
        let mut sent = at + lag;
        for (from, length) in self.held_up {
            let from = self.of_trial(*from);
            let until = from + (length * 1e9) as i64;
            if (from..until).contains(&(sent as i64)) {
                sent = until as u64;
            }
        }
        let sent = self.awake(sent);
        Request { sender, intended: if is_open { intended } else { sent }, sent }
    }

    /// Converts seconds of the world to nanoseconds of the trial.
    fn of_trial(&self, seconds: f64) -> i64 {
        (seconds * 1e9) as i64 - self.origin_ns as i64
    }

    fn is_within(&self, at: u64, times: &Range<f64>) -> bool {
        (self.of_trial(times.start)..self.of_trial(times.end)).contains(&(at as i64))
    }

    /// Returns true if connections are refused at a moment.
    fn refuses(&self, at: u64) -> bool {
        self.arm.faults.iter().any(|fault| match fault {
            Fault::Refuse(times) => self.is_within(at, times),
            Fault::Crash { at_s } => at as i64 >= self.of_trial(*at_s),
            Fault::Stall(_) | Fault::DoesNotStart(_) => false,
        })
    }

    /// Returns the first time from a moment on at which the arm does not stall.
    fn unstalled(&self, at: u64) -> u64 {
        let stalls = self.arm.faults.iter().filter_map(|fault| match fault {
            Fault::Stall(times) if self.is_within(at, times) => Some(self.of_trial(times.end)),
            _ => None,
        });
        stalls.max().map_or(at, |end| end as u64)
    }

    /// Handles a request and returns the time at which its connection is free again. `work` has the arm process it.
    fn serve(
        &self,
        request: Request,
        going: &mut SenderState,
        (chance, failing): (&mut Chance, &mut bool),
        work: impl FnOnce(u64) -> u64,
    ) -> u64 {
        let data = &mut going.data;
        data.offered += u64::from(self.slice.measures(request.sent));
        if self.refuses(request.sent) {
            *going.errors.entry((ErrorKind::Connect, REFUSED)).or_default() += 1;
            // The engine waits a moment before it tries again.
            return request.sent + 1_000_000;
        }
        let service = (chance.time(self.arm.service) * self.factor).max(1.0) as u64;
        let done = self.awake(work(service));
        let timeout = self.senders[request.sender].timeout_ns;
        if done - request.sent > timeout {
            *going.errors.entry((ErrorKind::Timeout, TIMEOUT)).or_default() += 1;
            return request.sent + timeout;
        }
        let status = self.status_of(chance, failing);
        data.statuses[usize::from(status) - 100] += 1;
        data.completed_whole += 1;
        data.received_bytes += RESPONSE_BYTES;
        if self.slice.measures(request.intended) {
            let times = &mut data.histograms;
            times.response.saturating_record((done - request.intended).max(1));
            if self.senders[request.sender].due.is_some() {
                times.service.saturating_record((done - request.sent).max(1));
            }
        }
        going.answered(self.slice, request.sent, done);
        done
    }

    /// Draws the status of a response. Errors occur in runs: a chain of two states with the share and the mean length
    /// of the model.
    fn status_of(&self, chance: &mut Chance, failing: &mut bool) -> u16 {
        let errors = self.arm.errors;
        if errors.share <= 0.0 {
            return self.status;
        }
        let leave = 1.0 / errors.run.max(1.0);
        let enter = leave * errors.share / (1.0 - errors.share).max(1e-9);
        *failing = if *failing { !chance.happens(leave) } else { chance.happens(enter) };
        if *failing { 502 } else { self.status }
    }
}

impl SenderState {
    /// Counts the part of an answer that lies in this slice; the next slice may have the rest.
    fn answered(&mut self, slice: Slice, sent: u64, done: u64) {
        self.data.completed += u64::from(slice.measures(done));
        self.data.served_thousandths += slice.served(sent, done);
        if done >= slice.end {
            self.left.answers.push((sent, done));
        }
    }

    fn told(self) -> SliceData {
        let mut data = self.data;
        let counts = self.errors.into_iter();
        let counts: Vec<ErrorCount> = counts
            .map(|((kind, words), count)| ErrorCount {
                kind,
                words: words.to_owned(),
                // ECONNREFUSED: an arm that is not there refuses connections.
                errno: (kind == ErrorKind::Connect).then_some(111),
                count,
            })
            .collect();
        data.errors = Errors::told(&counts);
        data
    }
}
