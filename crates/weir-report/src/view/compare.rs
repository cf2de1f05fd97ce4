//! All arms on one metric: ratios, verdicts and the reasons for them.

use weir_analysis::are_steps;
use weir_analysis::findings::{ArmFindings, Comparison, InertArm, LoadFindings, Verdict};
use weir_model::study::{Arm, ArmRole, Metric, Study};

use super::load::quantiles;
use super::pairs::{self, PairsView};
use super::{about, number, words};

/// An interval that is believed less than this is not shown: it would look like knowledge.
pub(super) const LEAST_CONFIDENCE: f64 = 0.8;

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
    /// One row per arm: baseline and A/A first, then the changes in the order of the study.
    pub rows: Vec<RowView>,
    /// Whether what is compared with another arm than the baseline is a step after that one.
    pub by_steps: bool,
    /// Every arm against every other, where the study compares them so.
    pub pairs: Option<PairsView>,
    /// Why the verdicts are what they are; what holds for several arms is said once.
    pub why: Vec<WhyView>,
}

impl MetricView {
    /// Whether anything could be compared. If not, [`MetricView::why`] says all there is to say.
    pub fn comparable(&self) -> bool {
        let mut verdicts = self.rows.iter().filter_map(|row| row.verdict);
        verdicts.any(|verdict| verdict != Verdict::Invalid)
    }
}

/// One reason for a verdict, and whose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WhyView {
    /// Sign of the verdict.
    pub sign: &'static str,
    /// The verdict in one word.
    pub word: &'static str,
    /// The verdict itself.
    pub verdict: Verdict,
    /// Whether it is about levels that changed nothing as things stand.
    pub inert: bool,
    /// The reason.
    pub because: String,
    /// The arms, comma-separated; `all` when there is no other.
    pub arms: String,
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
    /// Smallest change that this comparison could have shown: `1.8 %`.
    pub detectable: String,
    /// Replicates that it rests on: `n = 118`.
    pub replicates: String,
    /// Ratio of the proxy's CPU time per request, same arms.
    pub cpu: String,
    /// Its interval.
    pub cpu_interval: String,
    /// What of it changed nothing as things stand: [`words::INERT`] or [`words::PARTLY_INERT`]; none
    /// where it came out as better or worse all the same.
    pub inert: Option<&'static str>,
    /// For the chart.
    pub effect: Option<Effect>,
}

impl RowView {
    /// Sign and word of the verdict; `None` where nothing was compared. An A/A arm is neither
    /// better nor worse: it [differs](words::DIFFERS), and then the lab is at fault.
    pub fn verdict_words(&self) -> Option<(&'static str, &'static str)> {
        let verdict = self.verdict?;
        if let Some(word) = self.inert {
            return Some((words::INERT_SIGN, word));
        }
        let word = match self.alarming() {
            true => words::DIFFERS,
            false => words::verdict(verdict),
        };
        Some((words::verdict_sign(verdict), word))
    }

    /// Whether this is an A/A arm that came out different from what it equals.
    pub fn alarming(&self) -> bool {
        self.role == ArmRole::SameAsBaseline
            && matches!(self.verdict, Some(Verdict::Better | Verdict::Worse))
    }

    /// The row's part in the comparison, as a name of a style.
    pub fn part(&self) -> &'static str {
        match self.role {
            ArmRole::Baseline => "baseline",
            ArmRole::SameAsBaseline => "control",
            ArmRole::Change => "change",
        }
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

pub(super) fn metric_view(
    study: &Study,
    load: &LoadFindings,
    inert: &[InertArm],
    metric: Metric,
) -> MetricView {
    let confidence = study.objective.confidence;
    let mut rows: Vec<RowView> = load
        .arms
        .iter()
        .map(|arm| row(study, load, arm, metric))
        .map(|row| marked(row, inert))
        .collect();
    rows.sort_by_key(|row| (row.role != ArmRole::Baseline, row.role == ArmRole::Change));
    MetricView {
        metric,
        band: study.objective.band,
        interval_head: format!("{} interval", number::level(confidence)),
        confidence: number::level(confidence),
        resolution: resolution(load, metric),
        by_steps: are_steps(study),
        pairs: pairs::view(study, load, metric),
        why: why(&rows),
        rows,
    }
}

/// Marks an arm whose levels are not in force. One that differs all the same is no less better or
/// worse for it, and the section on inert levels says the rest.
fn marked(row: RowView, inert: &[InertArm]) -> RowView {
    let no_effect = matches!(
        row.verdict,
        Some(Verdict::Equivalent | Verdict::Inconclusive)
    );
    let Some(found) = inert.iter().find(|inert| inert.arm == row.arm && no_effect) else {
        return row;
    };
    let why: Vec<String> = found
        .levels
        .iter()
        .map(|level| format!("{} = {}: {}", level.id, level.requested, level.why))
        .collect();
    RowView {
        inert: Some(match found.whole {
            true => words::INERT,
            false => words::PARTLY_INERT,
        }),
        because: why.join("; "),
        ..row
    }
}

/// The verdicts' reasons, each once, those of clear verdicts first.
fn why(rows: &[RowView]) -> Vec<WhyView> {
    let mut all: Vec<(WhyView, Vec<&str>)> = Vec::new();
    let compared = rows.iter().filter(|row| !row.because.is_empty());
    for row in compared.clone() {
        let (Some(verdict), Some((sign, word))) = (row.verdict, row.verdict_words()) else {
            continue;
        };
        let same = |(why, _): &&mut (WhyView, _)| why.word == word && why.because == row.because;
        match all.iter_mut().find(same) {
            Some((_, arms)) => arms.push(&row.arm),
            None => {
                let why = WhyView {
                    sign,
                    word,
                    verdict,
                    inert: row.inert.is_some(),
                    because: row.because.clone(),
                    arms: String::new(),
                };
                all.push((why, vec![&row.arm]));
            }
        }
    }
    all.sort_by_key(|(why, _)| words::verdict_rank(why.verdict));
    let alone = all.len() == 1;
    let named = all.into_iter().map(|(why, arms)| WhyView {
        arms: match alone && arms.len() > 1 {
            true => "all".to_owned(),
            false => arms.join(", "),
        },
        ..why
    });
    named.collect()
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
        detectable: or_none(found.map(|c| number::percent(c.minimum_detectable))),
        replicates: found.map_or(String::new(), replicates),
        cpu: or_none(cpu.map(|c| number::ratio(c.ratio))),
        cpu_interval: or_none(cpu.map(|c| interval(c, study.objective.confidence))),
        inert: None,
        effect: found.and_then(effect),
    }
}

/// What a chart can draw of a comparison; `None` when there is no estimate.
fn effect(comparison: &Comparison) -> Option<Effect> {
    let (ratio, (low, high)) = (comparison.ratio, comparison.interval);
    let drawable = comparison.verdict != Verdict::Invalid
        && ratio.is_finite()
        && ratio > 0.0
        && comparison.confidence >= LEAST_CONFIDENCE
        && !low.is_nan()
        && !high.is_nan();
    drawable.then_some(Effect { ratio, low, high })
}

/// The interval, and its true confidence where so few blocks cannot give the one asked for.
fn interval(comparison: &Comparison, asked: f64) -> String {
    if comparison.confidence < LEAST_CONFIDENCE {
        return number::NONE.to_owned();
    }
    let text = number::ratio_interval(comparison.ratio, comparison.interval);
    if text != number::NONE && comparison.confidence < asked - 0.0005 {
        format!("{text} at {}", number::level(comparison.confidence))
    } else {
        text
    }
}

fn replicates(comparison: &Comparison) -> String {
    match (comparison.n, comparison.merged) {
        (0, _) => String::new(),
        (n, 0 | 1) => format!("n = {}", number::count(u64::from(n))),
        (n, merged) => format!(
            "n = {}, each of {merged} blocks",
            number::count(u64::from(n))
        ),
    }
}

/// What an arm changes against the arm it is compared with: `gzip: off → on`.
pub(super) fn changes(study: &Study, arm: Option<&Arm>, role: ArmRole) -> String {
    match role {
        ArmRole::Baseline => return about::of_baseline(study),
        ArmRole::SameAsBaseline => return "A/A: the baseline again".to_owned(),
        ArmRole::Change => {}
    }
    let Some(arm) = arm else {
        return String::new();
    };
    if let Some(text) = about::of_other_proxy(study, arm) {
        return text;
    }
    let before = study.arms.get(arm.against).map(|arm| &arm.settings);
    let each =
        arm.changes.iter().map(
            |(id, level)| match before.and_then(|settings| settings.get(id)) {
                _ if id == "launcher" => about::launcher_words(study, level),
                Some(from) if from != level => format!("{id}: {from} → {level}"),
                _ => format!("{id}: {level}"),
            },
        );
    each.collect::<Vec<_>>().join(", ")
}

fn metric_value(arm: &ArmFindings, metric: Metric) -> String {
    match metric {
        Metric::Rate => number::rate(arm.rate_completed),
        Metric::ReceivedBytes => number::gigabits(arm.received_per_second.unwrap_or(f64::NAN)),
        Metric::CpuPerRequest => number::time(arm.cpu_per_request_ns.unwrap_or(f64::NAN)),
        Metric::ResponseP50 => quantiles(&arm.response_ns, arm.samples)[0].clone(),
        Metric::ResponseP99 => quantiles(&arm.response_ns, arm.samples)[2].clone(),
    }
}

/// Widest interval that is told as plus or minus so many percent.
const WIDEST_AS_PERCENT: f64 = 0.5;

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
    // "±461 %" would say less than the two ends do.
    let interval = match half_width <= WIDEST_AS_PERCENT {
        true => format!("±{}", number::percent(half_width)),
        false => format!("{} to {}", number::ratio(low), number::ratio(high)),
    };
    let found = format!(
        "two equal arms differed by {}, interval {interval}",
        number::percent((same.ratio - 1.0).abs()),
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
