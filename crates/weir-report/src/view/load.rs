//! One load: its arms, its comparisons, its validity.

use weir_analysis::findings::{ArmFindings, Comparison, CountedReason, LoadFindings, Verdict};
use weir_model::record::Validity;
use weir_model::study::{Arm, ArmRole, LoadSpec, Metric, Study, StudyArrivals};

use super::{number, words};

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
    /// Comparisons by metric; the one that answers the question first.
    pub metrics: Vec<MetricView>,
    /// Figures of each arm, in the order of the study.
    pub arms: Vec<ArmView>,
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

/// All arms on one metric.
#[derive(Debug, Clone)]
pub struct MetricView {
    /// The metric.
    pub metric: Metric,
    /// Half-width of the equivalence band.
    pub band: f64,
    /// Confidence asked of the intervals: `95 %`.
    pub confidence: String,
    /// Head of the interval's column: `95 % interval`.
    pub interval_head: String,
    /// What the A/A arm says about the lab's own resolution.
    pub resolution: String,
    /// One row per arm.
    pub rows: Vec<RowView>,
}

/// One arm on one metric.
#[derive(Debug, Clone)]
pub struct RowView {
    /// Name of the arm.
    pub arm: String,
    /// What it is for.
    pub role: ArmRole,
    /// What it changes, in words.
    pub changes: String,
    /// What it is compared with; empty for the baseline.
    pub against: String,
    /// Whether it is compared with an arm that is not the baseline.
    pub against_step: bool,
    /// Its figure on the metric.
    pub value: String,
    /// Ratio to `against`.
    pub ratio: String,
    /// The ratio's interval.
    pub interval: String,
    /// p after Holm's correction.
    pub p: String,
    /// p before it.
    pub p_raw: String,
    /// The verdict; `None` where nothing was compared.
    pub verdict: Option<Verdict>,
    /// Why.
    pub because: String,
    /// What the comparison rests on, empty when on nothing: `n = 118, smallest detectable change 1.8 %`.
    pub basis: String,
    /// Ratio of the proxy's CPU time per request, same arms.
    pub cpu: String,
    /// Its interval.
    pub cpu_interval: String,
    /// For the chart.
    pub effect: Option<Effect>,
}

impl RowView {
    /// Sign and word of the verdict; `None` where nothing was compared.
    pub fn verdict_words(&self) -> Option<(&'static str, &'static str)> {
        let verdict = self.verdict?;
        Some((words::verdict_sign(verdict), words::verdict(verdict)))
    }
}

/// A ratio as a chart draws it. All three are above zero; the bounds may be infinite or zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effect {
    /// Estimate.
    pub ratio: f64,
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
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
    pub(super) fn new(study: &Study, load: &LoadFindings) -> LoadView {
        let spec = study.loads.iter().find(|spec| spec.name == load.load);
        let open_loop = load.rate_intended.is_some()
            || spec.is_some_and(|spec| spec.arrivals != StudyArrivals::Closed);
        LoadView {
            name: load.load.clone(),
            summary: summary(spec, load, open_loop),
            measured: format!(
                "{} of {} used, slices of {}",
                number::count(u64::from(load.blocks_used)),
                number::plural(u64::from(load.blocks), "block"),
                number::time(load.slice_ns as f64),
            ),
            open_loop,
            validity: load.validity,
            reasons: load.reasons.iter().map(reason).collect(),
            metrics: load
                .metrics
                .iter()
                .map(|&metric| metric_view(study, load, metric))
                .collect(),
            arms: load.arms.iter().map(arm_view).collect(),
        }
    }
}

fn summary(spec: Option<&LoadSpec>, load: &LoadFindings, open_loop: bool) -> String {
    let mut parts = vec![match load.rate_intended {
        Some(rate) => format!("open loop at {} requests/s", number::rate(rate)),
        None if open_loop => "open loop".to_owned(),
        None => "closed loop".to_owned(),
    }];
    if let Some(spec) = spec {
        let connections = u64::from(spec.connections);
        parts.push(format!(
            "{} to each arm",
            number::plural(connections, "connection")
        ));
        parts.push(format!("{} {}", spec.request.method, spec.request.target));
    }
    parts.join(", ")
}

fn reason(counted: &CountedReason) -> ReasonView {
    ReasonView {
        validity: counted.reason.validity,
        rule: counted.reason.rule.clone(),
        seen: counted.reason.seen.clone(),
        how_often: format!(
            "{} of {}",
            number::count(u64::from(counted.trials)),
            number::plural(u64::from(counted.of), "trial"),
        ),
        arms: counted.arms.join(", "),
    }
}

fn metric_view(study: &Study, load: &LoadFindings, metric: Metric) -> MetricView {
    let confidence = study.objective.confidence;
    MetricView {
        metric,
        band: study.objective.band,
        interval_head: format!("{} interval", number::level(confidence)),
        confidence: number::level(confidence),
        resolution: resolution(load, metric),
        rows: load
            .arms
            .iter()
            .map(|arm| row(study, load, arm, metric))
            .collect(),
    }
}

fn comparison<'a>(load: &'a LoadFindings, arm: &str, metric: Metric) -> Option<&'a Comparison> {
    load.comparisons
        .iter()
        .find(|comparison| comparison.arm == arm && comparison.metric == metric)
}

fn row(study: &Study, load: &LoadFindings, arm: &ArmFindings, metric: Metric) -> RowView {
    let place = study
        .arms
        .iter()
        .position(|planned| planned.name == arm.arm);
    let planned = place.map(|index| &study.arms[index]);
    let found = comparison(load, &arm.arm, metric);
    let cpu = comparison(load, &arm.arm, Metric::CpuPerRequest);
    let baseline = study.arms.first().map_or("", |arm| arm.name.as_str());
    let or_none = |text: Option<String>| text.unwrap_or_else(|| number::NONE.to_owned());
    RowView {
        arm: arm.arm.clone(),
        role: arm.role,
        changes: changes(study, planned, arm.role),
        against: found.map_or(String::new(), |c| c.against.clone()),
        against_step: found.is_some_and(|c| c.against != baseline),
        value: metric_value(arm, metric),
        ratio: or_none(found.map(|c| number::ratio(c.ratio))),
        interval: or_none(found.map(|c| interval(c, study.objective.confidence))),
        p: or_none(found.map(|c| number::p_value(c.p_holm))),
        p_raw: or_none(found.map(|c| number::p_value(c.p))),
        verdict: found.map(|c| c.verdict),
        because: found.map_or(String::new(), |c| c.because.clone()),
        basis: found.map_or(String::new(), basis),
        cpu: or_none(cpu.map(|c| number::ratio(c.ratio))),
        cpu_interval: or_none(cpu.map(|c| number::ratio_interval(c.ratio, c.interval))),
        effect: found.and_then(effect),
    }
}

/// What a chart can draw of a comparison; `None` when there is no estimate.
fn effect(comparison: &Comparison) -> Option<Effect> {
    let (ratio, (low, high)) = (comparison.ratio, comparison.interval);
    let drawable = comparison.verdict != Verdict::Invalid
        && ratio.is_finite()
        && ratio > 0.0
        && !low.is_nan()
        && !high.is_nan();
    drawable.then_some(Effect { ratio, low, high })
}

/// The interval, and its true confidence where so few blocks cannot give the one asked for.
fn interval(comparison: &Comparison, asked: f64) -> String {
    let text = number::ratio_interval(comparison.ratio, comparison.interval);
    if text != number::NONE && comparison.confidence < asked - 0.0005 {
        format!("{text} ({})", number::level(comparison.confidence))
    } else {
        text
    }
}

fn basis(comparison: &Comparison) -> String {
    if comparison.n == 0 {
        return String::new();
    }
    let mut text = format!("n = {}", number::count(u64::from(comparison.n)));
    if comparison.merged > 1 {
        text.push_str(&format!(
            " (each of {} neighbouring blocks)",
            comparison.merged
        ));
    }
    if comparison.minimum_detectable.is_finite() {
        text.push_str(&format!(
            ", smallest detectable change {}",
            number::percent(comparison.minimum_detectable)
        ));
    }
    text
}

/// What an arm changes against the arm it is compared with: `gzip: off → on`.
pub(super) fn changes(study: &Study, arm: Option<&Arm>, role: ArmRole) -> String {
    match role {
        ArmRole::Baseline => return "baseline".to_owned(),
        ArmRole::SameAsBaseline => return "nothing (A/A: the baseline again)".to_owned(),
        ArmRole::Change => {}
    }
    let Some(arm) = arm else {
        return String::new();
    };
    let before = study.arms.get(arm.against).map(|arm| &arm.settings);
    let each =
        arm.changes.iter().map(
            |(id, level)| match before.and_then(|settings| settings.get(id)) {
                Some(from) if from != level => format!("{id}: {from} → {level}"),
                _ => format!("{id}: {level}"),
            },
        );
    each.collect::<Vec<_>>().join(", ")
}

fn metric_value(arm: &ArmFindings, metric: Metric) -> String {
    match metric {
        Metric::Rate => number::rate(arm.rate_completed),
        Metric::CpuPerRequest => number::time(arm.cpu_per_request_ns.unwrap_or(f64::NAN)),
        Metric::ResponseP50 => quantiles(&arm.response_ns, arm.samples)[0].clone(),
        Metric::ResponseP99 => quantiles(&arm.response_ns, arm.samples)[2].clone(),
    }
}

fn quantiles(ns: &[u64; 5], samples: u64) -> [String; 5] {
    ns.map(|ns| match samples {
        0 => number::NONE.to_owned(),
        _ => number::time(ns as f64),
    })
}

/// What the A/A arm says, for somebody who wants to know which effects can be believed.
fn resolution(load: &LoadFindings, metric: Metric) -> String {
    let same = load
        .arms
        .iter()
        .filter(|arm| arm.role == ArmRole::SameAsBaseline)
        .find_map(|arm| comparison(load, &arm.arm, metric));
    let Some(same) = same else {
        return "no A/A arm: what differs here between two equal arms is not known".to_owned();
    };
    let (low, high) = same.interval;
    if same.verdict == Verdict::Invalid
        || effect(same).is_none()
        || low <= 0.0
        || high.is_infinite()
    {
        return "the A/A arm has no valid figures: what differs here between two equal arms is \
                not known"
            .to_owned();
    }
    let half_width = ((high.ln() - low.ln()) / 2.0).exp() - 1.0;
    let found = format!(
        "two equal arms differed by {}, interval ±{}",
        number::percent((same.ratio - 1.0).abs()),
        number::percent(half_width),
    );
    let detectable = match same.minimum_detectable {
        least if least.is_finite() => {
            format!(" (smallest detectable change {})", number::percent(least))
        }
        _ => String::new(),
    };
    match same.verdict {
        Verdict::Better | Verdict::Worse => format!(
            "{found}, which is more than chance explains: do not believe other effects of that \
             size here"
        ),
        _ => format!("{found}: smaller effects cannot be shown here{detectable}"),
    }
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
        origin_connects: match arm.origin_connects_per_request {
            Some(share) if share > 0.0 && share < 0.0005 => "<0.001".to_owned(),
            Some(share) if share.is_finite() => format!("{share:.3}"),
            _ => number::NONE.to_owned(),
        },
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
