//! From the engine's slices to the document that every format is made from.

use jiff::Timestamp;
use weir_load::engine::FlowTotals;
use weir_load::plan::Plan;
use weir_load::{Flow, Outcome, SliceData};
use weir_model::load::Arrivals;
use weir_model::load_report::{
    Counts, FORMAT, FlowReport, GeneratorReport, LoadReport, LoadShape, PhaseSeconds, Rates,
    Second, StatusCount, TlsReport,
};
use weir_report::load::time_report;

use super::job::Job;
use crate::args;
use crate::commands::fail_if::load::{Conditions, Windows};

/// What has been gathered of a trial.
pub(crate) struct Collected {
    /// By flow.
    flows: Vec<SliceData>,
    /// Begin and end of each slice's measured part in seconds.
    bounds: Vec<(f64, f64)>,
    seconds: Vec<Second>,
    /// All flows of a slice together.
    together: SliceData,
    /// By flow: whether it says itself which statuses are right.
    status_expected: Vec<bool>,
}

/// What is gathered while a trial goes on.
pub(crate) struct Gathering {
    collected: Collected,
    windows: Windows,
}

impl Gathering {
    /// Of a trial with this plan, whose windows are held against these conditions.
    pub(crate) fn new(plan: &Plan, conditions: Conditions) -> Gathering {
        Gathering {
            collected: Collected::new(plan),
            windows: Windows::new(conditions, plan.ramp_up),
        }
    }

    /// Takes one slice, merged over the threads, by flow.
    pub(crate) fn take(&mut self, slice: usize, data: &[SliceData]) {
        if let Some((measured, all, wrong)) = self.collected.take(slice, data) {
            self.windows.take(measured, all, wrong);
        }
    }

    /// All of it.
    pub(crate) fn end(self) -> (Collected, Conditions) {
        (self.collected, self.windows.end())
    }
}

impl Collected {
    fn new(plan: &Plan) -> Collected {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let bounds = plan.slices.iter();
        Collected {
            flows: plan.flows.iter().map(|_| SliceData::new()).collect(),
            bounds: bounds
                .map(|s| (seconds(s.measure_from), seconds(s.end)))
                .collect(),
            seconds: Vec::new(),
            together: SliceData::new(),
            status_expected: plan
                .flows
                .iter()
                .map(|flow| flow.requests.expects_status())
                .collect(),
        }
    }

    /// Takes one slice. Gives its measured time in seconds, all flows together, and the responses whose status nobody
    /// asked for; `None` where nothing of it is measured.
    fn take<'t>(
        &'t mut self,
        slice: usize,
        data: &'t [SliceData],
    ) -> Option<((f64, f64), &'t SliceData, u64)> {
        for (flow, data) in self.flows.iter_mut().zip(data) {
            flow.add(data);
        }
        let (at, end) = self.bounds[slice];
        if end <= at {
            return None;
        }
        let all = match data {
            [only] => only,
            several => {
                self.together.clear();
                several.iter().for_each(|data| self.together.add(data));
                &self.together
            }
        };
        let response = &all.histograms.response;
        self.seconds.push(Second {
            at,
            seconds: end - at,
            offered: all.offered,
            completed: all.completed,
            errors: all.errors.total(),
            response_p50: response.value_at_quantile(0.5),
            response_p99: response.value_at_quantile(0.99),
            response_max: response.max(),
        });
        let asked = self.status_expected.iter().zip(data);
        // Of statuses from 400 on.
        let wrong = asked
            .filter(|(expected, _)| !**expected)
            .flat_map(|(_, data)| &data.statuses[300..]);
        Some(((at, end), all, wrong.sum()))
    }

    /// The result.
    pub(crate) fn report(
        mut self,
        job: &Job,
        outcome: &Outcome,
        generator: GeneratorReport,
        started_at: Timestamp,
        interrupted: bool,
    ) -> LoadReport {
        let plan = &job.plan;
        let ended_at = outcome.ended_at as f64 / 1e9;
        let ramp_up = plan.ramp_up.as_secs_f64().min(ended_at);
        let sustain = (ended_at - ramp_up).max(1e-9);
        self.seconds.sort_by(|a, b| a.at.total_cmp(&b.at));
        if let Some(last) = self.seconds.last_mut() {
            last.seconds = last.seconds.min(ended_at - last.at);
        }
        let flows = self.flows.iter().zip(&outcome.flows).enumerate();
        let flows = flows.map(|(index, (data, totals))| Measured {
            job,
            index,
            data,
            totals,
            sustain,
        });
        let flows: Vec<FlowReport> = flows.map(|flow| flow.report()).collect();
        let together = self.together(outcome, job, sustain);
        let mut report = LoadReport {
            format: FORMAT.to_owned(),
            weir_version: args::version().to_owned(),
            started_at: started_at.to_string(),
            target: together.target,
            load: together.load,
            phases: PhaseSeconds { ramp_up, sustain },
            rates: together.rates,
            counts: together.counts,
            statuses: together.statuses,
            errors: together.errors,
            censored: together.censored,
            response_time: together.response_time,
            service_time: together.service_time,
            first_byte: together.first_byte,
            dispatch_lag: together.dispatch_lag,
            connect_time: together.connect_time,
            tls_time: together.tls_time,
            tls: together.tls,
            generator_cpu_ns: outcome.cpu_ns.clone(),
            generator,
            over_time: self.seconds,
            flows: if flows.len() > 1 { flows } else { Vec::new() },
            validity: Vec::new(),
            outcome: if interrupted {
                "interrupted"
            } else {
                "complete"
            }
            .to_owned(),
        };
        report.validity = weir_analysis::load_validity(&report);
        report
    }

    /// All flows as if they were one, asked as the first one is.
    fn together(&self, outcome: &Outcome, job: &Job, sustain: f64) -> FlowReport {
        let plan = &job.plan;
        let mut all = SliceData::new();
        self.flows.iter().for_each(|data| all.add(data));
        all.errors.add(&outcome.errors);
        let mut totals = outcome.flows[0].clone();
        outcome.flows[1..].iter().for_each(|flow| totals.add(flow));
        let of_all = Measured {
            job,
            index: 0,
            data: &all,
            totals: &totals,
            sustain,
        };
        let mut report = of_all.report();
        report.load.connections = totals.connections as u32;
        report.rates.intended = plan
            .flows
            .iter()
            .filter(|flow| !flow.is_held())
            .map(|flow| intended(plan, flow, sustain))
            .sum();
        report
    }
}

/// What was measured of a flow.
struct Measured<'a> {
    job: &'a Job,
    /// The flow's place among those of the plan.
    index: usize,
    data: &'a SliceData,
    totals: &'a FlowTotals,
    /// Seconds.
    sustain: f64,
}

impl Measured<'_> {
    fn report(&self) -> FlowReport {
        let Measured {
            data,
            totals,
            sustain,
            ..
        } = *self;
        let plan = &self.job.plan;
        let (flow, named) = (&plan.flows[self.index], &self.job.flows[self.index]);
        FlowReport {
            name: named.name.clone(),
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
                offered: data.offered as f64 / sustain,
                completed: data.completed as f64 / sustain,
                received_bytes: data.received_bytes as f64 / sustain,
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
            response_time: time_report(&data.histograms.response),
            service_time: time_report(&data.histograms.service),
            first_byte: time_report(&data.histograms.first_byte),
            dispatch_lag: time_report(&data.histograms.dispatch_lag),
            connect_time: time_report(&totals.connect_time),
            tls_time: time_report(&totals.tls_time),
            tls: flow.tls.is_some().then(|| TlsReport::from(&totals.tls)),
        }
    }
}

/// Requests per second that a flow's schedule wants in `sustain`; `None` in a closed loop.
fn intended(plan: &Plan, flow: &Flow, sustain: f64) -> Option<f64> {
    match flow.arrivals {
        Arrivals::Closed | Arrivals::Held => None,
        Arrivals::Constant { rate } => Some(rate),
        Arrivals::Varied { .. } | Arrivals::Trace { .. } => {
            let from = plan.ramp_up.as_nanos() as u64;
            let to = from + (sustain * 1e9) as u64;
            flow.expected(plan.ramp_up, from, to)
                .map(|arrivals| arrivals / sustain)
        }
    }
}

fn statuses(all: &SliceData) -> Vec<StatusCount> {
    let codes = (100..).zip(all.statuses.iter());
    codes
        .filter(|&(_, &count)| count > 0)
        .map(|(status, &count)| StatusCount { status, count })
        .collect()
}
