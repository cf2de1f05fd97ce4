//! What an arm came to: its rates, its costs, and what it did wrong, which is an outcome and no reason to leave a
//! trial out.

use weir_model::load::ErrorKind;
use weir_model::record::{SliceRecord, TrialRecord};
use weir_model::study::{LoadSpec, ProxyRole, Study};

/// Requests without a right answer that are worth a comparison of rates, as a share: what published
/// capacity goals still allow.
pub(crate) const UNANSWERED: f64 = 0.001;
/// What a trial came to beside its times.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Answers {
    /// Complete responses.
    pub(crate) complete: u64,
    /// Of these, those that are not what they should be.
    pub(crate) wrong: u64,
    /// Requests that failed without a response, timeouts not among them.
    pub(crate) failed: u64,
    /// Requests that never ended, timeouts among them.
    pub(crate) never: u64,
}

impl Answers {
    /// Of some trials together, whole slices.
    pub(crate) fn of<'a>(
        trials: impl IntoIterator<Item = &'a TrialRecord>,
        study: &Study,
    ) -> Answers {
        let mut all = Answers::default();
        for trial in trials {
            let count = |is_such: fn(&ErrorKind) -> bool| -> u64 {
                let such = trial.errors.iter().filter(|error| is_such(&error.kind));
                such.map(|error| error.count).sum()
            };
            let answered = count(|kind| kind.is_answered());
            all.complete += sum([trial], |slice| slice.completed_whole) as u64;
            all.wrong += unexpected_count(trial, study) + answered;
            all.failed += count(|kind| !kind.is_answered() && *kind != ErrorKind::Timeout);
            all.never += trial.censored.in_flight + trial.censored.queued;
        }
        all.wrong = all.wrong.min(all.complete);
        all
    }

    /// Requests that were not answered as they should be.
    pub(crate) fn bad(&self) -> u64 {
        self.wrong + self.failed + self.never
    }

    /// These as a share of all.
    pub(crate) fn bad_share(&self) -> f64 {
        let all = self.complete + self.failed + self.never;
        self.bad() as f64 / all.max(1) as f64
    }

    /// Share of the complete responses that are what they should be; 1 without any.
    pub(crate) fn good_share(&self) -> f64 {
        1.0 - self.wrong as f64 / self.complete.max(1) as f64
    }
}

/// Responses whose status nobody asked for: outside 1xx to 3xx and not of the class that the study has the
/// origin answer with.
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
    let classes = trial.status_classes.iter().enumerate();
    let unexpected = classes.filter(|(class, _)| !(1..=3).contains(class) && *class != expected);
    unexpected.map(|(_, count)| count).sum()
}

/// Sum of a field over all slices of some trials.
pub(crate) fn sum<'a>(
    trials: impl IntoIterator<Item = &'a TrialRecord>,
    field: fn(&SliceRecord) -> u64,
) -> f64 {
    let slices = trials.into_iter().flat_map(|trial| &trial.slices);
    slices.map(field).sum::<u64>() as f64
}

/// Right answers per second of measured time, in a closed loop counted by shares of their service times; not a
/// number without time. What a response is worth is known
/// of whole slices alone, and taken to be the same in their measured parts.
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

/// Bytes received per second of measured time: the rate, each response at the mean size of
/// all. Bytes are counted over whole slices, in which large responses that began in one arm's slice
/// still arrive after its end; by themselves they would be too many for its time.
pub(crate) fn received_per_second<'a>(
    trials: impl IntoIterator<Item = &'a TrialRecord> + Clone,
    study: &Study,
) -> f64 {
    let bytes = sum(trials.clone(), |slice| slice.received_bytes);
    rate(trials.clone(), study) * bytes / sum(trials, |slice| slice.completed_whole)
}

/// CPU time of the proxy per right answer in nanoseconds; infinite without any.
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
    use crate::tests::fixture::{header, slice, three_arms, trial};

    /// Of 2,000 requests that ended, each is counted once, whatever was wrong with it.
    #[test]
    fn a_request_that_failed_is_one_request() {
        use ErrorKind::{Connect, Timeout, Unexpected, Unsolicited};
        // The errors, requests that never ended, and what comes of them.
        type Row<'a> = (&'a [(ErrorKind, u64)], u64, [u64; 4]);
        let rows: [Row<'_>; 6] = [
            (&[], 0, [2000, 0, 0, 0]),
            (&[(Unexpected, 2000)], 0, [2000, 2000, 0, 0]),
            (&[(Unsolicited, 2000)], 0, [2000, 2000, 0, 0]),
            (
                &[(Unexpected, 2000), (Unsolicited, 2000)],
                0,
                [2000, 2000, 0, 0],
            ),
            (&[(Connect, 5)], 0, [2000, 0, 5, 0]),
            (&[(Timeout, 5)], 5, [2000, 0, 0, 5]),
        ];
        let study = header(three_arms()).study;
        for (errors, in_flight, expected) in rows {
            let slices = vec![slice(0, 10_000.0), slice(1, 10_000.0)];
            let mut trial = trial("closed", "stock", 0, slices);
            let each = errors.iter().map(|(kind, count)| ErrorCount {
                kind: *kind,
                words: String::new(),
                errno: None,
                count: *count,
            });
            trial.errors = each.collect();
            trial.censored = Censored {
                in_flight,
                ..Censored::default()
            };
            let Answers {
                complete,
                wrong,
                failed,
                never,
            } = Answers::of([&trial], &study);
            assert_eq!([complete, wrong, failed, never], expected, "{errors:?}");
        }
    }
}
