//! Sentences about the capacity of an arm: the result, its basis, and the advice if nothing can be claimed.

use std::time::Duration;

use weir_analysis::capacity::{
    Capacity, CapacityFindings, CurvePoint, RanOut, Ratio, RatioReason, UNIT, allowed,
};
use weir_analysis::findings::{LimiterFindings, Verdict};
use weir_model::limit::Limit;
use weir_model::record::{CapacityEnd, CapacityRecord, CeilingOf, ObservedRecord};

use crate::comparison::describe_equal_arms;
use crate::names::join_names;
use crate::numbers::{ms, rate};

/// Scatter, as a share, below which no sentence mentions it.
const LEAST_SCATTER: f64 = 0.009;
/// Factor by which to increase the connections if all were busy: two doublings show if they are the limit.
const CONNECTIONS_FACTOR: u32 = 4;

/// Returns the answer to the study's question, one topic per line.
pub(crate) fn summary(found: &CapacityFindings, limiters: &[LimiterFindings]) -> String {
    if let [arm] = &found.arms[..] {
        let sentences = details(arm, limiters).join(" ");
        return format!("{}\n{sentences}", carries(arm)).trim_end().to_owned();
    }
    let ratios: Vec<String> = found.ratios.iter().filter_map(compare).collect();
    std::iter::once(ratios.join(" "))
        .chain(found.arms.iter().map(carries))
        .filter(|line| !line.is_empty())
        .collect::<Vec<String>>()
        .join("\n")
}

/// Returns `keepalive carries 1.96 times as much as stock (1.91 to 2.02).`; `None` if the arms cannot be compared.
fn compare(ratio: &Ratio) -> Option<String> {
    let qualifier = match ratio.verdict {
        Verdict::Invalid => return None,
        Verdict::Better | Verdict::Worse => "",
        Verdict::Equivalent => "; no difference that matters",
        Verdict::Inconclusive => "; a difference could not be shown",
    };
    let (low, high) = ratio.interval;
    Some(format!(
        "{} carries {:.2} times as much as {} ({low:.2} to {high:.2}{qualifier}).",
        ratio.arm, ratio.ratio, ratio.against
    ))
}

/// Returns the reason for the verdict on a ratio, in half a sentence.
pub fn because(ratio: &Ratio) -> String {
    let p = match ratio.p_holm {
        p if !p.is_finite() => String::new(),
        p if p < 1e-4 => "; p is below 0.0001".to_owned(),
        p => format!("; p is {p:.4}"),
    };
    match &ratio.because {
        RatioReason::Unclaimed { arm } => format!("no capacity of {arm} can be claimed"),
        RatioReason::NoUpperEnd { arm } => {
            format!("the upper end of what {arm} carries is not known")
        }
        RatioReason::AboveOne => format!("the whole interval is above 1{p}"),
        RatioReason::BelowOne => format!("the whole interval is below 1{p}"),
        RatioReason::WithinBand { band } => {
            format!("the whole interval is within ±{} %", Percent(*band))
        }
        RatioReason::Open { band } => format!(
            "the interval neither clearly excludes 1 nor is within ±{} %{p}",
            Percent(*band)
        ),
        RatioReason::EqualArms(equal) => describe_equal_arms(equal),
        RatioReason::ChangeBetweenUnknown { same } => {
            let why = match same {
                None => ": `a/a: true` shows it".to_owned(),
                Some(same) => {
                    format!(", because no capacity of the A/A arm {same} can be compared")
                }
            };
            format!(
                "the arms were searched one after the other, and what changed in between is not \
                 known{why}"
            )
        }
    }
}

/// Returns a sentence about the capacity of an arm, made from the search's record alone.
pub fn of_record(record: &CapacityRecord) -> String {
    carries(&weir_analysis::capacity::ended(record))
}

/// Returns a sentence about the capacity of an arm: `stock carries 4,310 to 4,520 requests/s within p99 < 30ms (95 %):
/// 4,310/s held for 65 s, 4,700/s broke after 4 s.`
pub fn carries(found: &Capacity) -> String {
    let (arm, within) = (&found.answer.arm, objective(found));
    if !found.claimed {
        return nothing(found);
    }
    let (low, high, seen) = (rate(found.answer.low), rate(found.answer.high), observations(found));
    let sure = if found.answer.is_bracket {
        String::new()
    } else {
        format!(" ({:.4} %)", Percent(found.answer.confidence))
    };
    let Some(ceiling) = found.answer.ceiling else {
        return format!("{arm} carries {low} to {high} {UNIT} within {within}{sure}: {seen}.");
    };
    let (at_least, at) =
        (format!("{arm} carries at least {low} {UNIT} within {within}"), rate(ceiling.rate));
    match ceiling.of {
        CeilingOf::Connections => format!(
            "{at_least}: {seen}. All {} connections were busy, and half as many carried half as \
             much, so the upper end is not the server's limit. Try again with -c {}.",
            found.answer.connections,
            found.answer.connections.saturating_mul(CONNECTIONS_FACTOR),
        ),
        CeilingOf::Time => format!(
            "{at_least}{sure}: {seen}. {at}/s held when it was tried again, so the upper end is \
             not known."
        ),
        CeilingOf::Generator | CeilingOf::Origin => {
            let whose = if ceiling.of == CeilingOf::Origin { "origin" } else { "load generator" };
            format!(
                "{at_least}: {seen}. The {whose} reaches its own limit at {at}/s, so the upper \
                 end is not the proxy's limit."
            )
        }
    }
}

/// Lists the rates that held and broke: `4,310/s held for 65 s, 4,700/s broke after 4 s`.
fn observations(found: &Capacity) -> String {
    let for_s = if found.answer.held_s > 0.0 {
        format!(" for {:.0} s", found.answer.held_s)
    } else {
        String::new()
    };
    let held = format!("{}/s held{for_s}", rate(found.answer.verified));
    match found.answer.broke {
        Some(broke) => format!("{held}, {}", broken(broke)),
        None => held,
    }
}

fn broken(broke: ObservedRecord) -> String {
    format!("{}/s broke after {} s", rate(broke.rate), short_s(broke.seconds))
}

/// Formats seconds: with one decimal below 9.95, else without.
fn short_s(seconds: f64) -> String {
    if seconds < 9.95 { format!("{seconds:.1}") } else { format!("{seconds:.0}") }
}

/// Returns the sentences that follow the one about the capacity of an arm ([`carries`]).
pub fn details(found: &Capacity, limiters: &[LimiterFindings]) -> Vec<String> {
    let limiter = limiters.iter().find(|limiter| limiter.arm == found.answer.arm);
    let limit = match limiter {
        Some(limiter) => Some(crate::limiter::describe(limiter)),
        None => found.ran_out.map(ran_out),
    };
    [decides(found), fresh(found), burst(found), scatter(found), end(found), stalls(found), limit]
        .into_iter()
        .flatten()
        .collect()
}

/// Returns `p99 < 30ms decides.` if there are several limits. Where something else than the server is at the upper end,
/// none of them broke there.
fn decides(found: &Capacity) -> Option<String> {
    let is_known = found.claimed && found.answer.limits.len() > 1 && found.answer.ceiling.is_none();
    let deciding = found.deciding().filter(|_| is_known)?;
    Some(format!("{deciding} decides."))
}

/// Returns a sentence about the rates that only short trials on a rested arm held, if there are any.
fn fresh(found: &Capacity) -> Option<String> {
    let (low, high) = found.answer.fresh?;
    let sustains = if found.claimed { "This is what it sustains. " } else { "" };
    Some(format!(
        "{sustains}For some seconds after a fresh start it carries {} to {}/s: something builds up \
         over time that only a longer trial shows.",
        rate(low),
        rate(high)
    ))
}

/// Returns a sentence about the capacity in a burst, if it was searched.
fn burst(found: &Capacity) -> Option<String> {
    let burst = found.answer.burst?;
    let sure = if burst.confidence > 0.0 {
        format!(" ({:.1} %)", Percent(burst.confidence))
    } else {
        String::new()
    };
    Some(format!(
        "In a burst of {} s after a rest it carries {} to {}/s{sure}.",
        burst.seconds,
        rate(burst.low),
        rate(burst.high)
    ))
}

/// Returns a sentence about how much the limit itself moved, if that is more than a negligible scatter.
fn scatter(found: &Capacity) -> Option<String> {
    let scatter =
        found.answer.scatter.filter(|scatter| found.claimed && *scatter >= LEAST_SCATTER)?;
    let minutes = (found.answer.seconds.1 / 60.0).round().max(1.0);
    let time = if minutes > 1.0 {
        format!("in these {minutes:.0} minutes")
    } else {
        "meanwhile".to_owned()
    };
    Some(format!("Its limit moved by ±{:.1} % {time}.", Percent(scatter)))
}

/// Returns a sentence about the end of a search that has a claim, if that tells what to do.
fn end(found: &Capacity) -> Option<String> {
    match found.end.filter(|_| found.claimed)? {
        CapacityEnd::Budget => Some("A longer search (--budget) would narrow this.".to_owned()),
        CapacityEnd::Settled => Some("A longer search would not narrow this.".to_owned()),
        CapacityEnd::Broken(at) => Some(format!(
            "Above {} {UNIT} it stopped answering, and did not recover: see what it logged.",
            rate(at)
        )),
        _ => None,
    }
}

/// Returns a sentence about trials that broke only because the server stood still for a moment, if there are any.
fn stalls(found: &Capacity) -> Option<String> {
    let trials = match found.answer.stalls {
        0 => return None,
        1 => "one trial, which broke".to_owned(),
        several => format!("{several} trials, which broke"),
    };
    Some(format!(
        "It stood still for a moment in {trials} by that alone: whether a longer trial meets such \
         a moment is chance."
    ))
}

/// Returns a sentence about the resource that ran out first.
fn ran_out(found: RanOut) -> String {
    let (used, first) = match found {
        RanOut::CpuTime { used } => (used, "CPU time"),
        RanOut::NotCpuTime { used } => (used, "something other than its CPU time"),
    };
    let percent = (used * 100.0).min(100.0);
    format!("At the edge the proxy uses {percent:.0} % of its CPUs: {first} runs out first.")
}

/// Returns sentences that say why no capacity is claimed, what was observed, and what to do.
fn nothing(found: &Capacity) -> String {
    let (arm, within) = (&found.answer.arm, objective(found));
    let observed = seen_in_short(found);
    let unclaimed = format!("How much {arm} carries within {within} is not claimed");
    let Some(end) = found.end else {
        return if found.answer.verified > 0.0 {
            format!(
                "So far {arm} carries {} to {} {UNIT} within {within}: {}. The search did not \
                 end: resume the run to finish it.",
                rate(found.answer.low),
                rate(found.answer.high),
                observations(found)
            )
        } else {
            format!("{unclaimed}: the search did not end.{observed} Resume the run to finish it.")
        };
    };
    match end {
        CapacityEnd::Found | CapacityEnd::Settled | CapacityEnd::Budget => {
            format!("{unclaimed}: no long trial held.{observed} Give the search more time.")
        }
        CapacityEnd::TooShort(_) => {
            let advice = match found.answer.enough_s {
                Some(enough) => format!("Give it more time: at least --budget {enough:.0}s."),
                None => "Repeat the search while nothing else runs, or with a shorter --hold."
                    .to_owned(),
            };
            format!(
                "{unclaimed}: no rate was held for long enough in {:.0} s of trials.{observed} \
                 {advice}",
                found.answer.seconds.1
            )
        }
        CapacityEnd::Never => {
            format!("{arm} kept {within} at none of the rates that were tried{}.", never(found))
        }
        CapacityEnd::Broken(at) => format!(
            "{arm} stopped answering above {} {UNIT} and did not recover, so nothing is claimed.\
             {observed} See what it logged, start it again, and search below that rate.",
            rate(at)
        ),
        CapacityEnd::NotSent(at) => format!(
            "{unclaimed}: the load generator did not send {} {UNIT} in time, and nothing is known \
             of {arm} below that.{observed} Give the generator more CPUs, or a machine of its own.",
            rate(at)
        ),
        CapacityEnd::Spoilt | CapacityEnd::Unsteady => format!(
            "{unclaimed}: the machine stood still or was busy with other work in most trials.\
             {observed} Repeat the search while nothing else runs."
        ),
    }
}

/// Returns a sentence about the rates that short trials carried and broke, if any: ` 9,000/s was carried for 8.0 s,
/// 9,800/s broke after 2.5 s.`
fn seen_in_short(found: &Capacity) -> String {
    let carried = found.answer.carried.map(|carried| {
        format!("{}/s was carried for {} s", rate(carried.rate), short_s(carried.seconds))
    });
    let rates: Vec<String> = carried.into_iter().chain(found.answer.broke.map(broken)).collect();
    if rates.is_empty() { String::new() } else { format!(" {}.", rates.join(", ")) }
}

/// Returns a clause about the observation at the lowest rate, and an objective within reach.
fn never(found: &Capacity) -> String {
    let lowest = found.curve.first();
    let Some((lowest, limit)) =
        lowest.and_then(|at| Some((at, found.answer.limits.get(at.limit)?)))
    else {
        return String::new();
    };
    let at = rate(lowest.rate);
    let floor =
        if found.answer.floor > allowed(limit) { "; fewer requests do not help" } else { "" };
    let Some((value, nearest)) = nearest(lowest, limit) else {
        return format!(
            ": at {at}/s, the lowest, {:.3} % of the requests broke {limit}{floor}",
            Percent(lowest.bad)
        );
    };
    let observed = match (limit, value) {
        (Limit::Errors(_), share) => format!("{:.3} % of the requests failed", Percent(share)),
        (_, ns) => format!("its {} was {} ms", limit.subject(), ms(ns)),
    };
    format!(": at {at}/s, the lowest, {observed}{floor}. An objective within reach is {nearest}")
}

/// Returns the measured value of the limited quantity at a point (nanoseconds, or a share), and a limit above it.
fn nearest(point: &CurvePoint, limit: &Limit) -> Option<(f64, Limit)> {
    match limit {
        Limit::Quantile(quantile, _) => {
            let (_, time) = [0.5, 0.9, 0.99, 0.999]
                .into_iter()
                .zip(point.quantiles())
                .find(|(known, _)| (known - quantile).abs() < 1e-9)?;
            let ns = time? as f64;
            Some((ns, Limit::Quantile(*quantile, time_above(ns))))
        }
        Limit::Mean(bound) => {
            // As `bad` is defined for it: exp(-limit / mean).
            let ns = -(bound.as_nanos() as f64) / point.bad.ln();
            Some((ns, Limit::Mean(time_above(ns)))).filter(|_| (1e3..60e9).contains(&ns))
        }
        Limit::Errors(_) => {
            let share = round_up(point.bad * 1.25 * 1e6) / 1e6;
            Some((point.bad, Limit::Errors(share))).filter(|_| share < 0.5)
        }
    }
}

fn time_above(ns: f64) -> Duration {
    Duration::from_nanos(round_up(ns * 1.25) as u64)
}

/// Rounds up to the next of 1, 1.5, 2, 3, 5 and 7 times a power of ten.
fn round_up(value: f64) -> f64 {
    let power = 10_f64.powi(value.max(1.0).log10().floor() as i32);
    [1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0]
        .map(|step| step * power)
        .into_iter()
        .find(|step| *step >= value)
        .unwrap_or(value)
}

/// Returns the objective: `p99 < 30ms, errors < 0.01%`.
fn objective(found: &Capacity) -> String {
    let limits: Vec<String> = found.answer.limits.iter().map(Limit::to_string).collect();
    join_names(&limits)
}

/// A share that is displayed in percent, with the given number of decimals at most (2 by default).
struct Percent(f64);

impl std::fmt::Display for Percent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = format!("{:.*}", f.precision().unwrap_or(2), self.0 * 100.0);
        f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}
