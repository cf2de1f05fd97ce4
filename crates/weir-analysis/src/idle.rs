//! Closed loops in which nobody was busy: then the connections are the limit, and the rate says how long a response
//! takes, not how much a proxy carries.

use weir_model::record::TrialRecord;
use weir_model::study::{LoadSpec, Metric};
use weir_parameters::Catalog;

use crate::blocks::LoadData;
use crate::evidence::evidence;
use crate::findings::{Comparison, Verdict};
use crate::names;
use crate::outcomes::sum;
use crate::validity::BUSY;

/// The share of the proxy's CPUs from which on responses may well have waited for others: as for steal, a fifth.
const CROWDED: f64 = 0.2;

/// What an idle load is called, wherever its figures stand elsewhere.
const WORDS: &str = "the connections were the limit";
/// What the answer says of it.
pub(crate) const ANSWER: &str = "The connections were the limit, so this does not show how much the proxy carries; more \
                                 connections would.";

/// What was idle under a closed load.
pub(crate) struct Idle {
    /// By arm of the study, whether neither its proxy nor generator nor origin was busy.
    arms: Vec<bool>,
    /// What follows, as a clause.
    words: String,
}

impl Idle {
    /// `None`: an open loop, or under no arm was everybody idle.
    pub(crate) fn of(data: &LoadData<'_>, load: &LoadSpec) -> Option<Idle> {
        if load.is_open() {
            return None;
        }
        let each = (0..data.study.arms.len()).map(|arm| everybody_idle(data, arm));
        let each: Vec<Option<[f64; 2]>> = each.collect();
        let both = each.iter().flatten().copied();
        let [busiest, others] = both.reduce(|one, other| [0, 1].map(|i| one[i].max(other[i])))?;
        let connections = load.asking();
        // Of each arm: what is so of one is not of another that answers faster.
        let idle = (0..each.len()).filter(|arm| each[*arm].is_some());
        let means: Vec<f64> = idle.map(|arm| mean_s(data, arm)).collect();
        let shortest = means.iter().copied().fold(f64::INFINITY, f64::min);
        let longest = means.iter().copied().fold(0.0, f64::max);
        let allowed = |seconds: f64| names::rate(connections as f64 / seconds.max(1e-9));
        let words = format!(
            "{WORDS}: {connections} connections × {} ms for a response allow {}/s, and \
             no CPU was busy{} ({:.0} % at most); this says nothing about how much the proxy carries",
            ends(
                format!("{:.3}", shortest * 1e3),
                format!("{:.3}", longest * 1e3)
            ),
            ends(allowed(longest), allowed(shortest)),
            match others >= CROWDED {
                true => " with the run",
                false => "",
            },
            busiest * 100.0
        );
        let words = match others >= CROWDED {
            true => format!(
                "{words}; responses may have waited for other processes, which had {:.0} % of the proxy's CPUs",
                others * 100.0
            ),
            false => words,
        };
        let arms = each.iter().map(Option::is_some).collect();
        Some(Idle { arms, words })
    }

    /// What is said of the load, where it is true of every arm.
    pub(crate) fn sentence(&self) -> String {
        match self.arms.iter().all(|is_idle| *is_idle) {
            true => {
                let mut words = self.words.clone();
                words.replace_range(..1, "T");
                words + "."
            }
            false => String::new(),
        }
    }

    /// Two arms that carry the same because their connections allow no more are not shown to be equivalent; of what
    /// differs the reason is said.
    pub(crate) fn doubt(&self, data: &LoadData<'_>, comparison: &mut Comparison) {
        let is_idle = |name: &str| {
            let place = data.study.arms.iter().position(|arm| arm.name == name);
            place.is_some_and(|place| self.arms[place])
        };
        // Where it is so of every arm, the load says it once, with its figures.
        let words = match self.arms.iter().all(|is_idle| *is_idle) {
            true => WORDS,
            false => &*self.words,
        };
        let is_rate = matches!(comparison.metric, Metric::Rate | Metric::ReceivedBytes);
        let is_valid = comparison.verdict != Verdict::Invalid;
        if !is_rate || !is_valid || !is_idle(&comparison.arm) || !is_idle(&comparison.against) {
            return;
        }
        comparison.because = match comparison.verdict {
            Verdict::Equivalent => {
                comparison.verdict = Verdict::Inconclusive;
                words.to_owned()
            }
            _ => format!("{}; {words}", comparison.because),
        };
    }
}

/// The mean response time of an arm, seconds: with so many connections that are always busy, their number by it is the rate
/// (Little 1961, Operations Research 9).
fn mean_s(data: &LoadData<'_>, arm: usize) -> f64 {
    let (mut count, mut all_ns) = (0.0, 0.0);
    for trial in data.usable_of(arm) {
        let own = trial.response_time.count as f64;
        count += own;
        all_ns += own * trial.response_time.mean;
    }
    all_ns / f64::max(count, 1.0) / 1e9
}

/// From one to the other, where they differ as they are written.
fn ends(low: String, high: String) -> String {
    match low == high {
        true => low,
        false => format!("{low} to {high}"),
    }
}

/// The share of its time that the busiest of proxy, generator and origin used while the arm had the load, and that of the
/// proxy's CPUs which others had, 0..1; `None` where one of the three was busy, or may have been.
fn everybody_idle(data: &LoadData<'_>, arm: usize) -> Option<[f64; 2]> {
    let spec = &data.study.arms[arm];
    if !data.sees_process(spec) {
        return None;
    }
    let kind = data.study.proxy_of(spec).kind;
    let cpus = spec.cpus(&data.header.cpus).cpus().len() as f64;
    // Where nobody knows how many threads share the work, one may have all of it.
    let workers = Catalog::builtin().workers(kind, &spec.settings);
    let workers = workers
        .map_or(1.0, |workers| workers as f64)
        .clamp(1.0, cpus.max(1.0));
    let (mut used, mut of_others, mut count) = ([0.0; 3], 0.0, 0.0);
    for trial in data.usable_of(arm) {
        let [proxy, not_idle, peer, others] = shares(trial, data)?;
        of_others += others;
        used[0] += proxy / workers;
        used[1] += not_idle;
        used[2] += peer;
        count += 1.0;
    }
    let busiest = used.into_iter().map(|used| used / count).reduce(f64::max)?;
    (busiest < BUSY).then(|| [busiest, of_others / count])
}

/// CPUs that the proxy's processes used, the share of its CPUs' time that was not idle, and that of the busier of
/// generator and origin.
fn shares(trial: &TrialRecord, data: &LoadData<'_>) -> Option<[f64; 4]> {
    let slices = evidence(trial, data.header).slices?;
    let (_, peer) = slices.peer?;
    let own = sum([trial], |slice| slice.proxy_cpu_ns) / slices.whole_ns;
    // What other processes take is nobody's work here, as far as meters tell it.
    let others = sum([trial], |slice| {
        slice.held_up.proxy.map_or(0, |held_up| held_up.others_ns)
    });
    // Idle time comes in ticks: one more than was counted is possible.
    let not_idle = 1.0 - slices.of_proxy(slices.proxy_idle_ns + others);
    Some([own, not_idle, peer, slices.of_proxy(others)])
}
