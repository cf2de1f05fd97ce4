//! How much an arm carries, in sentences: what was found, what it rests on, and what to do where nothing can be
//! claimed.

use std::time::Duration;

use weir_model::limit::Limit;
use weir_model::record::{CapacityEnd, CapacityRecord, CeilingOf};

use super::{Capacity, CapacityFindings, CurvePoint, UNIT, curve};
use crate::findings::Verdict;
use crate::names::{self, ms, rate};

/// How many times the connections to ask with where all were busy: two doublings tell whether they are the limit.
const MORE: u32 = 4;

/// How much an arm carries by the search's record alone, in a sentence.
pub fn sentence(record: &CapacityRecord) -> String {
    carries(&super::ended(record))
}

/// How much an arm carries, in a sentence: `stock carries 4,310 to 4,520 requests/s within p99 < 30ms (95 %; 4,310/s
/// held for 65 s)`.
pub fn carries(found: &Capacity) -> String {
    let (arm, within) = (&found.arm, objective(found));
    if !found.claimed {
        return nothing(found);
    }
    let held = match found.held_s {
        seconds if seconds > 0.0 => format!(" for {seconds:.0} s"),
        _ => String::new(),
    };
    let basis = format!(
        "({:.4} %; {}/s held{held})",
        Percent(found.confidence),
        rate(found.verified)
    );
    match found.ceiling {
        Some(ceiling) if ceiling.of == CeilingOf::Connections => format!(
            "{arm} carries at least {} {UNIT} within {within} {basis}; all {} connections were busy, and half as many carried half as much, so the upper end is not the server's limit. Try again with -c {}.",
            rate(found.low),
            found.connections,
            found.connections.saturating_mul(MORE),
        ),
        Some(ceiling) if ceiling.of == CeilingOf::Time => format!(
            "{arm} carries at least {} {UNIT} within {within} {basis}; {}/s held when it was tried again, so the upper end is not known.",
            rate(found.low),
            rate(ceiling.rate)
        ),
        None => format!(
            "{arm} carries {} to {} {UNIT} within {within} {basis}.",
            rate(found.low),
            rate(found.high)
        ),
        Some(ceiling) => format!(
            "{arm} carries at least {} {UNIT} within {within} {basis}; {} reaches its own limit at {}/s, so the upper end is not the proxy's limit.",
            rate(found.low),
            whose(ceiling.of),
            rate(ceiling.rate)
        ),
    }
}

/// What there is to say of an arm; the first sentence is [`carries`].
pub(super) fn answer(found: &Capacity) -> Vec<String> {
    let mut all = vec![carries(found)];
    // Where something else than the server is at the upper end, none of them broke there.
    if found.claimed && found.limits.len() > 1 && found.ceiling.is_none() {
        all.extend(found.deciding().map(|limit| format!("{limit} decides.")));
    }
    if let Some((low, high)) = found.fresh {
        let sustains = match found.claimed {
            true => "This is what it sustains. ",
            false => "",
        };
        all.push(format!(
            "{sustains}Fresh, in short trials after a rest, it carries {} to {}/s: something builds up over time that only a longer trial shows.",
            rate(low),
            rate(high)
        ));
    }
    if let Some(burst) = found.burst {
        let sure = match burst.confidence {
            confidence if confidence > 0.0 => format!(" ({:.1} %)", Percent(confidence)),
            _ => String::new(),
        };
        all.push(format!(
            "In a burst of {} s after a rest it carries {} to {}/s{sure}.",
            burst.seconds,
            rate(burst.low),
            rate(burst.high)
        ));
    }
    if found.end == Some(CapacityEnd::Budget) && found.claimed {
        all.push("Time ran out: a longer search would narrow the interval.".to_owned());
    }
    all.extend(Some(found.ran_out.clone()).filter(|text| !text.is_empty()));
    all
}

/// The answer to the question of the study, a line for each thought.
pub(crate) fn summary(found: &CapacityFindings) -> String {
    if let [one] = &found.arms[..] {
        let rest = one.words.get(1..).unwrap_or_default().join(" ");
        return format!("{}\n{rest}", carries(one)).trim_end().to_owned();
    }
    let known = found
        .ratios
        .iter()
        .filter(|ratio| ratio.verdict != Verdict::Invalid);
    let ratios = known.map(|ratio| {
        let (low, high) = ratio.interval;
        let shown = match ratio.verdict {
            Verdict::Better | Verdict::Worse => "",
            Verdict::Equivalent => "; no difference that matters",
            _ => "; a difference could not be shown",
        };
        format!(
            "{} carries {:.2} times as much as {} ({low:.2} to {high:.2}{shown}).",
            ratio.arm, ratio.ratio, ratio.against
        )
    });
    let ratios: Vec<String> = ratios.collect();
    let each = found.arms.iter().map(carries);
    let lines = std::iter::once(ratios.join(" ")).chain(each);
    let lines: Vec<String> = lines.filter(|line| !line.is_empty()).collect();
    lines.join("\n")
}

/// Why no capacity is claimed, what was seen, and what to do.
fn nothing(found: &Capacity) -> String {
    let (arm, within) = (&found.arm, objective(found));
    let so_far = match found.low > 0.0 && found.high >= found.low {
        true => format!(
            " So far it seems to be between {} and {} {UNIT}.",
            rate(found.low),
            rate(found.high)
        ),
        false => String::new(),
    };
    let seconds = found.seconds.1;
    match found.end {
        None => format!(
            "How much {arm} carries within {within} is not known: the search did not end.{so_far} Resume the run to finish it."
        ),
        Some(CapacityEnd::Found | CapacityEnd::Budget) => format!(
            "How much {arm} carries within {within} cannot be claimed: no long trial held a rate near the edge.{so_far} \
             Give the search more time."
        ),
        Some(CapacityEnd::TooShort(_)) => format!(
            "How much {arm} carries within {within} cannot be claimed after {seconds:.0} s of trials.{so_far} {}",
            match found.enough_s {
                Some(enough) => format!("A longer search can: --budget {enough:.0}s."),
                None => "Repeat the search while nothing else runs, or with a shorter --hold."
                    .to_owned(),
            }
        ),
        Some(CapacityEnd::Never) => format!(
            "{arm} kept {within} at none of the rates that were tried{}.",
            never(found)
        ),
        Some(CapacityEnd::Broken(at)) => format!(
            "{arm} broke above {} {UNIT} and did not recover, so nothing is claimed.{so_far} See what it logged, start \
             it again, and search below that rate.",
            rate(at)
        ),
        Some(CapacityEnd::NotSent(at)) => format!(
            "How much {arm} carries within {within} cannot be claimed: the load generator did not send {} {UNIT} in \
             time, and nothing is known of {arm} below that.{so_far} Give the generator more CPUs, or a machine of its own.",
            rate(at)
        ),
        Some(CapacityEnd::Unsteady) => format!(
            "How much {arm} carries within {within} cannot be claimed: the machine changed too much while it was \
             searched.{so_far} Repeat the search while nothing else runs."
        ),
    }
}

/// What the lowest rate showed, and what could be asked for instead.
fn never(found: &Capacity) -> String {
    let lowest = found.curve.first();
    let Some((lowest, limit)) = lowest.and_then(|at| Some((at, found.limits.get(at.limit)?)))
    else {
        return String::new();
    };
    let at = rate(lowest.rate);
    let percent = |share: f64| format!("{:.3} %", Percent(share));
    let floor = match found.floor > curve::allowed(limit) {
        true => "; fewer requests do not help",
        false => "",
    };
    let Some((seen, nearest)) = nearest(lowest, limit) else {
        return format!(
            ": at {at}/s, the lowest, {} of the requests broke {limit}{floor}",
            percent(lowest.bad)
        );
    };
    let seen = match (limit, seen) {
        (Limit::Errors(_), seen) => format!("{} of the requests failed", percent(seen)),
        (_, ns) => format!("its {} was {} ms", limit.subject(), ms(ns)),
    };
    format!(": at {at}/s, the lowest, {seen}{floor}. An objective within reach is {nearest}")
}

/// What a point showed of what has the limit (nanoseconds, or a share), and a limit above that.
fn nearest(point: &CurvePoint, limit: &Limit) -> Option<(f64, Limit)> {
    let time = |ns: f64| Duration::from_nanos(round_up(ns * 1.25) as u64);
    match limit {
        Limit::Quantile(quantile, _) => {
            let known = [0.5, 0.9, 0.99, 0.999].into_iter().zip(point.quantiles());
            let own = known
                .into_iter()
                .find(|(known, _)| (known - quantile).abs() < 1e-9);
            let ns = own?.1? as f64;
            Some((ns, Limit::Quantile(*quantile, time(ns))))
        }
        Limit::Mean(bound) => {
            // As `bad` is defined for it: exp(-limit / mean).
            let ns = -(bound.as_nanos() as f64) / point.bad.ln();
            Some((ns, Limit::Mean(time(ns)))).filter(|_| (1e3..60e9).contains(&ns))
        }
        Limit::Errors(_) => {
            let share = round_up(point.bad * 1.25 * 1e6) / 1e6;
            Some((point.bad, Limit::Errors(share))).filter(|_| share < 0.5)
        }
    }
}

/// The next of 1, 1.5, 2, 3, 5 and 7 times a power of ten.
fn round_up(value: f64) -> f64 {
    let power = 10_f64.powi(value.max(1.0).log10().floor() as i32);
    let steps = [1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0].map(|step| step * power);
    steps
        .into_iter()
        .find(|step| *step >= value)
        .unwrap_or(value)
}

/// The objective: `p99 < 30ms, errors < 0.01%`.
fn objective(found: &Capacity) -> String {
    let limits: Vec<String> = found.limits.iter().map(Limit::to_string).collect();
    names::listed(&limits)
}

/// Whose limit a ceiling is.
fn whose(of: CeilingOf) -> &'static str {
    match of {
        CeilingOf::Generator => "the load generator",
        CeilingOf::Origin => "the origin",
        CeilingOf::Connections => "the number of connections",
        CeilingOf::Time => "the search",
    }
}

/// A share in percent, with as many of so many decimals as it needs.
struct Percent(f64);

impl std::fmt::Display for Percent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = format!("{:.*}", f.precision().unwrap_or(2), self.0 * 100.0);
        f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}
