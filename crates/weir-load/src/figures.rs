//! Figures of a stretch of time, for progress reports.

use hdrhistogram::Histogram;
use weir_model::load_report::StatusCount;
use weir_model::progress::{LoadFigures, Quantiles};

use crate::SliceData;

/// Returns the figures of a stretch of time, for reports during the load.
pub fn figures(data: &SliceData, seconds: f64) -> LoadFigures {
    LoadFigures {
        seconds,
        due: data.due,
        offered: data.offered,
        dropped: data.dropped,
        queued: data.queued,
        completed: data.completed,
        rate: per_second(data.completed as f64, seconds),
        never_ended: data.censored.in_flight + data.censored.queued,
        received_bytes: data.received_bytes,
        statuses: statuses(data),
        errors: data.errors.counts(),
        response_time: quantiles(&data.histograms.response),
        service_time: quantiles(&data.histograms.service),
        dispatch_lag: quantiles(&data.histograms.dispatch_lag),
    }
}

/// Returns a rate; 0 if nothing was measured.
pub fn per_second(count: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { count / seconds } else { 0.0 }
}

/// Returns the status codes that occurred, in ascending order.
pub fn statuses(data: &SliceData) -> Vec<StatusCount> {
    (100..)
        .zip(data.statuses.iter())
        .filter(|&(_, &count)| count > 0)
        .map(|(status, &count)| StatusCount { status, count })
        .collect()
}

fn quantiles(times: &Histogram<u64>) -> Quantiles {
    Quantiles {
        p50: times.value_at_quantile(0.5),
        p90: times.value_at_quantile(0.9),
        p99: times.value_at_quantile(0.99),
        p99_9: times.value_at_quantile(0.999),
        max: times.max(),
    }
}
