//! Results as CSV (RFC 4180): one header line, then one row per measured item. As in samples, a column name ends in its
//! unit unless it counts things, and an empty cell means no value.

use std::borrow::Cow;

use weir_analysis::findings::{
    ArmFindings, Capacity, CapacityFindings, Comparison, Findings, LoadFindings, NEVER_NS, Verdict,
};
use weir_model::foreign::as_cell;
use weir_model::load_report::{FlowResults, LoadReport, TimeReport};
use weir_model::record::{Phase, Record, SliceRecord, TrialRecord, Validity};
use weir_model::study::Metric;

use crate::secrets::masked;
use crate::words::validity as validity_word;

/// Columns of [`load`].
const LOAD: &str = "started_at,outcome,validity,flow,url,connections,sustain_s,rate_intended_per_s,rate_offered_per_s,\
rate_completed_per_s,received_bytes_per_s,offered,completed,dropped,queued,unanswered,errors,response_time_mean_ns,\
response_time_p50_ns,response_time_p90_ns,response_time_p99_ns,response_time_p999_ns,response_time_max_ns,\
service_time_p50_ns,service_time_p99_ns,dispatch_lag_p50_ns,dispatch_lag_p99_ns";
/// Columns of [`findings`] for comparisons.
const ARMS: &str = "load,load_intended_per_s,load_validity,blocks_used,arm,metric,value,against,ratio,ratio_low,ratio_high,\
confidence,p,p_corrected,minimum_detectable,verdict";
/// Columns of [`findings`] for a search for capacities.
const CAPACITIES: &str = "load,arm,validity,claimed,capacity_low_per_s,capacity_high_per_s,confidence,objective,\
verified_per_s,held_s,saturated_per_s,connections";
/// Columns of [`trials`].
const TRIALS: &str = "session,phase,load,arm,block,validity,rate_intended_per_s,measured_s,due,offered,sent,queued,dropped,\
completed,rate_completed_per_s,errors,status_1xx,status_2xx,status_3xx,status_4xx,status_5xx,unanswered,\
response_time_count,response_time_mean_ns,response_time_p50_ns,response_time_p90_ns,response_time_p99_ns,\
response_time_p999_ns,response_time_max_ns,service_time_p50_ns,service_time_p99_ns,dispatch_lag_p99_ns,proxy_cpu_ns";

#[derive(Default)]
struct Row(Vec<String>);

impl Row {
    fn text(mut self, text: impl ToString) -> Row {
        self.0.push(as_cell(&text.to_string()).into_owned());
        self
    }

    /// Appends a figure with twelve significant digits; more would only show rounding errors. A figure that is unknown
    /// or infinite leaves the cell empty.
    fn number(self, figure: impl Into<Option<f64>>) -> Row {
        let finite = figure.into().filter(|figure| figure.is_finite());
        let rounded = finite.and_then(|figure| format!("{figure:.11e}").parse::<f64>().ok());
        let Row(mut cells) = self;
        cells.push(rounded.map_or_else(String::new, |figure| figure.to_string()));
        Row(cells)
    }

    /// Appends quantiles of a distribution, from those that the document states. Cells are empty if there are no
    /// values.
    fn quantiles(self, of: &TimeReport, wanted: &[f64]) -> Row {
        wanted.iter().fold(self, |row, wanted| {
            let entry = of
                .quantiles
                .iter()
                .filter(|_| of.count > 0)
                .clone()
                .find(|(quantile, _)| quantile == wanted);
            row.text(entry.map_or_else(String::new, |(_, ns)| ns.to_string()))
        })
    }
}

/// A table before it is formatted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvTable {
    /// Names of the columns.
    pub columns: Vec<&'static str>,
    /// Cells of each row; an empty cell has no value.
    pub rows: Vec<Vec<String>>,
}

impl CsvTable {
    fn new(columns: &'static str, rows: impl IntoIterator<Item = Row>) -> CsvTable {
        let columns: Vec<&str> = columns.split(',').collect();
        let rows: Vec<Vec<String>> = rows.into_iter().map(|Row(cells)| cells).collect();
        debug_assert!(rows.iter().all(|cells| cells.len() == columns.len()));
        CsvTable { columns, rows }
    }

    /// Formats the table. Secrets are masked; cells with a comma, a quote or a line end are quoted.
    pub fn text(&self) -> String {
        let mut text = format!("{}\n", self.columns.join(","));
        for cells in &self.rows {
            let quoted: Vec<String> = cells.iter().map(|cell| quote(masked(cell))).collect();
            text += &quoted.join(",");
            text.push('\n');
        }
        text
    }
}

fn quote(cell: Cow<'_, str>) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.into_owned()
    }
}

/// Formats a load: one row for all flows together (`flow` is empty), then one per flow if there are several.
pub fn load(report: &LoadReport) -> String {
    let flows = report.flows.iter().map(|flow| (flow.name.as_str(), &flow.results));
    let parts = std::iter::once(("", &report.results)).chain(flows);
    CsvTable::new(LOAD, parts.map(|(name, results)| load_row(report, name, results))).text()
}

fn count_errors(errors: &[weir_model::load::ErrorCount]) -> u64 {
    errors.iter().map(|error| error.count).sum()
}

fn load_row(report: &LoadReport, flow: &str, results: &FlowResults) -> Row {
    let validity = report.validity.iter().map(|reason| reason.validity).max();
    let row = Row::default()
        .text(&report.started_at)
        .text(&report.outcome)
        .text(validity_word(validity.unwrap_or(Validity::Valid)))
        .text(flow)
        .text(&results.target.url)
        .text(results.load.connections)
        .number(report.phases.sustain)
        .number(results.rates.intended)
        .number(results.rates.offered)
        .number(results.rates.completed)
        .number(results.rates.received_bytes)
        .text(results.counts.offered)
        .text(results.counts.completed)
        .text(results.counts.dropped)
        .text(results.counts.queued)
        .text(results.censored.in_flight)
        .text(count_errors(&results.errors));
    let response = &results.response_time;
    row.number(Some(response.mean).filter(|_| response.count > 0))
        .quantiles(response, &[0.5, 0.9, 0.99, 0.999, 1.0])
        .quantiles(&results.service_time, &[0.5, 0.99])
        .quantiles(&results.dispatch_lag, &[0.5, 0.99])
}

/// Formats a run: one row for each load, arm, metric and arm that it is compared with. For a search for capacities, one
/// row per arm.
pub fn findings(findings: &Findings) -> CsvTable {
    if let Some(found) = &findings.capacity {
        return CsvTable::new(CAPACITIES, found.arms.iter().map(|arm| capacity_row(found, arm)));
    }
    let rows = findings.loads.iter().flat_map(|load| {
        load.arms.iter().flat_map(move |arm| {
            load.metrics.iter().flat_map(move |metric| rows(load, arm, *metric))
        })
    });
    CsvTable::new(ARMS, rows)
}

/// Returns one row for each comparison of an arm's figure, or a single row if there is no comparison.
fn rows(load: &LoadFindings, arm: &ArmFindings, metric: Metric) -> Vec<Row> {
    let all = if load.pairs.is_empty() { &load.comparisons } else { &load.pairs };
    let compared: Vec<Row> = all
        .iter()
        .filter(|comparison| comparison.arm == arm.arm && comparison.metric == metric)
        .map(|comparison| comparison_row(load, arm, metric, Some(comparison)))
        .collect();
    if compared.is_empty() { vec![comparison_row(load, arm, metric, None)] } else { compared }
}

fn comparison_row(
    load: &LoadFindings,
    arm: &ArmFindings,
    metric: Metric,
    comparison: Option<&Comparison>,
) -> Row {
    // Of what was not compared nothing is sure or likely, and of what was not measured nothing is zero.
    let valid = comparison.filter(|comparison| comparison.verdict != Verdict::Invalid);
    let (name, value) = figure(arm, metric);
    Row::default()
        .text(&load.load)
        .number(load.rate_intended)
        .text(validity_word(load.validity))
        .text(load.blocks_used)
        .text(&arm.arm)
        .text(name)
        .number(value.filter(|_| load.blocks_used > 0))
        .text(comparison.map_or("", |comparison| &comparison.against))
        .number(valid.map(|comparison| comparison.ratio))
        .number(valid.map(|comparison| comparison.interval.0))
        .number(valid.map(|comparison| comparison.interval.1))
        .number(valid.map(|comparison| comparison.confidence))
        .number(valid.map(|comparison| comparison.p))
        .number(valid.map(|comparison| comparison.p_holm))
        .number(valid.map(|comparison| comparison.minimum_detectable))
        .text(comparison.map_or("", |comparison| comparison.verdict.word()))
}

/// Returns a metric's name with its unit, and the arm's figure.
fn figure(arm: &ArmFindings, metric: Metric) -> (&'static str, Option<f64>) {
    match metric {
        Metric::Rate => ("rate_completed_per_s", Some(arm.rate_completed)),
        Metric::ReceivedBytes => ("received_bytes_per_s", arm.received_per_second),
        Metric::CpuPerRequest => ("cpu_per_request_ns", arm.cpu_per_request_ns),
        Metric::ResponseP50 => ("response_time_p50_ns", answered_time(arm.response_ns[0])),
        Metric::ResponseP99 => ("response_time_p99_ns", answered_time(arm.response_ns[2])),
    }
}

fn answered_time(ns: u64) -> Option<f64> {
    (ns != NEVER_NS).then_some(ns as f64)
}

fn capacity_row(found: &CapacityFindings, arm: &Capacity) -> Row {
    let limits: Vec<String> = arm.answer.limits.iter().map(ToString::to_string).collect();
    Row::default()
        .text(&arm.answer.load)
        .text(&arm.answer.arm)
        .text(validity_word(found.validity))
        .text(arm.claimed)
        .number(arm.answer.low)
        .number(arm.answer.high)
        .number(arm.answer.confidence)
        .text(limits.join(", "))
        .number(arm.answer.verified)
        .number(arm.answer.held_s)
        .number(arm.answer.saturated)
        .text(arm.answer.connections)
}

/// Formats the trials of a run: one row for each arm in each block, in order of time.
pub fn trials(records: &[Record]) -> CsvTable {
    let trials = records.iter().filter_map(|record| match record {
        Record::Trial(trial) => Some(trial_row(trial)),
        _ => None,
    });
    CsvTable::new(TRIALS, trials)
}

fn trial_row(trial: &TrialRecord) -> Row {
    let measured_s = sum(trial, |slice| slice.measured_ns) as f64 / 1e9;
    let completed = sum(trial, |slice| slice.completed);
    let validity = trial.validity.iter().map(|reason| reason.validity).max();
    let [_, classes @ ..] = trial.status_classes;
    let row = Row::default()
        .text(trial.session)
        .text(phase_word(trial.phase))
        .text(&trial.load)
        .text(&trial.arm)
        .text(trial.block)
        .text(validity_word(validity.unwrap_or(Validity::Valid)))
        .number(trial.rate_intended)
        .number(measured_s)
        .text(sum(trial, |slice| slice.due))
        .text(sum(trial, |slice| slice.offered))
        .text(sum(trial, |slice| slice.sent))
        .text(sum(trial, |slice| slice.queued))
        .text(sum(trial, |slice| slice.dropped))
        .text(completed)
        .number(completed as f64 / measured_s)
        .text(count_errors(&trial.errors));
    let response = &trial.response_time;
    let counted = classes
        .iter()
        .fold(row, Row::text)
        .text(trial.censored.in_flight)
        .text(response.count)
        .number(Some(response.mean).filter(|_| response.count > 0));
    let quantiles = [
        (response, response.p50),
        (response, response.p90),
        (response, response.p99),
        (response, response.p999),
        (response, response.max),
        (&trial.service_time, trial.service_time.p50),
        (&trial.service_time, trial.service_time.p99),
        (&trial.dispatch_lag, trial.dispatch_lag.p99),
    ];
    quantiles
        .iter()
        .fold(counted, |row, (summary, ns)| {
            row.text(if summary.count > 0 { ns.to_string() } else { String::new() })
        })
        .text(sum(trial, |slice| slice.proxy_cpu_ns))
}

fn sum(trial: &TrialRecord, value: fn(&SliceRecord) -> u64) -> u64 {
    trial.slices.iter().map(value).sum()
}

fn phase_word(phase: Phase) -> &'static str {
    match phase {
        Phase::Pilot => "pilot",
        Phase::WarmUp => "warm_up",
        Phase::Screening => "screening",
        Phase::Measurement => "measurement",
        Phase::Confirmation => "confirmation",
        Phase::Alone => "alone",
        Phase::Observation => "observation",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::sample;

    #[test]
    fn a_load_has_a_row_with_the_document_s_figures_under_the_names() {
        for report in sample::all() {
            let text = load(&report);
            let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
            let (names, cells) = (lines.next().unwrap(), lines.next().unwrap());
            assert_eq!(names.len(), cells.len(), "{text}");
            let cell = |name: &str| cells[names.iter().position(|one| *one == name).unwrap()];
            assert_eq!(cell("completed"), report.results.counts.completed.to_string());
            assert_eq!(cell("url"), report.results.target.url);
            let p99 = report
                .results
                .response_time
                .quantiles
                .iter()
                .find(|(q, _)| *q == 0.99)
                .filter(|_| report.results.response_time.count > 0)
                .map_or_else(String::new, |(_, ns)| ns.to_string());
            assert_eq!(cell("response_time_p99_ns"), p99);
            assert_eq!(lines.count(), report.flows.len());
        }
    }

    #[test]
    fn figures_have_no_digits_of_rounding() {
        for (figure, text) in [
            (268_063_479.999_999_97, "268063480"),
            (0.1 + 0.2, "0.3"),
            (2_690.6, "2690.6"),
            (1.25e-9, "0.00000000125"),
            (0.0, "0"),
            (-0.5, "-0.5"),
            (f64::NAN, ""),
            (f64::INFINITY, ""),
        ] {
            assert_eq!(Row::default().number(figure).0, [text]);
        }
    }

    #[test]
    fn what_would_break_a_row_is_quoted() {
        let row = Row::default().text("a,\"b\"\nc").number(f64::NAN).number(0.5);
        assert_eq!(CsvTable::new("x,y_ns,z", [row]).text(), "x,y_ns,z\n\"a,\"\"b\"\"\nc\",,0.5\n");
    }
}
