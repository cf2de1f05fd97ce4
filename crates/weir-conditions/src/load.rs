//! Conditions on the result of a load: `p99 > 30ms`, `errors > 0.1%`, `rate < 5000/s in 10s`, `invalid`.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use weir_load::SliceData;
use weir_model::load::Ended;
use weir_model::load_report::{LoadReport, LoadShape, StatusCount};
use weir_model::record::{Observation, Validity, ValidityReason};
use weir_report::words;
use weir_sentences::validity::describe;

use crate::{
    Condition, ConditionError, Figure, Held, Judged, Says, Vocabulary, beyond, format_window,
};

const VOCABULARY: Vocabulary = Vocabulary {
    words: &["invalid", "suspect"],
    example: "p99 > 30ms' or 'errors > 0.1%' or 'rate < 5000/s in 10s' or 'invalid",
};

/// Conditions on a load, each with the results of its windows so far.
#[derive(Debug)]
pub struct Conditions(Vec<(Condition, WindowCounts)>);

/// Figures of a whole load, or of a window in it.
pub(super) struct Figures<'a> {
    /// Seconds from the start of the load.
    from: f64,
    to: f64,
    /// Responses that came in this time.
    completed: u64,
    /// Requests that ended, including those that failed.
    requests: u64,
    failed: u64,
    /// Requests that never ended: they took longer than all others.
    unended: u64,
    response: &'a Histogram<u64>,
}

/// Results of one condition in its windows.
#[derive(Debug, Clone, Default)]
struct WindowCounts {
    judged: u32,
    /// Windows in which the condition was true; `first` describes the first of them.
    beyond: u32,
    first: Option<String>,
    /// Windows in which nothing was answered, so that there is no time to judge.
    unknown: u32,
}

impl Conditions {
    /// Reads the conditions.
    ///
    /// # Errors
    /// A condition has a subject that a load lacks, or windows that are longer than the load.
    pub fn read(texts: &[String]) -> Result<Conditions, ConditionError> {
        let read = VOCABULARY.read(texts)?;
        if let Some(change) = read.iter().find(|read| matches!(read.says, Says::Change { .. })) {
            return Err(ConditionError {
                text: change.text.clone(),
                what: "one load has nothing to differ from".to_owned(),
                hint: Some("compare two servers: `weir compare OLD_URL NEW_URL`".to_owned()),
            });
        }
        match read.iter().find_map(|condition| Some((&condition.text, condition.arm.as_ref()?))) {
            Some((text, arm)) => {
                let reason = format!("a load has no arm `{arm}`");
                Err(ConditionError { text: text.clone(), what: reason, hint: None })
            }
            None => Ok(Conditions(
                read.into_iter().map(|condition| (condition, WindowCounts::default())).collect(),
            )),
        }
    }

    /// Returns the window lengths that occur in conditions, sorted and without duplicates.
    fn lengths(&self) -> impl Iterator<Item = Duration> {
        let windows = self.0.iter().filter_map(|(condition, _)| match condition.says {
            Says::Figure { window, .. } => window,
            Says::Word(_) | Says::Change { .. } => None,
        });
        let mut lengths: Vec<Duration> = windows.collect();
        lengths.sort_unstable();
        lengths.dedup();
        lengths.into_iter()
    }

    /// Judges the conditions that have windows of this length by the figures of one window.
    fn tell(&mut self, length: Duration, figures: &Figures<'_>) {
        for (condition, seen) in &mut self.0 {
            let Says::Figure { figure, above, bound, window: Some(window) } = condition.says else {
                continue;
            };
            if window != length {
                continue;
            }
            seen.judged += 1;
            match figures.value(figure).map(|value| beyond(figure, above, bound, value)) {
                None => seen.unknown += 1,
                Some(None) => {}
                Some(Some(words)) => {
                    seen.beyond += 1;
                    let message =
                        format!("{words} from {:.0} to {:.0} s", figures.from, figures.to);
                    seen.first.get_or_insert(message);
                }
            }
        }
    }

    /// Judges all conditions by the load's result and the windows so far.
    pub fn judge(&self, report: &LoadReport) -> Vec<Judged> {
        let response = weir_report::load::histogram(&report.results.response_time)
            .unwrap_or_else(|_| weir_record::empty_histogram());
        let Ended { requests, failed } = requests(report);
        let total = Figures {
            from: report.phases.ramp_up,
            to: report.phases.ramp_up + report.phases.sustain,
            completed: report.results.counts.completed,
            requests,
            failed,
            unended: report.results.censored.in_flight + report.results.censored.queued,
            response: &response,
        };
        self.0
            .iter()
            .map(|(condition, windows)| {
                let held = condition.judge(windows, &total, &report.validity);
                Judged::combine(&condition.text, vec![held])
            })
            .collect()
    }
}

impl Condition {
    fn judge(
        &self,
        windows: &WindowCounts,
        whole: &Figures<'_>,
        validity: &[ValidityReason],
    ) -> (Held, String) {
        let worst = validity.iter().max_by_key(|reason| reason.validity);
        let (figure, above, bound, window) = match self.says {
            Says::Word(word) => {
                let least = if word == "invalid" { Validity::Invalid } else { Validity::Suspect };
                return match worst.filter(|reason| reason.validity >= least) {
                    Some(reason) => (Held::True, describe_reason(reason)),
                    None => (Held::False, String::new()),
                };
            }
            Says::Change { .. } => return (Held::Unknown, "nothing was compared".to_owned()),
            Says::Figure { figure, above, bound, window } => (figure, above, bound, window),
        };
        let spoiling = validity.iter().find(|reason| {
            // A server that answers wrongly does not invalidate the share of errors.
            let is_judged = figure == Figure::Errors
                && matches!(
                    reason.observation,
                    Observation::Failures { .. } | Observation::NothingAnswered { .. }
                );
            reason.validity == Validity::Invalid && !is_judged
        });
        if let Some(reason) = spoiling {
            return (Held::Unknown, describe_reason(reason));
        }
        match window {
            Some(window) => windows.judge(window),
            None => match whole.value(figure).map(|value| beyond(figure, above, bound, value)) {
                None => (Held::Unknown, "nothing was answered".to_owned()),
                Some(Some(words)) => (Held::True, words),
                Some(None) => (Held::False, String::new()),
            },
        }
    }
}

impl WindowCounts {
    fn judge(&self, window: Duration) -> (Held, String) {
        let WindowCounts { judged, beyond, .. } = self;
        let length = format_window(window);
        match (&self.first, self.unknown) {
            (Some(first), _) => {
                (Held::True, format!("{first}, and in {beyond} of {judged} windows of {length}"))
            }
            (None, _) if *judged == 0 => {
                (Held::Unknown, format!("the load has no whole window of {length}"))
            }
            (None, 0) => (Held::False, String::new()),
            (None, unknown) => (
                Held::Unknown,
                format!("nothing was answered in {unknown} of {judged} windows of {length}"),
            ),
        }
    }
}

impl Figures<'_> {
    /// Returns the value of a figure; `None` if nothing was answered or, for errors, no request ended.
    fn value(&self, figure: Figure) -> Option<f64> {
        let is_answered = !self.response.is_empty();
        match figure {
            Figure::Quantile(quantile) => is_answered.then(|| self.response_time(quantile)),
            Figure::Mean => is_answered.then(|| self.response.mean()),
            Figure::Errors => {
                (self.requests > 0).then(|| self.failed as f64 / self.requests as f64)
            }
            Figure::Rate => Some(self.completed as f64 / (self.to - self.from).max(1e-9)),
        }
    }

    /// Returns a quantile of the response time of all requests, nanoseconds; infinite if it falls among requests that
    /// never ended.
    fn response_time(&self, quantile: f64) -> f64 {
        let ended = self.response.len() as f64;
        let wanted = quantile * (ended + self.unended as f64) / ended;
        if wanted <= 1.0 { self.response.value_at_quantile(wanted) as f64 } else { f64::INFINITY }
    }
}

fn describe_reason(reason: &ValidityReason) -> String {
    format!(
        "the result is {} ({}: {})",
        words::validity(reason.validity),
        reason.rule(),
        describe(reason)
    )
}

/// Counts the requests that ended, and those that failed, by the definition of the rule `failures`.
fn requests(report: &LoadReport) -> Ended {
    let wrong = match &report.flows[..] {
        [] => count_wrong(&report.results.load, &report.results.statuses),
        flows => {
            flows.iter().map(|flow| count_wrong(&flow.results.load, &flow.results.statuses)).sum()
        }
    };
    let errors = report.results.errors.iter().map(|error| (error.kind, error.count));
    Ended::of(report.results.counts.completed_whole, wrong, errors)
}

fn count_wrong(load: &LoadShape, statuses: &[StatusCount]) -> u64 {
    statuses
        .iter()
        .filter(|row| row.status >= 400 && !load.status_expected)
        .map(|row| row.count)
        .sum()
}

/// The windows of a load, put together from its slices. They follow one another from the start of the measured time. A
/// last window that the end of the load cuts off is left out.
#[derive(Debug)]
pub struct Windows {
    conditions: Conditions,
    /// Incomplete windows, by length and number. Each holds the counts of all flows and the seconds that it has so far.
    open: BTreeMap<(Duration, u64), Part>,
    /// Seconds before the first window.
    begin: f64,
}

#[derive(Debug)]
struct Part {
    seconds: f64,
    data: SliceData,
    wrong: u64,
}

impl Windows {
    /// Creates the windows of a load whose measured time begins after `ramp_up`.
    pub fn new(conditions: Conditions, ramp_up: Duration) -> Windows {
        Windows { conditions, open: BTreeMap::new(), begin: ramp_up.as_secs_f64() }
    }

    /// Takes a slice of the load: its measured time in seconds, its counts, and the number of responses with an
    /// unexpected status.
    pub fn take(&mut self, (from, to): (f64, f64), data: &SliceData, wrong: u64) {
        let lengths: Vec<Duration> = self.conditions.lengths().collect();
        for length in lengths {
            let seconds = length.as_secs_f64();
            let number = ((from - self.begin) / seconds + 1e-6) as u64;
            let part = self.open.entry((length, number)).or_insert_with(|| Part {
                seconds: 0.0,
                data: SliceData::new(),
                wrong: 0,
            });
            part.seconds += to - from;
            part.data.add(data);
            part.wrong += wrong;
            if part.seconds < seconds - 1e-6 {
                continue;
            }
            let Some(part) = self.open.remove(&(length, number)) else {
                continue;
            };
            let counts = part.data.errors.counts();
            let errors = counts.iter().map(|error| (error.kind, error.count));
            let Ended { requests, failed } =
                Ended::of(part.data.completed_whole, part.wrong, errors);
            let from = self.begin + number as f64 * seconds;
            let figures = Figures {
                from,
                to: from + part.seconds,
                completed: part.data.completed,
                requests,
                failed,
                unended: part.data.censored.in_flight + part.data.censored.queued,
                response: &part.data.histograms.response,
            };
            self.conditions.tell(length, &figures);
        }
    }

    /// Returns the conditions with their results, when no more slices come.
    pub fn end(self) -> Conditions {
        self.conditions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEAL: Observation = Observation::Steal { share: 0.2 };
    const FAILURES: Observation = Observation::Failures { failed: 1, requests: 10, error: None };

    fn conditions(texts: &[&str]) -> Conditions {
        let texts: Vec<String> = texts.iter().map(ToString::to_string).collect();
        Conditions::read(&texts).expect("they are right")
    }

    /// Returns one second's data: `answered` responses of `ms` milliseconds each, and `failed` requests.
    fn second(answered: u64, ms: u64, failed: u64) -> (SliceData, u64) {
        let mut data = SliceData::new();
        data.completed = answered;
        data.completed_whole = answered;
        data.histograms.response.record_n(ms * 1_000_000, answered).expect("a time");
        (data, failed)
    }

    /// Judges conditions after these seconds; `observation` makes the whole load invalid.
    fn judge_windows(
        texts: &[&str],
        seconds: &[(u64, u64, u64)],
        observation: Option<Observation>,
    ) -> Vec<(Held, String)> {
        let mut windows = Windows::new(conditions(texts), Duration::from_secs(2));
        let mut total = SliceData::new();
        let mut wrong = 0;
        for (at, (answered, ms, failed)) in (2..).zip(seconds) {
            let (data, failed) = second(*answered, *ms, *failed);
            let at = f64::from(at);
            windows.take((at, at + 1.0), &data, failed);
            total.add(&data);
            wrong += failed;
        }
        let figures = Figures {
            from: 2.0,
            to: 2.0 + seconds.len() as f64,
            completed: total.completed,
            requests: total.completed_whole,
            failed: wrong,
            unended: total.censored.queued,
            response: &total.histograms.response,
        };
        let reasons: Vec<ValidityReason> = observation
            .map(|observation| ValidityReason {
                validity: Validity::Invalid,
                subject: None,
                observation,
            })
            .into_iter()
            .collect();
        let conditions = windows.end();
        conditions
            .0
            .iter()
            .map(|(condition, windows)| condition.judge(windows, &figures, &reasons))
            .collect()
    }

    #[test]
    fn conditions_are_held_against_the_whole_and_against_windows() {
        use Held::{False, True, Unknown};
        let seconds = [(100, 10, 0), (100, 10, 0), (100, 50, 2), (100, 10, 0), (100, 10, 0)];
        #[rustfmt::skip]
        let rows: [(&str, Option<Observation>, Held, &str); 16] = [
            ("mean > 20ms", None, False, ""),
            ("mean > 15ms", None, True, "mean is 18.0 ms, above 15.0 ms"),
            ("p50 > 20ms in 1s", None, True, "p50 is 50.0 ms, above 20.0 ms from 4 to 5 s, and in 1 of 5 windows of 1s"),
            ("p99 > 20ms in 2s", None, True, "from 4 to 6 s, and in 1 of 2 windows of 2s"),
            ("mean > 40ms in 2s", None, False, ""),
            ("mean > 1ms in 6s", None, Unknown, "the load has no whole window of 6s"),
            ("rate < 100/s", None, False, ""),
            ("rate < 101/s", None, True, "rate is 100/s, below 101/s"),
            ("errors > 0.5%", None, False, ""),
            ("errors > 0.3%", None, True, "errors is 0.4%, above 0.3%"),
            ("errors > 1% in 1s", None, True, "errors is 2%, above 1% from 4 to 5 s"),
            ("invalid", None, False, ""),
            ("invalid", Some(STEAL), True, "the result is INVALID (steal: the hypervisor took 20 % of the generator's CPU time)"),
            ("mean > 15ms", Some(STEAL), Unknown, "the result is INVALID (steal: the hypervisor took 20 %"),
            ("errors > 0.3%", Some(FAILURES), True, "errors is 0.4%"),
            ("errors > 0.3%", Some(STEAL), Unknown, "the result is INVALID"),
        ];
        for (text, observation, expected, why) in rows {
            let outcome = judge_windows(&[text], &seconds, observation.clone()).remove(0);
            assert!(
                outcome.0 == expected && outcome.1.contains(why),
                "{text}, {observation:?}: {outcome:?}"
            );
        }
        let (mut data, failed) = second(100, 10, 0);
        data.censored.queued = 2;
        let mut windows =
            Windows::new(conditions(&["p99 > 20ms in 1s", "p90 > 20ms in 1s"]), Duration::ZERO);
        windows.take((0.0, 1.0), &data, failed);
        let judged = windows.end().0;
        assert_eq!((judged[0].1.beyond, judged[1].1.beyond), (1, 0));
        let silent =
            judge_windows(&["p99 > 1s in 1s", "rate < 1/s in 1s"], &[(9, 1, 0), (0, 1, 0)], None);
        assert_eq!(silent[0].0, Unknown);
        assert_eq!(silent[1].0, True);
    }
}
