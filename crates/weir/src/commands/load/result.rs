//! From the engine's slices to the document that every format is made from.

use jiff::Timestamp;
use weir_load::plan::Plan;
use weir_load::{Outcome, SliceData};
use weir_model::load::Arrivals;
use weir_model::load_report::{
    Counts, FORMAT, LoadReport, LoadShape, PhaseSeconds, Rates, Second, StatusCount,
};
use weir_report::load::time_report;

use super::job::Job;
use crate::args;

/// What has been gathered of a trial.
pub(crate) struct Collected {
    all: SliceData,
    /// Begin and end of each slice's measured part in seconds.
    bounds: Vec<(f64, f64)>,
    seconds: Vec<Second>,
}

impl Collected {
    pub(crate) fn new(plan: &Plan) -> Collected {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let bounds = plan.slices.iter();
        Collected {
            all: SliceData::new(),
            bounds: bounds
                .map(|s| (seconds(s.measure_from), seconds(s.end)))
                .collect(),
            seconds: Vec::new(),
        }
    }

    /// Takes one slice, merged over the threads.
    pub(crate) fn take(&mut self, slice: usize, data: &SliceData) {
        self.all.add(data);
        let (at, end) = self.bounds[slice];
        if end <= at {
            return;
        }
        let response = &data.histograms.response;
        self.seconds.push(Second {
            at,
            seconds: end - at,
            offered: data.offered,
            completed: data.completed,
            errors: data.errors.total(),
            response_p50: response.value_at_quantile(0.5),
            response_p99: response.value_at_quantile(0.99),
            response_max: response.max(),
        });
    }

    /// The result.
    pub(crate) fn report(
        mut self,
        job: &Job,
        outcome: &Outcome,
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
        self.all.errors.add(&outcome.errors);
        let all = &self.all;
        let intended = match plan.arrivals {
            Arrivals::Constant { rate } => Some(rate),
            _ => None,
        };
        let mut report = LoadReport {
            format: FORMAT.to_owned(),
            weir_version: args::version().to_owned(),
            started_at: started_at.to_string(),
            target: job.target.clone(),
            load: LoadShape {
                arrivals: plan.arrivals.clone(),
                connections: job.connections,
                cpus: plan.cpus.clone(),
                timeout_ns: plan.timeout.as_nanos() as u64,
                requests: plan.requests,
            },
            phases: PhaseSeconds { ramp_up, sustain },
            rates: Rates {
                intended,
                offered: all.offered as f64 / sustain,
                completed: all.completed as f64 / sustain,
                received_bytes: all.received_bytes as f64 / sustain,
            },
            counts: Counts {
                due: all.due,
                offered: all.offered,
                completed: all.completed,
                completed_whole: all.completed_whole,
                received_bytes: all.received_bytes,
                content_bytes: all.content_bytes,
                connected: outcome.connected as u64,
                connects: outcome.connects,
                reconnects: outcome.connects.saturating_sub(u64::from(job.connections)),
            },
            statuses: statuses(all),
            errors: all.errors.counts(),
            censored: all.censored,
            response_time: time_report(&all.histograms.response),
            service_time: time_report(&all.histograms.service),
            first_byte: time_report(&all.histograms.first_byte),
            dispatch_lag: time_report(&all.histograms.dispatch_lag),
            connect_time: time_report(&outcome.connect_time),
            generator_cpu_ns: outcome.cpu_ns.clone(),
            over_time: self.seconds,
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
}

fn statuses(all: &SliceData) -> Vec<StatusCount> {
    let codes = (100..).zip(all.statuses.iter());
    codes
        .filter(|&(_, &count)| count > 0)
        .map(|(status, &count)| StatusCount { status, count })
        .collect()
}
