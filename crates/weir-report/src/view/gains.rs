//! Published gains beside ours.
//!
//! They are means and peaks over machines and settings that are not here, so sizes are not compared:
//! a gain is confirmed where ours has its direction and lies beyond the equivalence band.

use weir_analysis::are_different_proxies;
use weir_analysis::findings::{Comparison, LoadFindings, Verdict};
use weir_model::study::{Arm, ArmRole, GainOf, Metric, PublishedGain, Study};

use super::published::{PublishedVerdict, said};
use crate::tree::{Block, Cell, Column, Kind, List, Outputs, Row, Style, Table, Text, text};
use crate::{number, words};

/// One published gain beside ours.
#[derive(Debug, Clone)]
pub struct GainView {
    /// What it was gained by: `transport=sockmap`, or arms.
    pub of: String,
    /// The metric in words.
    pub metric: &'static str,
    /// The load that ours are from, with its validity; a dash when there is none.
    pub load: String,
    /// Published mean change: `+280 %`; a dash where none was published.
    pub mean: String,
    /// Published peak.
    pub peak: String,
    /// Geometric mean of ours over [`GainView::arms`].
    pub mean_here: String,
    /// The largest of ours.
    pub peak_here: String,
    /// Ours, arm by arm.
    pub arms: Vec<GainArm>,
    /// What that says.
    pub verdict: PublishedVerdict,
    /// Why, where the figures do not say it.
    pub because: String,
}

/// What one arm gains.
#[derive(Debug, Clone)]
pub struct GainArm {
    /// The arm.
    pub arm: String,
    /// What it is compared with.
    pub against: String,
    /// Its change: `+41 %`.
    pub gain: String,
    /// The change's interval: `+38 % to +44 %`.
    pub interval: String,
}

impl GainView {
    /// What to know of all of them.
    pub const CAVEAT: &str = "Published gains are from other hardware: directions can be compared, \
                              sizes cannot. Ours are the ratio of each arm less 1, their mean is \
                              geometric.";

    /// `transport=sockmap, completed rate under load closed (VALID): published mean +280 %, peak +366 %;
    /// here mean +41 %, peak +52 %`.
    pub fn head(&self) -> String {
        let two = |mean: &str, peak: &str| {
            let each = [("mean", mean), ("peak", peak)];
            let each = each.iter().filter(|(_, figure)| *figure != number::NONE);
            let each: Vec<String> = each
                .map(|(name, figure)| format!("{name} {figure}"))
                .collect();
            match each.is_empty() {
                true => "nothing".to_owned(),
                false => each.join(", "),
            }
        };
        let load = match self.load.as_str() {
            number::NONE => String::new(),
            load => format!(" under load {load}"),
        };
        format!(
            "{}, {}{load}: published {}; here {}",
            self.of,
            self.metric,
            two(&self.mean, &self.peak),
            two(&self.mean_here, &self.peak_here)
        )
    }
}

impl GainArm {
    /// `sockmap against tcp: +41 % (+38 % to +44 %)`.
    pub fn words(&self) -> String {
        format!(
            "{} against {}: {} ({})",
            self.arm, self.against, self.gain, self.interval
        )
    }
}

/// The table of all gains; where there is no room for it, a paragraph each.
pub(super) fn blocks(gains: &[GainView]) -> Vec<Block> {
    if gains.is_empty() {
        return Vec::new();
    }
    let columns = [
        Column::new("published").small("mean, peak"),
        Column::new("here").small("mean, peak"),
        Column::left("each arm here"),
        Column::left("verdict"),
    ];
    let rows = gains.iter().map(|gain| {
        let cells = [
            Cell::from(&*gain.mean).small(&*gain.peak),
            Cell::from(&*gain.mean_here).small(&*gain.peak_here),
            Cell::lines(gain.arms.iter().map(GainArm::words)),
            said(Some(gain.verdict), &gain.because),
        ];
        let about = match gain.load.as_str() {
            number::NONE => gain.metric.to_owned(),
            load => format!("{}, load {load}", gain.metric),
        };
        Row::new(&*gain.of, cells).about(about)
    });
    let table = Table {
        about: "metric and load",
        ..Table::new(
            Kind::Prose,
            "Published gains beside measured ones",
            "gained by",
        )
    };
    let items = gains.iter().flat_map(|gain| {
        let mut head = format!("{}: {}", gain.head(), gain.verdict.words());
        if !gain.because.is_empty() {
            head += &format!(", {}", gain.because);
        }
        let arms = gain.arms.iter().map(|arm| format!("  {}", arm.words()));
        std::iter::once(head).chain(arms).map(Text::from)
    });
    let list = Block::List(List {
        items: items.collect(),
        attached: true,
    });
    let table = Block::Table(table.columns(columns).rows(rows));
    vec![
        text(Style::Soft, GainView::CAVEAT),
        Block::Only(Outputs::TERMINAL, vec![list]),
        Block::Only(Outputs::FILES, vec![table]),
    ]
}

/// All published gains, each under each load that it is for.
pub(super) fn all(study: &Study, loads: &[LoadFindings]) -> Vec<GainView> {
    let Some(published) = &study.published else {
        return Vec::new();
    };
    let each = published.gains.iter();
    each.flat_map(|gain| of_gain(study, loads, gain)).collect()
}

fn of_gain(study: &Study, loads: &[LoadFindings], gain: &PublishedGain) -> Vec<GainView> {
    let is_for = |load: &&LoadFindings| match &gain.load {
        Some(name) => load.load == *name,
        None => load.metrics.contains(&gain.metric),
    };
    let mut views: Vec<GainView> = loads
        .iter()
        .filter(is_for)
        .map(|load| view(study, Some(load), gain))
        .collect();
    if views.is_empty() {
        views.push(view(study, None, gain));
    }
    views
}

fn view(study: &Study, load: Option<&LoadFindings>, gain: &PublishedGain) -> GainView {
    let measured = load.map_or_else(Vec::new, |load| measured(study, load, gain));
    let up = gain.mean.or(gain.peak).is_some_and(|change| change > 0.0);
    let ratios: Vec<f64> = measured.iter().map(|own| own.ratio).collect();
    let (verdict, because) = match ratios.is_empty() {
        true => (PublishedVerdict::NotMeasured, missing(study, load, gain)),
        false => judge(&measured, up, study.objective.band),
    };
    let published = |change: Option<f64>| {
        change.map_or_else(
            || number::NONE.to_owned(),
            |change| number::change(1.0 + change),
        )
    };
    let largest = match up {
        true => ratios.iter().copied().fold(f64::NAN, f64::max),
        false => ratios.iter().copied().fold(f64::NAN, f64::min),
    };
    let logs = ratios.iter().map(|ratio| ratio.ln()).sum::<f64>();
    GainView {
        of: match &gain.of {
            GainOf::Arms(arms) => arms.join(", "),
            GainOf::Level { id, level } => format!("{id}={level}"),
        },
        metric: words::metric(gain.metric),
        load: load.map_or_else(
            || number::NONE.to_owned(),
            |load| format!("{} ({})", load.load, words::validity(load.validity)),
        ),
        mean: published(gain.mean),
        peak: published(gain.peak),
        mean_here: number::change((logs / ratios.len() as f64).exp()),
        peak_here: number::change(largest),
        arms: measured.iter().map(arm).collect(),
        verdict,
        because,
    }
}

fn arm(own: &Comparison) -> GainArm {
    let (low, high) = own.interval;
    GainArm {
        arm: own.arm.clone(),
        against: own.against.clone(),
        gain: number::change(own.ratio),
        interval: format!("{} to {}", number::change(low), number::change(high)),
    }
}

/// Ours for each arm that the gain is of and that has valid figures.
fn measured(study: &Study, load: &LoadFindings, gain: &PublishedGain) -> Vec<Comparison> {
    let arms = study.arms.iter();
    let of_arm = |arm: &Arm| -> Option<Comparison> {
        let against = match &gain.of {
            GainOf::Arms(names) if names.contains(&arm.name) => study.arms.get(arm.against)?,
            GainOf::Arms(_) => return None,
            GainOf::Level { id, level } => without(study, arm, id, level)?,
        };
        pair(load, gain.metric, &arm.name, &against.name)
    };
    arms.filter(|arm| arm.role != ArmRole::SameAsBaseline)
        .filter_map(of_arm)
        .filter(|own| own.verdict != Verdict::Invalid && own.ratio > 0.0)
        .collect()
}

/// The arm that differs from `arm` in nothing but that it does not have `level`: the one that it is
/// compared with, if that is such a one, else the first.
fn without<'a>(study: &'a Study, arm: &Arm, id: &str, level: &str) -> Option<&'a Arm> {
    if arm.settings.get(id).map(String::as_str) != Some(level) {
        return None;
    }
    let is_twin = |other: &&'a Arm| {
        let alike = |arm: &Arm| {
            let mut settings = arm.settings.clone();
            settings.remove(id);
            settings
        };
        other.role != ArmRole::SameAsBaseline
            && other.settings.get(id) != arm.settings.get(id)
            && !are_different_proxies(study, &other.name, &arm.name)
            && alike(other) == alike(arm)
    };
    let against = study.arms.get(arm.against).filter(is_twin);
    against.or_else(|| study.arms.iter().find(is_twin))
}

/// The comparison of two arms: as the study makes it, or from its pairs.
fn pair(load: &LoadFindings, metric: Metric, arm: &str, against: &str) -> Option<Comparison> {
    let mut all = load.comparisons.iter().chain(&load.pairs);
    all.find_map(|own| match () {
        () if own.metric != metric => None,
        () if own.arm == arm && own.against == against => Some(own.clone()),
        () if own.arm == against && own.against == arm => Some(own.mirrored()),
        () => None,
    })
}

fn missing(study: &Study, load: Option<&LoadFindings>, gain: &PublishedGain) -> String {
    let metric = words::metric(gain.metric);
    match (load, &gain.of) {
        (None, _) => format!("no load gives the {metric}"),
        (Some(load), _) if !load.metrics.contains(&gain.metric) => {
            format!("this load does not give the {metric}")
        }
        (_, GainOf::Level { id, level }) => {
            let mut arms = study.arms.iter();
            match arms.any(|arm| without(study, arm, id, level).is_some()) {
                true => "no valid figures of arms that differ in it alone; with `compare: pairs` \
                         every two arms are compared"
                    .to_owned(),
                false => "no two arms differ in it alone".to_owned(),
            }
        }
        (_, GainOf::Arms(_)) => "no valid figures".to_owned(),
    }
}

/// Confirmed where an arm's whole interval lies beyond the band in the published direction and none
/// in the other.
fn judge(measured: &[Comparison], up: bool, band: f64) -> (PublishedVerdict, String) {
    let is_beyond = |own: &&Comparison, up: bool| {
        let (low, high) = own.interval;
        let is_shown = matches!(own.verdict, Verdict::Better | Verdict::Worse);
        is_shown
            && match up {
                true => low > 1.0 + band,
                false => high < (1.0 + band).recip(),
            }
    };
    let count = |up: bool| measured.iter().filter(|own| is_beyond(own, up)).count();
    let (same, opposite, all) = (count(up), count(!up), measured.len());
    let is_equivalent = |own: &Comparison| own.verdict == Verdict::Equivalent;
    let of = |count: usize| match (count, all) {
        (count, all) if count == all => String::new(),
        (count, all) => format!("in {count} of {all} arms"),
    };
    match (same, opposite) {
        (0, 0) if measured.iter().all(is_equivalent) => {
            (PublishedVerdict::NoEffectHere, String::new())
        }
        (0, 0) => (PublishedVerdict::Inconclusive, String::new()),
        (0, opposite) => (PublishedVerdict::Opposite, of(opposite)),
        (same, 0) => (PublishedVerdict::Confirmed, of(same)),
        (same, opposite) => (
            PublishedVerdict::Inconclusive,
            format!("confirmed in {same} and the opposite in {opposite} of {all} arms"),
        ),
    }
}
