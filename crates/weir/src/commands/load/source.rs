//! Progress of a running load: its state, its intervals, and the figures so far on request.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use weir_lab::Measured;
use weir_load::engine::{FlowTotals, Progress, TlsCounts};
use weir_load::ledger::new_histogram;
use weir_load::{Control, Errors, Outcome, Plan, SliceData, Watch};
use weir_model::load::{Arrivals, Lifetime};
use weir_model::load_report::LoadReport;
use weir_model::progress::{LoadInterval, LoadPhase, LoadState};
use weir_model::record::Validity;
use weir_report::load::{human, time_report, time_summary};

use super::job::Job;
use super::result::{Collected, End};
use crate::progress::{Event, Source};
use crate::terminal;

/// Time between reports of the load's state.
const STATE: Duration = Duration::from_millis(250);

/// Time between events about flows.
const FLOWS: Duration = Duration::from_secs(1);

/// A running load, as the source of its progress events.
pub(super) struct Load<'a> {
    pub(super) job: &'a Job,
    pub(super) control: &'a Control,
    pub(super) collected: &'a Mutex<Collected<'a>>,
    /// State of this host, if it sends the load.
    pub(super) watch: Option<&'a Mutex<Watch>>,
    pub(super) started_at: Timestamp,
    /// Time at which connections began to open.
    pub(super) begun: Instant,
    /// Start of the load, and the number of connections that were open then; `None` before the start.
    pub(super) running: Option<(Instant, u64)>,
    pub(super) told: Option<Instant>,
    /// Time of the last events about flows.
    pub(super) flows_told: Option<Instant>,
}

/// Locks the mutex, even if a thread has panicked while it held the lock.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the event that announces the load.
fn begin_event(job: &Job) -> Event {
    let rates = job.plan.flows.iter().map(|flow| match &flow.arrivals {
        Arrivals::Constant { rate } => Some(*rate),
        _ => None,
    });
    let connections = job.plan.flows.iter().map(|flow| u64::from(flow.connections));
    Event::LoadBegun {
        url: job.flows[0].target.url.clone(),
        connections: connections.sum(),
        length: total_length(&job.plan),
        rate: rates.sum(),
    }
}

/// Returns the length of the whole plan, seconds.
fn total_length(plan: &Plan) -> f64 {
    plan.slices.last().map_or(0, |slice| slice.end) as f64 / 1e9
}

impl Source for Load<'_> {
    fn look(&mut self, asked: bool, tell: &mut dyn FnMut(Event)) {
        if self.told.is_none() {
            tell(begin_event(self.job));
            for flow in &self.job.flows {
                let (name, nothing) = (flow.name.clone(), SliceData::new());
                tell(Event::Flow(Box::new(Measured::of(name, String::new(), 0.0, &nothing))));
            }
        }
        if self.running.is_none() && self.control.started_at.load(Ordering::Relaxed) > 0 {
            self.running = Some((Instant::now(), self.sum(|progress| &progress.open)));
        }
        while let Some(interval) = self.interval() {
            tell(Event::Interval(Box::new(interval)));
        }
        let are_flows_due = self.flows_told.is_none_or(|told| told.elapsed() >= FLOWS);
        if are_flows_due || locked(self.collected).has_ended() {
            self.flows_told = Some(Instant::now());
            self.tell_flows(tell);
        }
        if asked {
            tell(Event::Asked { text: self.answer() });
        }
        if self.told.is_none_or(|told| told.elapsed() >= STATE) {
            self.told = Some(Instant::now());
            tell(Event::LoadState(self.state()));
        }
    }
}

impl Load<'_> {
    fn sum(&self, figure: impl Fn(&Progress) -> &AtomicU64) -> u64 {
        self.control.progress.iter().map(|progress| figure(progress).load(Ordering::Relaxed)).sum()
    }

    /// Tells what each flow has measured since the last call.
    fn tell_flows(&self, tell: &mut dyn FnMut(Event)) {
        let Some((seconds, flows)) = locked(self.collected).fresh() else {
            return;
        };
        let reasons = self.report(false).validity;
        let validity = reasons.iter().map(|reason| reason.validity).max();
        for (index, data) in flows.iter().enumerate() {
            let name = &self.job.flows[index].name;
            tell(Event::Flow(Box::new(Measured {
                validity: validity.unwrap_or(Validity::Valid),
                reasons: reasons.clone(),
                ..Measured::of(name.clone(), String::new(), seconds, data)
            })));
        }
    }

    fn state(&self) -> LoadState {
        let plan = &self.job.plan;
        let length = total_length(plan);
        let completed = self.sum(|progress| &progress.completed);
        let requests = plan.flows[0].limit.filter(|_| plan.flows.len() == 1);
        let elapsed = self.running.map_or(0.0, |(since, _)| since.elapsed().as_secs_f64());
        let phase = match self.running {
            None => LoadPhase::Connecting,
            Some(_) if elapsed >= length => LoadPhase::Draining,
            Some(_) if elapsed < plan.ramp_up.as_secs_f64() => LoadPhase::RampUp,
            Some(_) => LoadPhase::Measuring,
        };
        let remaining = match (phase, requests) {
            (LoadPhase::Connecting, _) => length + self.opening(),
            (LoadPhase::Draining, _) => plan.drain.as_secs_f64() - (elapsed - length),
            (_, Some(requests)) if completed > 0 => {
                let time_each = elapsed / completed as f64;
                (requests.saturating_sub(completed) as f64 * time_each).min(length - elapsed)
            }
            _ => length - elapsed,
        };
        LoadState {
            phase,
            elapsed: elapsed.min(length),
            left: remaining.max(0.0),
            length,
            requests,
            completed,
            errors: self.sum(|progress| &progress.errors),
            in_flight: self.sum(|progress| &progress.in_flight),
            open: self.sum(|progress| &progress.open),
        }
    }

    /// Returns the seconds until all connections are open, by the given connection rates; 0 if none is given.
    fn opening(&self) -> f64 {
        let all = self
            .job
            .plan
            .flows
            .iter()
            .filter_map(|flow| Some(f64::from(flow.connections) / flow.connect_rate?))
            .fold(0.0, f64::max);
        (all - self.begun.elapsed().as_secs_f64()).max(0.0)
    }

    /// Returns the next interval that has ended, with the figures and the validity so far.
    fn interval(&self) -> Option<LoadInterval> {
        let (at, interval) = locked(self.collected).interval()?;
        let reasons = self.report(false).validity;
        let validity = reasons.iter().map(|reason| reason.validity).max();
        Some(LoadInterval {
            at,
            interval,
            so_far: locked(self.collected).so_far(),
            validity: validity.unwrap_or(Validity::Valid),
            reasons,
        })
    }

    /// Returns the figures so far, as they would be printed if the load ended now.
    fn answer(&self) -> String {
        if locked(self.collected).until() == 0 {
            return "nothing is measured yet".to_owned();
        }
        let report = self.report(true);
        let seconds = report.phases.sustain;
        let text = human(&report, None, false, false, terminal::width());
        format!("So far, after {seconds:.0} s:\n{}", text.trim_end())
    }

    /// Returns the result as if the load had ended with the latest slice. Facts that are only known at the end, such as
    /// the connections of each of several flows, are assumed to be good.
    fn report(&self, whole: bool) -> LoadReport {
        let collected = locked(self.collected);
        let plan = &self.job.plan;
        let flows = plan.flows.iter().enumerate().map(|(index, flow)| {
            let connections = u64::from(flow.connections);
            let is_known = plan.flows.len() == 1 && flow.lifetime != Lifetime::Request;
            let open = |known: u64| if is_known { known } else { connections };
            let connected = open(self.running.map_or(connections, |(_, open)| open));
            FlowTotals {
                connections,
                connected,
                open_at_end: open(self.sum(|progress| &progress.open)),
                connects: connected + collected.reconnects(index),
                lost_at_rest: 0,
                connect_time: new_histogram(),
                tls_time: new_histogram(),
                tls: TlsCounts::default(),
            }
        });
        let threads = self.control.progress.iter();
        let outcome = Outcome {
            ended_at: collected.until().max(1),
            flows: flows.collect(),
            errors: Errors::default(),
            cpu_ns: threads.map(|progress| progress.cpu_ns.load(Ordering::Relaxed)).collect(),
            spun_ns: Vec::new(),
            woken_late: [0, 0],
            longest_gap_ns: Vec::new(),
            starved: 0,
            io: plan.io,
        };
        collected.report(
            self.job,
            End {
                outcome: &outcome,
                generator: self.watch.map(|watch| locked(watch).seen(plan.io)).unwrap_or_default(),
                generators: Vec::new(),
                started_at: self.started_at,
                interrupted: false,
                times: if whole { time_report } else { time_summary },
            },
        )
    }
}
