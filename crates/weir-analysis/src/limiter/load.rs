//! Limiter of a server under `weir load`, from samples of its host.

use std::collections::BTreeMap;

use weir_limits::{
    Evidence, Figure, Quantities, Role, Rules, Trial, Window, judge, over_time, workers,
};
use weir_model::load::{Arrivals, Ended, ErrorKind};
use weir_model::load_report::LoadReport;
use weir_model::sample::Counters;
use weir_model::study::{ProxyKind, Settings};
use weir_parameters::Catalog;
use weir_record::Samples;

use super::trial::{by_kind, flag, opened_again, opened_per_request};
use super::{by_host, crosses_link, kind_by_name, leave_out_cpu, place_turns, stretches};
use crate::findings::{LimiterFindings, Stretch};

/// Finds the limiter of the server in the measured time of a load, which ended at `until_ns` on the clock of the
/// samples. `response_times` are (nanoseconds, count), ascending. `pods` describes the server's pods, if those were
/// sampled.
pub fn find_load_limiter(
    report: &LoadReport,
    response_times: Vec<(u64, u64)>,
    (samples, pods): (&Samples, Option<String>),
    until_ns: u64,
) -> LimiterFindings {
    let from_ns = until_ns.saturating_sub((report.phases.sustain * 1e9) as u64);
    let hosts = by_host(samples, (from_ns, until_ns), &|role| match role {
        Role::Generator => report.results.load.cpus.iter().map(|cpu| cpu.map(u64::from)).collect(),
        Role::Proxy => Some(samples.cpus.clone()).filter(|cpus| !cpus.is_empty()),
        Role::Origin => None,
    });
    let mut trial = build_trial(report, response_times);
    trial.settings = samples.settings.clone();
    trial.figures.extend(crosses_link(&hosts));
    let kind = kind_by_name(samples, "");
    trial.figures.extend(own_workers(kind, &samples.settings));
    let window = Window { hosts: &hosts, from_ns, until_ns, arm: "", trial: &trial };
    let mut evidence = Evidence::of(Quantities::builtin(), Counters::builtin(), &window, None);
    leave_out_cpu(&mut evidence);
    let mut judgement = judge(&evidence, Rules::builtin(), kind);
    place_turns(&mut judgement.findings, pods.is_some());
    LimiterFindings {
        load: String::new(),
        arm: report.results.target.url.clone(),
        pods,
        stretch: Stretch {
            from_s: 0.0,
            until_s: report.phases.sustain,
            rate: report.results.rates.intended,
            saturated: is_saturated(report),
            stage: None,
        },
        low: None,
        judged: (1, 1),
        confirmations: Vec::new(),
        judgement,
        evidence,
        series: over_time(Quantities::builtin(), Counters::builtin(), &window),
        workers: workers(Counters::builtin(), &window),
    }
}

/// Returns the number of workers from the proxy's own configuration; `None` if it was not read or gives no number.
fn own_workers(kind: Option<ProxyKind>, settings: &Settings) -> Option<(Figure, f64)> {
    let read_kind = kind.filter(|_| !settings.is_empty())?;
    let workers = Catalog::builtin().workers(read_kind, settings)?;
    Some((Figure::Workers, workers as f64))
}

/// Returns true for a closed loop, and for an open loop that is not answered as often as it sends.
fn is_saturated(report: &LoadReport) -> bool {
    let intended = report.results.rates.intended;
    intended.is_none_or(|rate| carried(report) < stretches::CARRIED * rate)
}

/// Returns the requests per second that were not turned away.
fn carried(report: &LoadReport) -> f64 {
    let all: u64 = report.results.statuses.iter().map(|status| status.count).sum();
    let part = turned_away(report) as f64 / all.max(1) as f64;
    report.results.rates.completed * (1.0 - part)
}

/// Counts the responses of a failed or overloaded server (RFC 9110 section 15.6, RFC 6585 section 4); 0 if the load
/// declares which statuses are right.
fn turned_away(report: &LoadReport) -> u64 {
    report
        .results
        .statuses
        .iter()
        .filter(|_| !report.results.load.status_expected)
        .filter(|status| status.status >= 500 || status.status == 429)
        .map(|status| status.count)
        .sum()
}

/// Counts the responses that say that the proxy had no valid answer of the origin, or none in time (RFC 9110 sections
/// 15.6.3 and 15.6.5).
fn gateway_errors(report: &LoadReport) -> u64 {
    (report.results.statuses.iter())
        .filter(|status| [502, 504].contains(&status.status))
        .map(|status| status.count)
        .sum()
}

fn build_trial(report: &LoadReport, response_times: Vec<(u64, u64)>) -> Trial {
    let rates = &report.results.rates;
    let opened = opened_per_request(report.results.load.lifetime);
    let is_open = !matches!(report.results.load.arrivals, Arrivals::Closed);
    let lag = report.results.dispatch_lag.quantiles.iter().find(|(quantile, _)| *quantile >= 0.99);
    let full = report.results.tls.as_ref().map(|tls| {
        let full = tls.handshakes.saturating_sub(tls.resumed) as f64;
        full / report.results.counts.completed_whole.max(1) as f64 * rates.completed
    });
    let figures = [
        (Figure::RateIntended, rates.intended),
        (Figure::RateOffered, Some(rates.offered)),
        (Figure::RateCompleted, Some(carried(report))),
        (Figure::Saturated, Some(flag(is_saturated(report)))),
        (Figure::Closed, Some(flag(!is_open))),
        (Figure::ServiceTimeS, Some(report.results.service_time.mean / 1e9)),
        (Figure::DispatchLagS, lag.filter(|_| is_open).map(|(_, ns)| *ns as f64 / 1e9)),
        (Figure::BytesPerS, Some(rates.received_bytes)),
        (Figure::OpenedPerRequest, opened),
        (
            Figure::OpenedAgainPerRequest,
            opened_again(
                Some(report.results.load.lifetime),
                report.results.counts.reconnects as f64,
                report.results.counts.completed_whole as f64,
            ),
        ),
        (Figure::FullHandshakesPerS, full),
    ];
    let mut errors = by_kind(&report.results.errors);
    let away = turned_away(report);
    if away > 0 {
        let unexpected = ErrorKind::Unexpected.name().to_owned();
        *errors.entry(unexpected).or_insert(0) += away;
    }
    errors.insert("gateway".to_owned(), gateway_errors(report));
    let kinds = report.results.errors.iter().map(|error| (error.kind, error.count));
    let ended = Ended::of(report.results.counts.completed_whole, 0, kinds);
    Trial {
        figures: figures.into_iter().filter_map(|(figure, value)| Some((figure, value?))).collect(),
        response_times,
        requests: ended.requests,
        errors: Some(errors),
        settings: BTreeMap::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_workers_is_known_where_a_configuration_says_one() {
        for (kind, id, level, workers) in [
            (ProxyKind::Nginx, "worker_processes", "4", Some(4.0)),
            (ProxyKind::Nginx, "worker_processes", "auto", None),
            (ProxyKind::Caddy, "gomaxprocs", "1", Some(1.0)),
        ] {
            let settings = Settings::from([(id.to_owned(), level.to_owned())]);
            let figure = own_workers(Some(kind), &settings);
            assert_eq!(figure.map(|(_, workers)| workers), workers, "{id} {level}");
        }
        assert_eq!(own_workers(Some(ProxyKind::Nginx), &Settings::new()), None);
    }
}
