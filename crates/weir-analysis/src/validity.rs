//! May this trial be used? Judged by what happened around it, before anybody looks at its outcome.
//!
//! The lab judges each trial as it records it; the analysis judges again, so that rules that got
//! better also apply to old runs.

use weir_model::flow::FlowSpec;
use weir_model::load::ErrorCount;
use weir_model::load::Spacing;
use weir_model::record::{RunHeader, SliceRecord, TrialRecord, Validity, ValidityReason};
use weir_model::study::{LoadSpec, ProxyRole, Study};

/// How many standard deviations a number of Poisson arrivals may be off by chance.
const CHANCE: f64 = 4.0;

/// Failures among responses. One in a thousand is what published capacity goals still call loss;
/// at one in twenty the proxy spends itself on something else than the study's question.
const FAILURES: Limits = Limits {
    suspect: 0.001,
    invalid: 0.05,
};
/// Connections for which the generator had no port left. Its own trouble, so the first one is said;
/// from where on too many requests failed is as for [`FAILURES`].
const NO_PORT: Limits = Limits {
    suspect: 0.0,
    invalid: FAILURES.invalid,
};
/// How the kernel's words for EADDRNOTAVAIL end, which connect(2) gives when all ports of the local
/// range are taken.
const NO_PORT_WORDS: &str = "(os error 99)";
/// Time that the hypervisor kept the proxy's CPUs for others. The arms of a block are measured
/// alternately, so a little falls on both alike; a fifth does not.
const STEAL: Limits = Limits {
    suspect: 0.05,
    invalid: 0.20,
};
/// Time of the proxy's CPUs that went to processes of other people. They also share it out by the
/// number of processes that want it, so an arm with more workers gets more of it.
const CROWDED: Limits = Limits {
    suspect: 0.05,
    invalid: f64::INFINITY,
};
/// Requests offered too few or too many in the open loop: 0.1 % is what the engine promises.
const RATE_ERROR: Limits = Limits {
    suspect: 0.001,
    invalid: 0.01,
};
/// Lateness at the edge of a slice that does not count as a wrong rate, in seconds.
const EDGE_S: f64 = 1e-3;
/// Dispatch lag against the response time, both at the same quantile: the part of a response time
/// that is the generator's own lateness. It burdens both sides of a ratio alike and pulls it towards
/// 1; beyond a quarter that must be said, from one half on the figure is more about the generator
/// than about the proxy.
pub(crate) const DISPATCH_LAG: Limits = Limits {
    suspect: 0.25,
    invalid: 0.50,
};
/// Requests of the open loop that never ended: beyond one in a hundred the p99 is not known.
const CENSORED: Limits = Limits {
    suspect: 0.01,
    invalid: f64::INFINITY,
};
/// CPU time of the generator in the open loop, where it should be waiting most of the time. In the
/// closed loop being busy is its business.
const GENERATOR_BUSY: Limits = Limits {
    suspect: 0.95,
    invalid: f64::INFINITY,
};
/// Idle time of the proxy's CPUs in the closed loop while somebody else is busy: what was measured
/// is then somebody else, and ratios understate what the proxy gained.
const PROXY_IDLE: Limits = Limits {
    suspect: 0.20,
    invalid: f64::INFINITY,
};
/// Median response time of the closed loop against the part of a slice that is not measured. Requests
/// in flight when the load moves on are answered while another arm has it, so what the measured part
/// sees of a longer one is how a queue fills.
const SLICE: Limits = Limits {
    suspect: 1.0,
    invalid: f64::INFINITY,
};
/// Lateness of the readings of counters against a slice: as much of the CPU time that they tell may
/// belong to a neighbouring slice, which is another arm's.
const LATE: Limits = Limits {
    suspect: 0.05,
    invalid: 0.50,
};
/// From when on generator or origin count as busy. Not higher, because the kernel's work on their
/// behalf (softirq) is not in the CPU time of their threads.
const BUSY: f64 = 0.80;
/// The kernel shows steal and idle time in ticks of 10 ms: one tick more or less is no evidence.
const TICK_NS: f64 = 1e7;

/// Every rule that [`validity`] knows, by the name that stands in the reasons.
pub const RULES: [&str; 12] = [
    "nothing-answered",
    "failures",
    "ports-exhausted",
    "proxy-steal",
    "proxy-crowded",
    "proxy-not-limit",
    "slice-too-short",
    "late-counters",
    "offered-rate",
    "dispatch-lag",
    "generator-busy",
    "censored",
];

/// From which share on something is suspect or invalid; exclusive.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) suspect: f64,
    pub(crate) invalid: f64,
}

/// A reason with the size of what was seen, so that the gravest of many can be shown.
#[derive(Debug, Clone)]
pub(crate) struct Reason {
    pub(crate) reason: ValidityReason,
    /// What was compared with the limit; larger is graver.
    pub(crate) size: f64,
}

/// Every reason not to use `trial`, or to use it with care; none: VALID.
///
/// `rate_intended` is the open loop's rate in requests per second, which for
/// [`ArrivalsSpec::ShareOfSlowest`](weir_model::flow::ArrivalsSpec) only the pilot's record knows; without it the study's own
/// figure is used, and no offered rate is judged when that is a share.
pub fn validity(
    trial: &TrialRecord,
    header: &RunHeader,
    rate_intended: Option<f64>,
) -> Vec<ValidityReason> {
    let reasons = judge(trial, header, rate_intended);
    reasons.into_iter().map(|reason| reason.reason).collect()
}

/// [`validity`], with sizes.
pub(crate) fn judge(
    trial: &TrialRecord,
    header: &RunHeader,
    rate_intended: Option<f64>,
) -> Vec<Reason> {
    let study = &header.study;
    let load = study.loads.iter().find(|load| load.name == trial.load);
    let blocks = &study.blocks;
    let discard = load.map_or(blocks.discard, |load| load.discard(blocks));
    let totals = Totals::of(&trial.slices, discard);
    if totals.completed == 0 {
        let seen = match first_words(&trial.errors) {
            Some(words) => format!("no response was complete: {words}"),
            None => "no response was complete".to_owned(),
        };
        return vec![Reason {
            reason: ValidityReason {
                validity: Validity::Invalid,
                rule: "nothing-answered".to_owned(),
                seen,
            },
            size: 1.0,
        }];
    }
    let mut found = vec![
        failures(trial, study, &totals),
        ports_exhausted(trial, &totals),
        steal(header, &totals),
        crowded(header, &trial.arm, &totals),
        late_counters(&totals),
    ];
    match load {
        Some(load) if !load.is_open() => {
            found.push(proxy_not_limit(header, &totals));
            found.push(slice_too_short(trial, &totals));
        }
        Some(load) => {
            let rate = rate_intended.or(load.rate());
            let is_poisson = |flow: &FlowSpec| matches!(flow.spacing, Spacing::Poisson { .. });
            let chance = if load.flows().any(is_poisson) {
                CHANCE
            } else {
                0.0
            };
            found.push(rate.and_then(|rate| rate_error(rate, chance, &totals)));
            found.push(dispatch_lag(trial));
            found.push(generator_busy(header, &totals));
            found.push(censored(trial, &totals));
        }
        None => {}
    }
    found.into_iter().flatten().collect()
}

/// Sums over a trial's slices.
struct Totals {
    slices: f64,
    measured_ns: f64,
    /// Whole slices; the record has the measured parts, the study the share that they leave out.
    whole_ns: f64,
    offered: u64,
    completed: u64,
    completed_whole: u64,
    proxy_steal_ns: f64,
    proxy_idle_ns: f64,
    proxy_cpu_ns: f64,
    generator_cpu_ns: f64,
    origin_cpu_ns: f64,
    late_ns: f64,
}

impl Totals {
    fn of(slices: &[SliceRecord], discard: f64) -> Totals {
        let sum = |field: fn(&SliceRecord) -> u64| slices.iter().map(field).sum::<u64>();
        let measured_ns = sum(|slice| slice.measured_ns) as f64;
        Totals {
            slices: slices.len() as f64,
            measured_ns,
            whole_ns: measured_ns / (1.0 - discard.clamp(0.0, 0.99)),
            offered: sum(|slice| slice.offered),
            completed: sum(|slice| slice.completed),
            completed_whole: sum(|slice| slice.completed_whole),
            proxy_steal_ns: sum(|slice| slice.proxy_steal_ns) as f64,
            proxy_idle_ns: sum(|slice| slice.proxy_cpus_idle_ns) as f64,
            proxy_cpu_ns: sum(|slice| slice.proxy_cpu_ns) as f64,
            generator_cpu_ns: sum(|slice| slice.generator_cpu_ns) as f64,
            origin_cpu_ns: sum(|slice| slice.origin_cpu_ns) as f64,
            late_ns: sum(|slice| slice.late_ns) as f64,
        }
    }
}

/// A reason of kind `rule` when `share` is beyond one of `limits`.
pub(crate) fn graded(
    rule: &str,
    share: f64,
    limits: Limits,
    seen: impl FnOnce() -> String,
) -> Option<Reason> {
    let validity = match share {
        s if s > limits.invalid => Validity::Invalid,
        s if s > limits.suspect => Validity::Suspect,
        _ => return None,
    };
    let reason = ValidityReason {
        validity,
        rule: rule.to_owned(),
        seen: seen(),
    };
    Some(Reason {
        reason,
        size: share,
    })
}

/// Errors, and responses whose status nobody asked for: where the load does not say which it expects, those outside 1xx to 3xx and not of the class that
/// the study has the origin answer with.
pub(crate) fn failure_count(trial: &TrialRecord, study: &Study) -> u64 {
    let expected = match study.proxy.role {
        ProxyRole::ReverseProxy => usize::from(study.origin.status / 100),
        ProxyRole::StaticFiles { .. } => 2,
    };
    let errors: u64 = trial.errors.iter().map(|error| error.count).sum();
    let load = study.loads.iter().find(|load| load.name == trial.load);
    if load.is_some_and(LoadSpec::expects_status) {
        // What was not expected is among the errors.
        return errors;
    }
    let classes = trial.status_classes.iter().enumerate();
    let unexpected: u64 = classes
        .filter(|(class, _)| !(1..=3).contains(class) && *class != expected)
        .map(|(_, count)| count)
        .sum();
    errors + unexpected
}

fn first_words(errors: &[ErrorCount]) -> Option<String> {
    let most = errors.iter().max_by_key(|error| error.count)?;
    Some(format!("{} times `{}`", most.count, most.words))
}

fn failures(trial: &TrialRecord, study: &Study, totals: &Totals) -> Option<Reason> {
    let failures = failure_count(trial, study);
    let errors: u64 = trial.errors.iter().map(|error| error.count).sum();
    let of = (totals.completed_whole + errors).max(1);
    let share = failures as f64 / of as f64;
    graded("failures", share, FAILURES, || {
        let words = first_words(&trial.errors).map_or(String::new(), |words| format!(", {words}"));
        format!(
            "{failures} of {of} requests failed ({}){words}",
            percent(share)
        )
    })
}

fn ports_exhausted(trial: &TrialRecord, totals: &Totals) -> Option<Reason> {
    let without = trial.errors.iter();
    let without = without.filter(|error| error.words.ends_with(NO_PORT_WORDS));
    let times: u64 = without.map(|error| error.count).sum();
    let share = times as f64 / (totals.completed_whole + times).max(1) as f64;
    graded("ports-exhausted", share, NO_PORT, || {
        format!(
            "the generator had no local port left {times} times (net.ipv4.ip_local_port_range; closed              connections keep theirs for a minute)"
        )
    })
}

fn steal(header: &RunHeader, totals: &Totals) -> Option<Reason> {
    let time = totals.whole_ns * header.cpus.proxy.cpus().len() as f64;
    let share = (totals.proxy_steal_ns - TICK_NS) / time;
    graded("proxy-steal", share, STEAL, || {
        let seen = percent(totals.proxy_steal_ns / time);
        format!("the hypervisor kept {seen} of the proxy's CPU time for others")
    })
}

fn late_counters(totals: &Totals) -> Option<Reason> {
    let share = totals.late_ns / totals.whole_ns;
    graded("late-counters", share, LATE, || {
        let ms = totals.late_ns / totals.slices.max(1.0) / 1e6;
        format!(
            "the counters of its slices were read {ms:.1} ms late, {} of a slice",
            percent(share)
        )
    })
}

/// What of its CPUs' time was neither idle, nor stolen, nor the proxy's own. Where the proxy shares a
/// CPU with weir itself that is no news; of a proxy that weir did not start the own share is not known.
fn crowded(header: &RunHeader, arm: &str, totals: &Totals) -> Option<Reason> {
    let study = &header.study;
    let arm = study.arms.iter().find(|known| known.name == arm);
    if arm.is_some_and(|arm| !study.proxy_of(arm).kind.is_started()) {
        return None;
    }
    let cpus = &header.cpus;
    let of_weir = [&cpus.generator, &cpus.origin];
    if of_weir
        .iter()
        .any(|own| !cpus.proxy.shared_with(own).is_empty())
    {
        return None;
    }
    let count = cpus.proxy.cpus().len() as f64;
    let time = totals.whole_ns * count;
    // Idle time comes in ticks: in every slice each CPU may have one more than was counted.
    let grain = TICK_NS * totals.slices * count;
    let others = time - totals.proxy_idle_ns - totals.proxy_steal_ns - totals.proxy_cpu_ns;
    graded("proxy-crowded", (others - grain) / time, CROWDED, || {
        format!(
            "other processes took {} of the time of the proxy's CPUs",
            percent(others / time)
        )
    })
}

fn rate_error(rate: f64, chance: f64, totals: &Totals) -> Option<Reason> {
    let intended = rate * totals.measured_ns / 1e9;
    // Where a slice ends between two arrivals is chance, and a pause of the generator just there
    // moves requests across its edge: lateness, which has a rule of its own.
    // How many arrivals of a Poisson process fall into a stretch is chance, with their number as variance.
    let grain = totals.slices * (1.0 + rate * EDGE_S) + chance * intended.sqrt();
    let off = (totals.offered as f64 - intended).abs() - grain;
    graded("offered-rate", off / intended, RATE_ERROR, || {
        format!(
            "{} requests were offered where {intended:.0} were intended",
            totals.offered
        )
    })
}

fn dispatch_lag(trial: &TrialRecord) -> Option<Reason> {
    let (lag, response) = (&trial.dispatch_lag, &trial.response_time);
    let shares = [
        ("p50", lag.p50, response.p50),
        ("p99", lag.p99, response.p99),
    ];
    let share = |lag: u64, response: u64| lag as f64 / response.max(1) as f64;
    let (quantile, lag, response) = shares
        .into_iter()
        .max_by(|a, b| share(a.1, a.2).total_cmp(&share(b.1, b.2)))?;
    graded("dispatch-lag", share(lag, response), DISPATCH_LAG, || {
        lag_seen(quantile, lag, response)
    })
}

/// How lateness is told, of one trial and of a load test alike.
pub(crate) fn lag_seen(quantile: &str, lag: u64, response: u64) -> String {
    let (lag, response) = (lag as f64 / 1e3, response as f64 / 1e3);
    format!(
        "at {quantile} the generator itself was {lag:.0} µs late, of a response time of {response:.0} µs"
    )
}

fn generator_busy(header: &RunHeader, totals: &Totals) -> Option<Reason> {
    let time = totals.whole_ns * header.cpus.generator.cpus().len() as f64;
    let share = totals.generator_cpu_ns / time;
    graded("generator-busy", share, GENERATOR_BUSY, || {
        format!("the generator used {} of its CPUs' time", percent(share))
    })
}

fn censored(trial: &TrialRecord, totals: &Totals) -> Option<Reason> {
    let censored = trial.censored.in_flight + trial.censored.queued;
    let share = censored as f64 / (censored + totals.completed_whole) as f64;
    graded("censored", share, CENSORED, || {
        let oldest = trial.censored.oldest_ns as f64 / 1e6;
        format!(
            "{censored} requests ({}) never ended, the oldest after {oldest:.0} ms",
            percent(share)
        )
    })
}

fn proxy_not_limit(header: &RunHeader, totals: &Totals) -> Option<Reason> {
    let cpus = &header.cpus;
    let per_cpu = |ns: f64, count: usize| ns / (totals.whole_ns * count as f64);
    let shared = cpus.generator.shared_with(&cpus.origin).len();
    let (generators, origins) = (cpus.generator.cpus().len(), cpus.origin.cpus().len());
    let generator = per_cpu(totals.generator_cpu_ns, generators);
    let origin = per_cpu(totals.origin_cpu_ns, origins);
    // Two roles on the same CPUs are busy together.
    let both = per_cpu(
        totals.generator_cpu_ns + totals.origin_cpu_ns,
        generators + origins - shared,
    );
    let (who, busy) = match shared {
        0 if generator >= origin => ("the generator", generator),
        0 => ("the origin", origin),
        _ => ("generator and origin together", both),
    };
    if busy < BUSY {
        return None;
    }
    let proxies = cpus.proxy.cpus().len();
    let idle = per_cpu(totals.proxy_idle_ns - TICK_NS, proxies);
    graded("proxy-not-limit", idle, PROXY_IDLE, || {
        format!(
            "the proxy was not the limit: its CPUs were idle {} of the time while {who} used {} of theirs",
            percent(per_cpu(totals.proxy_idle_ns, proxies)),
            percent(busy.min(1.0)),
        )
    })
}

fn slice_too_short(trial: &TrialRecord, totals: &Totals) -> Option<Reason> {
    let lead_ns = (totals.whole_ns - totals.measured_ns) / totals.slices.max(1.0);
    let median_ns = trial.response_time.p50 as f64;
    // A study that discards nothing has said so.
    let share = if lead_ns >= 1.0 {
        median_ns / lead_ns
    } else {
        0.0
    };
    graded("slice-too-short", share, SLICE, || {
        format!(
            "half of the responses took longer ({:.0} ms) than the part of a slice that is not measured \
             ({:.0} ms): longer slices or fewer connections are wanted",
            median_ns / 1e6,
            lead_ns / 1e6
        )
    })
}

/// A share in words.
pub(crate) fn percent(share: f64) -> String {
    match share * 100.0 {
        p if p < 1.0 => format!("{p:.2} %"),
        p if p < 10.0 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}
