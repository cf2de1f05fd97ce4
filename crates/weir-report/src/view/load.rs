//! One load: what it is, its arms, its validity.

use weir_analysis::findings::{ArmFindings, CountedReason, InertArm, LoadFindings};
use weir_model::bursts::Bursts;
use weir_model::load::Lifetime;
use weir_model::record::Validity;
use weir_model::study::{ArmRole, LoadSpec, Study};
use weir_model::tls::{Resumption, TlsSpec, TlsVersion};

use super::compare::{MetricView, metric_view};
use super::connections::ConnectionsView;
use super::counted::CountedView;
use super::limit::LimitView;
use super::number;

/// One load, formatted.
#[derive(Debug, Clone)]
pub struct LoadView {
    /// Name of the load.
    pub name: String,
    /// What it is: `closed loop, 50 connections to each arm, GET /`.
    pub summary: String,
    /// How much of it there is: `118 of 120 blocks used, slices of 100 ms`.
    pub measured: String,
    /// Whether arrivals are independent of responses.
    pub open_loop: bool,
    /// The worst validity of what was used.
    pub validity: Validity,
    /// Reasons for doubt.
    pub reasons: Vec<ReasonView>,
    /// Whether each arm stays within the study's limit; empty where there is none.
    pub limits: Vec<LimitView>,
    /// Comparisons by metric; the one that answers the question first. Empty when the study has one
    /// arm alone.
    pub metrics: Vec<MetricView>,
    /// Figures of each arm, in the order of the study.
    pub arms: Vec<ArmView>,
    /// What the proxies counted of themselves; `None` where none told anything.
    pub counted: Option<CountedView>,
    /// What became of connections; `None` in runs that did not keep it.
    pub connections: Option<ConnectionsView>,
}

/// One reason for doubt.
#[derive(Debug, Clone)]
pub struct ReasonView {
    /// How grave it is.
    pub validity: Validity,
    /// Short name of the rule.
    pub rule: String,
    /// What was seen.
    pub seen: String,
    /// How often: `3 of 960 trials`.
    pub how_often: String,
    /// Which arms, comma-separated; empty when it does not say.
    pub arms: String,
}

/// Figures of one arm that are shown without comparison.
#[derive(Debug, Clone)]
pub struct ArmView {
    /// Name of the arm.
    pub name: String,
    /// What it is for.
    pub role: ArmRole,
    /// Completed per second.
    pub rate_completed: String,
    /// Offered per second.
    pub rate_offered: String,
    /// Proxy CPU time per request.
    pub cpu: String,
    /// Response time at 0.5, 0.9, 0.99, 0.999 and 1.
    pub response: [String; 5],
    /// Service time at the same quantiles.
    pub service: [String; 5],
    /// Dispatch lag at the same quantiles.
    pub lag: [String; 5],
    /// Requests behind the quantiles.
    pub samples: String,
    /// Errors and responses outside 1xx..3xx.
    pub failures: String,
    /// Requests that never ended.
    pub censored: String,
    /// Connections to the origin per request.
    pub origin_connects: String,
    /// (1/(1-quantile), nanoseconds), finite, ascending.
    pub percentile_curve: Vec<(f64, f64)>,
    /// (seconds, completed per second), finite.
    pub rate_over_time: Vec<(f64, f64)>,
    /// (seconds, median response time in nanoseconds), finite.
    pub response_over_time: Vec<(f64, f64)>,
}

impl LoadView {
    /// Whether service times were kept for any arm.
    pub fn service_kept(&self) -> bool {
        let mut arms = self.arms.iter();
        arms.any(|arm| arm.service.iter().any(|value| value != number::NONE))
    }

    /// Whether dispatch lag was kept for any arm.
    pub fn lag_kept(&self) -> bool {
        let mut arms = self.arms.iter();
        arms.any(|arm| arm.lag.iter().any(|value| value != number::NONE))
    }

    pub(super) fn new(study: &Study, load: &LoadFindings, inert: &[InertArm]) -> LoadView {
        let spec = study.loads.iter().find(|spec| spec.name == load.load);
        let open_loop = load.rate_intended.is_some() || spec.is_some_and(|spec| spec.is_open());
        LoadView {
            name: load.load.clone(),
            summary: summary(spec, load, open_loop),
            measured: measured(load),
            open_loop,
            validity: load.validity,
            reasons: load.reasons.iter().map(|each| reason(each, load)).collect(),
            limits: load.limits.iter().map(LimitView::new).collect(),
            metrics: load
                .metrics
                .iter()
                .filter(|_| study.arms.len() > 1)
                .map(|&metric| metric_view(study, load, inert, metric))
                .collect(),
            arms: load.arms.iter().map(arm_view).collect(),
            counted: CountedView::new(study, load),
            connections: ConnectionsView::new(spec, load),
        }
    }
}

fn measured(load: &LoadFindings) -> String {
    if load.blocks == 0 {
        return "nothing was measured".to_owned();
    }
    format!(
        "{} of {} used, slices of {}",
        number::count(u64::from(load.blocks_used)),
        number::plural(u64::from(load.blocks), "block"),
        number::short_time(load.slice_ns as f64),
    )
}

fn summary(spec: Option<&LoadSpec>, load: &LoadFindings, open_loop: bool) -> String {
    let mut parts = vec![match load.rate_intended {
        Some(rate) => format!("open loop at {} requests/s", number::asked(rate)),
        None if open_loop => "open loop".to_owned(),
        None => "closed loop".to_owned(),
    }];
    if let Some(spec) = spec {
        let connections = u64::from(spec.connections);
        parts.push(format!(
            "{} to each arm",
            number::plural(connections, "connection")
        ));
        parts.extend(manner(spec));
    }
    parts.join(", ")
}

/// What a load has besides its rate and number of connections.
pub(super) fn manner(spec: &LoadSpec) -> Vec<String> {
    let mut parts = Vec::new();
    if let Some(bursts) = Bursts::of(spec) {
        parts.push(format!(
            "in bursts of {}, one every {}",
            number::count(u64::from(bursts.size)),
            number::short_time(bursts.period().as_nanos() as f64)
        ));
    }
    if spec.held() > 0 {
        parts.push(format!("{} held idle", number::count(spec.held())));
    }
    parts.extend(lifetime(spec.lifetime));
    parts.extend(spec.tls.as_ref().map(tls));
    parts.extend(asked(spec));
    parts
}

/// What is asked for, and by whom beside the main flow.
fn asked(spec: &LoadSpec) -> Vec<String> {
    let mut parts = Vec::new();
    match &spec.requests[..] {
        [only] => parts.push(only.title()),
        several => parts.push(format!("a mix of {} requests", several.len())),
    }
    let beside = spec.beside.iter().filter(|flow| !flow.is_held());
    parts.extend(beside.map(|flow| {
        let connections = number::plural(u64::from(flow.connections), "connection");
        format!("beside it {} with {connections}", flow.name)
    }));
    parts
}

/// What becomes of connections; nothing when they are kept.
fn lifetime(lifetime: Lifetime) -> Option<String> {
    Some(match lifetime {
        Lifetime::Kept => return None,
        Lifetime::Request => "a connection for each request".to_owned(),
        Lifetime::Requests(requests) => format!(
            "a new connection after {}",
            number::plural(u64::from(requests), "request")
        ),
        Lifetime::Time(ns) => format!("a new connection after {}", number::short_time(ns as f64)),
    })
}

/// `TLS 1.2 offered (ECDHE-RSA-AES256-GCM-SHA384), never resumed`.
fn tls(offer: &TlsSpec) -> String {
    let both = [TlsVersion::V1_2, TlsVersion::V1_3];
    let versions = match offer.versions.is_empty() {
        true => &both[..],
        false => &offer.versions,
    };
    let versions: Vec<&str> = versions.iter().map(|version| version.name()).collect();
    let ciphers = match offer.ciphers.is_empty() {
        true => String::new(),
        false => format!(" ({})", offer.ciphers.join(" ")),
    };
    let resumed = match offer.resumption {
        Resumption::Off => "never resumed".to_owned(),
        Resumption::On => "resumed".to_owned(),
        Resumption::Ratio(share) => format!("{} resumed", number::level(share)),
    };
    format!("TLS {} offered{ciphers}, {resumed}", versions.join(" or "))
}

fn reason(counted: &CountedReason, load: &LoadFindings) -> ReasonView {
    ReasonView {
        validity: counted.reason.validity,
        rule: counted.reason.rule.clone(),
        seen: counted.reason.seen.clone(),
        how_often: format!(
            "{} of {}",
            number::count(u64::from(counted.trials)),
            number::plural(u64::from(counted.of), "trial"),
        ),
        arms: match load.arms.iter().all(|arm| counted.arms.contains(&arm.arm)) {
            true => "all arms".to_owned(),
            false => counted.arms.join(", "),
        },
    }
}

/// Times at five quantiles. Where even the largest is zero nothing was recorded: no request takes
/// no time.
pub(super) fn quantiles(ns: &[u64; 5], samples: u64) -> [String; 5] {
    let recorded = samples > 0 && ns.iter().any(|ns| *ns > 0);
    ns.map(|ns| match recorded {
        false => number::NONE.to_owned(),
        true => number::time(ns as f64),
    })
}

fn arm_view(arm: &ArmFindings) -> ArmView {
    let finite = |points: &mut dyn Iterator<Item = (f64, f64)>| -> Vec<(f64, f64)> {
        points
            .filter(|(x, y)| x.is_finite() && y.is_finite())
            .collect()
    };
    ArmView {
        name: arm.arm.clone(),
        role: arm.role,
        rate_completed: number::rate(arm.rate_completed),
        rate_offered: number::rate(arm.rate_offered),
        cpu: number::time(arm.cpu_per_request_ns.unwrap_or(f64::NAN)),
        response: quantiles(&arm.response_ns, arm.samples),
        service: quantiles(&arm.service_ns, arm.samples),
        lag: quantiles(&arm.dispatch_lag_ns, arm.samples),
        samples: number::count(arm.samples),
        failures: number::count(arm.failures),
        censored: number::count(arm.censored),
        origin_connects: number::share(arm.origin_connects_per_request.unwrap_or(f64::NAN)),
        percentile_curve: finite(
            &mut arm
                .percentile_curve
                .iter()
                .filter(|(x, _)| *x >= 1.0)
                .map(|&(x, ns)| (x, ns as f64)),
        ),
        rate_over_time: finite(&mut arm.over_time.iter().map(|&(s, rate, _)| (s, rate))),
        response_over_time: finite(&mut arm.over_time.iter().map(|&(s, _, ns)| (s, ns as f64))),
    }
}
