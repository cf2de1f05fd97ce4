//! Outcomes of an arm: its rates, its costs, and its errors. Errors are an outcome and no reason to leave a trial out.

use weir_model::load::ErrorKind;
use weir_model::record::{SliceRecord, TrialRecord};
use weir_model::study::{LoadSpec, ProxyRole, Study};

/// Share of requests without a right answer from which on rates are worth a comparison; published capacity goals allow
/// that much.
pub const UNANSWERED: f64 = 0.001;
/// Numbers of answered and failed requests of a trial.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Answers {
    /// Number of complete responses.
    pub(crate) complete: u64,
    /// Number of complete responses that are not as they should be.
    pub(crate) wrong: u64,
    /// Number of requests that failed without a response, without timeouts.
    pub(crate) failed: u64,
    /// Number of requests that never ended, timeouts included.
    pub(crate) never: u64,
}

impl Answers {
    /// Counts the answers of several trials together, over whole slices.
    pub(crate) fn of<'a>(
        trials: impl IntoIterator<Item = &'a TrialRecord>,
        study: &Study,
    ) -> Answers {
        let mut all = Answers::default();
        for trial in trials {
            let answered = count_errors(trial, |kind| kind.is_answered());
            all.complete += sum([trial], |slice| slice.completed_whole) as u64;
            all.wrong += unexpected_count(trial, study) + answered;
            all.failed +=
                count_errors(trial, |kind| !kind.is_answered() && *kind != ErrorKind::Timeout);
            all.never += trial.censored.in_flight + trial.censored.queued;
        }
        all.wrong = all.wrong.min(all.complete);
        all
    }

    /// Returns the number of requests that were not answered as they should be.
    pub(crate) fn bad(&self) -> u64 {
        self.wrong + self.failed + self.never
    }

    /// Returns the share of requests that were not answered as they should be.
    pub(crate) fn bad_share(&self) -> f64 {
        let all = self.complete + self.failed + self.never;
        self.bad() as f64 / all.max(1) as f64
    }

    /// Returns the share of complete responses that are as they should be; 1 if there are none.
    pub(crate) fn good_share(&self) -> f64 {
        1.0 - self.wrong as f64 / self.complete.max(1) as f64
    }
}

fn count_errors(trial: &TrialRecord, is_counted: fn(&ErrorKind) -> bool) -> u64 {
    trial.errors.iter().filter(|error| is_counted(&error.kind)).map(|error| error.count).sum()
}

/// Counts responses with an unexpected status: outside 1xx to 3xx and not of the class that the study has the origin
/// answer with.
fn unexpected_count(trial: &TrialRecord, study: &Study) -> u64 {
    let load = study.loads.iter().find(|load| load.name == trial.load);
    // Where the load says which it expects, others are among the errors.
    if load.is_some_and(LoadSpec::expects_status) {
        return 0;
    }
    let expected = match study.proxy.role {
        ProxyRole::ReverseProxy => usize::from(study.origin.status / 100),
        ProxyRole::StaticFiles { .. } => 2,
    };
    trial
        .status_classes
        .iter()
        .enumerate()
        .filter(|(class, _)| !(1..=3).contains(class) && *class != expected)
        .map(|(_, count)| count)
        .sum()
}

/// Sums a field over all slices of several trials.
pub(crate) fn sum<'a>(
    trials: impl IntoIterator<Item = &'a TrialRecord>,
    field: fn(&SliceRecord) -> u64,
) -> f64 {
    trials.into_iter().flat_map(|trial| &trial.slices).map(field).sum::<u64>() as f64
}

/// Returns the right answers per second of measured time, in a closed loop counted by shares of their service times;
/// NaN without measured time. The share of right answers is known only for whole slices, and taken to be the same in
/// their measured parts.
pub(crate) fn rate<'a>(
    trials: impl IntoIterator<Item = &'a TrialRecord> + Clone,
    study: &Study,
) -> f64 {
    let good = Answers::of(trials.clone(), study).good_share();
    let served_ns = sum(trials.clone(), |slice| slice.served_ns);
    // A slice of an open loop in which nothing was due looks like one of a closed loop.
    if served_ns > 0.0 && sum(trials.clone(), |slice| slice.due) == 0.0 {
        return good * sum(trials, |slice| slice.served_thousandths) * 1e6 / served_ns;
    }
    let completed = sum(trials.clone(), |slice| slice.completed);
    good * completed * 1e9 / sum(trials, |slice| slice.measured_ns)
}

/// Returns the bytes received per second of measured time: the rate multiplied by the mean size of all responses. Bytes
/// are counted over whole slices, in which large responses that began in one arm's slice still arrive after its end, so
/// the count itself would be too large for the measured time.
pub(crate) fn received_per_second<'a>(
    trials: impl IntoIterator<Item = &'a TrialRecord> + Clone,
    study: &Study,
) -> f64 {
    let bytes = sum(trials.clone(), |slice| slice.received_bytes);
    rate(trials.clone(), study) * bytes / sum(trials, |slice| slice.completed_whole)
}

/// Returns the CPU time of the proxy per right answer in nanoseconds; infinite if there are none.
pub(crate) fn cpu_per_request<'a>(
    trials: impl IntoIterator<Item = &'a TrialRecord> + Clone,
    study: &Study,
) -> f64 {
    let good = Answers::of(trials.clone(), study).good_share();
    let cpu = sum(trials.clone(), |slice| slice.proxy_cpu_ns);
    cpu / (good * sum(trials, |slice| slice.completed_whole))
}

#[cfg(test)]
mod tests {
    use weir_model::load::{Censored, ErrorCount};

    use super::*;
    use crate::fixture::{build_header, build_trial, slice, three_arms};

    /// Each of 2,000 requests that ended is counted once, even if several things are wrong with it.
    #[test]
    fn a_request_that_failed_is_one_request() {
        use ErrorKind::{Connect, Timeout, Unexpected, Unsolicited};
        // The errors, requests that never ended, and what comes of them.
        type Row<'a> = (&'a [(ErrorKind, u64)], u64, [u64; 4]);
        let rows: [Row<'_>; 6] = [
            (&[], 0, [2000, 0, 0, 0]),
            (&[(Unexpected, 2000)], 0, [2000, 2000, 0, 0]),
            (&[(Unsolicited, 2000)], 0, [2000, 2000, 0, 0]),
            (&[(Unexpected, 2000), (Unsolicited, 2000)], 0, [2000, 2000, 0, 0]),
            (&[(Connect, 5)], 0, [2000, 0, 5, 0]),
            (&[(Timeout, 5)], 5, [2000, 0, 0, 5]),
        ];
        let study = build_header(three_arms()).study;
        for (errors, in_flight, expected) in rows {
            let slices = vec![slice(0, 10_000.0), slice(1, 10_000.0)];
            let mut trial = build_trial("closed", "stock", 0, slices);
            trial.errors = errors
                .iter()
                .map(|(kind, count)| ErrorCount {
                    kind: *kind,
                    words: String::new(),
                    errno: None,
                    count: *count,
                })
                .collect();
            trial.censored = Censored { in_flight, ..Censored::default() };
            let Answers { complete, wrong, failed, never } = Answers::of([&trial], &study);
            assert_eq!([complete, wrong, failed, never], expected, "{errors:?}");
        }
    }
}
