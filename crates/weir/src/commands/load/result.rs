//! Conversion of the engine's slices to the report from which every format is made.

use std::collections::VecDeque;
use std::ops::Range;

use hdrhistogram::Histogram;
use jiff::Timestamp;
use weir_load::engine::FlowTotals;
use weir_load::figures::{figures, per_second, statuses};
use weir_load::plan::Plan;
use weir_load::{Flow, Outcome, Slice, SliceData};
use weir_model::load::Arrivals;
use weir_model::load_report::{
    Counts, FORMAT, FlowReport, FlowResults, GeneratorReport, LoadGenerator, LoadReport, LoadShape,
    PhaseSeconds, Rates, Second, TimeReport, TlsReport,
};
use weir_model::progress::LoadFigures;

use super::job::Job;
use super::stretches::{Grid, Stretches};
use crate::args;

/// Number of seconds that `over_time` lists one by one; the time after them is listed in minutes, so that a load may
/// last for days.
const SECONDS: usize = 3600;
const MINUTE: usize = 60;

/// Data collected during a trial. It takes as much memory after a day as after a minute, except for a point of
/// `over_time` each minute.
pub(crate) struct Collected<'a> {
    plan: &'a Plan,
    /// Counts so far, by flow.
    flows: Vec<SliceData>,
    /// By flow, bytes that responses to requests of measured slices had.
    measured_bytes: Vec<u64>,
    /// All flows of a slice together.
    together: SliceData,
    minutes: Stretches,
    seconds: Vec<Second>,
    intervals: Option<Stretches>,
    /// By flow, slices that were not taken by [`Collected::fresh`] yet; `None` if nobody takes them.
    fresh: Option<Vec<SliceData>>,
    /// Measured time of these slices, nanoseconds.
    fresh_ns: u64,
    has_ended: bool,
    /// Complete intervals that have not been taken yet, each with its begin in seconds.
    whole: VecDeque<(f64, LoadFigures)>,
    /// End of the latest slice so far, in nanoseconds.
    until: u64,
}

/// End of a trial, or its present state.
pub(crate) struct End<'a> {
    pub(crate) outcome: &'a Outcome,
    pub(crate) generator: GeneratorReport,
    /// Report about each generator, if there are several.
    pub(crate) generators: Vec<LoadGenerator>,
    pub(crate) started_at: Timestamp,
    pub(crate) interrupted: bool,
    /// Function that makes the report of a distribution, with its histogram or without.
    pub(crate) times: fn(&Histogram<u64>) -> TimeReport,
}

impl<'a> Collected<'a> {
    /// Creates an empty collection. `every` is the length of intervals in seconds; `None` means no intervals.
    /// With `counts_flows`, slices are also collected for [`Collected::fresh`].
    pub(crate) fn new(plan: &'a Plan, every: Option<usize>, counts_flows: bool) -> Collected<'a> {
        let first =
            plan.slices.iter().position(|slice| slice.end > slice.measure_from).unwrap_or(0);
        let grid = Grid { first, single: SECONDS, step: MINUTE, slices: plan.slices.len() };
        Collected {
            plan,
            flows: no_data(plan),
            measured_bytes: vec![0; plan.flows.len()],
            together: SliceData::new(),
            minutes: Stretches::new(grid),
            seconds: Vec::new(),
            intervals: every.map(|every| Stretches::new(Grid { single: 0, step: every, ..grid })),
            fresh: counts_flows.then(|| no_data(plan)),
            fresh_ns: 0,
            has_ended: false,
            whole: VecDeque::new(),
            until: 0,
        }
    }

    /// Takes one slice. Returns its measured time in seconds, its data of all flows together, and the number of
    /// responses with an unexpected status. `None` if no part of the slice is measured.
    pub(crate) fn take<'t>(
        &'t mut self,
        slice: usize,
        data: &'t [SliceData],
    ) -> Option<((f64, f64), &'t SliceData, u64)> {
        for (flow, data) in self.flows.iter_mut().zip(data) {
            flow.add(data);
        }
        for (flow, data) in self.fresh.iter_mut().flatten().zip(data) {
            flow.add(data);
        }
        let slices = &self.plan.slices;
        if slices[slice].end <= slices[slice].measure_from {
            return None;
        }
        for (bytes, data) in self.measured_bytes.iter_mut().zip(data) {
            *bytes += data.received_bytes;
        }
        self.until = self.until.max(slices[slice].end);
        self.fresh_ns += slices[slice].end - slices[slice].measure_from;
        let all = match data {
            [only] => only,
            several => {
                self.together.clear();
                several.iter().for_each(|data| self.together.add(data));
                &self.together
            }
        };
        let seconds = &mut self.seconds;
        self.minutes.take(slice, all, |range, data| {
            seconds.push(point(span(slices, range), data));
        });
        let finished = &mut self.whole;
        if let Some(intervals) = &mut self.intervals {
            intervals.take(slice, all, |range, data| {
                let (at, seconds) = span(slices, range);
                finished.push_back((at, figures(data, seconds)));
            });
        }
        let measured = (slices[slice].measure_from as f64 / 1e9, slices[slice].end as f64 / 1e9);
        // Of flows that do not say which statuses are right: those from 400 on.
        let wrong = self
            .plan
            .flows
            .iter()
            .zip(data)
            .filter(|(flow, _)| !flow.requests.expects_status())
            .flat_map(|(_, data)| &data.statuses[300..]);
        Some((measured, all, wrong.sum()))
    }

    /// Ends the trial: shortens the stretches that have begun to the time that was measured.
    pub(crate) fn end(&mut self, ended_at: u64) {
        self.has_ended = true;
        let slices = &self.plan.slices;
        let cut =
            |(at, seconds): (f64, f64)| (at, seconds.min(ended_at as f64 / 1e9 - at).max(0.0));
        let seconds = &mut self.seconds;
        self.minutes.end(|range, data| {
            seconds.push(point(cut(span(slices, range)), data));
        });
        if let Some(last) = seconds.last_mut() {
            (_, last.seconds) = cut((last.at, last.seconds));
        }
        let finished = &mut self.whole;
        if let Some(intervals) = &mut self.intervals {
            intervals.end(|range, data| {
                let (at, seconds) = cut(span(slices, range));
                finished.push_back((at, figures(data, seconds)));
            });
        }
        if let Some((at, last)) = finished.back_mut() {
            (_, last.seconds) = cut((*at, last.seconds));
            last.rate = per_second(last.completed as f64, last.seconds);
        }
    }

    /// Returns the next complete interval: its begin in seconds, and its figures.
    pub(crate) fn interval(&mut self) -> Option<(f64, LoadFigures)> {
        self.whole.pop_front()
    }

    /// Takes the seconds that were measured since the last call, and what each flow measured; `None` if nothing was.
    pub(crate) fn fresh(&mut self) -> Option<(f64, Vec<SliceData>)> {
        let fresh = self.fresh.as_mut()?;
        if fresh.iter().all(|data| {
            data.due + data.offered + data.completed_whole == 0 && data.errors.is_empty()
        }) {
            return None;
        }
        let seconds = std::mem::take(&mut self.fresh_ns) as f64 / 1e9;
        Some((seconds, std::mem::replace(fresh, no_data(self.plan))))
    }

    /// Returns true after the last slice.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Returns the end of the latest slice so far, in nanoseconds.
    pub(crate) fn until(&self) -> u64 {
        self.until
    }

    /// Returns the number of a flow's connections that were reopened so far.
    pub(crate) fn reconnects(&self, flow: usize) -> u64 {
        self.flows[flow].reconnects
    }

    /// Returns the figures so far.
    pub(crate) fn so_far(&self) -> LoadFigures {
        let ramp_up = self.plan.ramp_up.as_nanos() as u64;
        let seconds = self.until.saturating_sub(ramp_up) as f64 / 1e9;
        match &self.flows[..] {
            [only] => figures(only, seconds),
            several => figures(&sum(several), seconds),
        }
    }

    /// Returns the result.
    pub(crate) fn report(&self, job: &Job, end: End<'_>) -> LoadReport {
        let plan = &job.plan;
        let outcome = end.outcome;
        let ended_at = outcome.ended_at as f64 / 1e9;
        let ramp_up = plan.ramp_up.as_secs_f64().min(ended_at);
        let sustain = ended_at - ramp_up;
        let flows =
            self.flows.iter().zip(&outcome.flows).enumerate().map(|(index, (data, totals))| {
                Measured {
                    job,
                    index,
                    data,
                    measured_bytes: self.measured_bytes[index],
                    totals,
                    sustain,
                    times: end.times,
                }
            });
        // Of a single one, `together` says all.
        let flows: Vec<FlowReport> = if plan.flows.len() > 1 {
            flows
                .map(|flow| FlowReport {
                    name: job.flows[flow.index].name.clone(),
                    results: flow.results(),
                })
                .collect()
        } else {
            Vec::new()
        };
        let mut report = LoadReport {
            format: FORMAT.to_owned(),
            weir_version: args::version().to_owned(),
            started_at: end.started_at.to_string(),
            results: self.together(&end, job, sustain),
            phases: PhaseSeconds { ramp_up, sustain },
            generator_cpu_ns: outcome.cpu_ns.clone(),
            generator: end.generator,
            generators: end.generators,
            over_time: self.seconds.clone(),
            flows,
            validity: Vec::new(),
            notes: Vec::new(),
            outcome: if end.interrupted { "interrupted" } else { "complete" }.to_owned(),
        };
        report.validity = weir_analysis::load_validity(&report);
        report
    }

    /// Combines all flows into one, with the target and load shape of the first.
    fn together(&self, end: &End<'_>, job: &Job, sustain: f64) -> FlowResults {
        let (plan, outcome) = (&job.plan, end.outcome);
        let mut all = sum(&self.flows);
        all.errors.add(&outcome.errors);
        let mut totals = outcome.flows[0].clone();
        outcome.flows[1..].iter().for_each(|flow| totals.add(flow));
        let of_all = Measured {
            job,
            index: 0,
            data: &all,
            measured_bytes: self.measured_bytes.iter().sum(),
            totals: &totals,
            sustain,
            times: end.times,
        };
        let mut results = of_all.results();
        results.load.connections = totals.connections as u32;
        results.rates.intended = plan
            .flows
            .iter()
            .filter(|flow| !flow.is_held())
            .map(|flow| intended(plan, flow, sustain))
            .sum();
        results
    }
}

/// Data measured for a flow.
struct Measured<'a> {
    job: &'a Job,
    /// Index of the flow in the plan.
    index: usize,
    data: &'a SliceData,
    measured_bytes: u64,
    totals: &'a FlowTotals,
    /// Length of the measured time, seconds.
    sustain: f64,
    times: fn(&Histogram<u64>) -> TimeReport,
}

fn no_data(plan: &Plan) -> Vec<SliceData> {
    plan.flows.iter().map(|_| SliceData::new()).collect()
}

fn sum(flows: &[SliceData]) -> SliceData {
    let mut all = SliceData::new();
    flows.iter().for_each(|data| all.add(data));
    all
}

/// Returns begin and length of these slices' measured time, in seconds.
fn span(slices: &[Slice], range: Range<usize>) -> (f64, f64) {
    let (from, to) = (slices[range.start].measure_from, slices[range.end - 1].end);
    (from as f64 / 1e9, (to - from) as f64 / 1e9)
}

/// Returns a point of `over_time`.
fn point((at, seconds): (f64, f64), data: &SliceData) -> Second {
    let response = &data.histograms.response;
    Second {
        at,
        seconds,
        offered: data.offered,
        completed: data.completed,
        errors: data.errors.total(),
        response_p50: response.value_at_quantile(0.5),
        response_p99: response.value_at_quantile(0.99),
        response_max: response.max(),
    }
}

impl Measured<'_> {
    fn results(&self) -> FlowResults {
        let Measured { data, measured_bytes, totals, sustain, times, .. } = *self;
        let plan = &self.job.plan;
        let (flow, named) = (&plan.flows[self.index], &self.job.flows[self.index]);
        FlowResults {
            target: named.target.clone(),
            load: LoadShape {
                arrivals: flow.arrivals.clone(),
                connections: flow.connections,
                cpus: plan.cpus.clone(),
                timeout_ns: flow.timeout.as_nanos() as u64,
                requests: flow.limit,
                lifetime: flow.lifetime,
                close: flow.close,
                pipeline: flow.pipeline,
                assignment: flow.assignment,
                overflow: flow.overflow,
                status_expected: flow.requests.expects_status(),
            },
            rates: Rates {
                intended: intended(plan, flow, sustain),
                offered: per_second(data.offered as f64, sustain),
                completed: per_second(data.completed as f64, sustain),
                received_bytes: per_second(measured_bytes as f64, sustain),
            },
            counts: Counts {
                due: data.due,
                offered: data.offered,
                dropped: data.dropped,
                queued: data.queued,
                completed: data.completed,
                completed_whole: data.completed_whole,
                received_bytes: data.received_bytes,
                content_bytes: data.content_bytes,
                connected: totals.connected,
                connects: totals.connects,
                reconnects: totals.connects.saturating_sub(totals.connections),
                lost: data.lost,
                open_at_end: totals.open_at_end,
            },
            statuses: statuses(data),
            errors: data.errors.counts(),
            censored: data.censored,
            response_time: times(&data.histograms.response),
            service_time: times(&data.histograms.service),
            first_byte: times(&data.histograms.first_byte),
            dispatch_lag: times(&data.histograms.dispatch_lag),
            connect_time: times(&totals.connect_time),
            tls_time: times(&totals.tls_time),
            tls: flow.tls.is_some().then(|| TlsReport::from(&totals.tls)),
        }
    }
}

/// Returns the requests per second that a flow's schedule demands in `sustain` seconds; `None` in a closed loop.
fn intended(plan: &Plan, flow: &Flow, sustain: f64) -> Option<f64> {
    match flow.arrivals {
        Arrivals::Closed | Arrivals::Held => None,
        Arrivals::Constant { rate } => Some(rate),
        Arrivals::Varied { .. } | Arrivals::Trace { .. } => {
            let from = plan.ramp_up.as_nanos() as u64;
            let to = from + (sustain * 1e9) as u64;
            flow.expected(plan.ramp_up, from, to).map(|arrivals| per_second(arrivals, sustain))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use weir_load::{Io, RequestSet};

    use super::*;

    /// Feeds as many slices as a day has: each is counted, and the stored data stays bounded.
    #[test]
    fn a_load_of_a_day_keeps_no_more_than_a_point_each_minute() {
        const DAY: u64 = 24 * 3600;
        let requests = RequestSet::plain(b"GET / HTTP/1.1\r\n\r\n".to_vec(), false);
        let flow = Flow::new(([127, 0, 0, 1], 1).into(), requests, 1, Arrivals::Closed);
        let slices = Plan::seconds(Duration::ZERO, Duration::from_secs(DAY));
        let plan = Plan::single(flow, slices, Io::Auto);
        let mut collected = Collected::new(&plan, Some(600), true);
        let mut data = [SliceData::new()];
        (data[0].completed, data[0].completed_whole) = (7, 7);
        let (mut intervals, mut in_intervals, mut counted) = (0, 0, 0);
        for slice in 0..plan.slices.len() {
            collected.take(slice, &data);
            while let Some((_, figures)) = collected.interval() {
                intervals += 1;
                in_intervals += figures.completed;
            }
            if slice % 600 == 599 {
                let (seconds, flows) = collected.fresh().unwrap();
                assert_eq!(seconds, 600.0);
                counted += flows[0].completed;
                assert!(collected.fresh().is_none());
            }
        }
        collected.end(DAY * 1_000_000_000);
        let points = collected.seconds;
        assert_eq!(points.len(), SECONDS + (DAY as usize - SECONDS) / MINUTE);
        assert_eq!((points[3599].seconds, points[3600].seconds), (1.0, 60.0));
        let completed: u64 = points.iter().map(|point| point.completed).sum();
        assert_eq!(completed, 7 * DAY);
        assert_eq!((intervals, in_intervals), (DAY / 600, 7 * DAY));
        assert_eq!(counted, 7 * DAY);
    }
}
