//! Response times against the rate: loads that differ in their rate alone, beside each other.

use weir_analysis::findings::{LoadFindings, Verdict};
use weir_model::record::Validity;
use weir_model::study::{ArmRole, LoadSpec, Metric, Study, StudyArrivals};

use super::load::{manner, quantiles};
use super::{number, words};

/// Fewer rates than this make no curve.
const LEAST_RATES: usize = 3;

/// What is shown: the metric whose verdicts stand beside the times, and the times' place among the
/// quantiles of an arm.
const SHOWN: [(Metric, usize); 2] = [(Metric::ResponseP99, 2), (Metric::ResponseP50, 0)];

/// Loads that differ in their rate alone.
#[derive(Debug, Clone)]
pub struct ByRateView {
    /// What they have in common: `50 connections to each arm, GET /1024`.
    pub summary: String,
    /// Their worst validity, of those that can be used; INVALID where none can.
    pub validity: Validity,
    /// Their names, by rate, comma-separated.
    pub loads: String,
    /// Requests per second to each arm, ascending.
    pub rates: Vec<String>,
    /// One for each quantile, the longer times first.
    pub tables: Vec<ByRateTable>,
}

/// One quantile of all arms by rate.
#[derive(Debug, Clone)]
pub struct ByRateTable {
    /// `p99`.
    pub quantile: &'static str,
    /// By arm, in the order of the study.
    pub rows: Vec<ByRateRow>,
}

/// One arm by rate.
#[derive(Debug, Clone)]
pub struct ByRateRow {
    /// Its name.
    pub arm: String,
    /// What it is for.
    pub role: ArmRole,
    /// By rate.
    pub cells: Vec<ByRateCell>,
    /// (requests per second, nanoseconds) of the loads that can be used, finite, ascending.
    pub curve: Vec<(f64, f64)>,
}

/// One response time.
#[derive(Debug, Clone)]
pub struct ByRateCell {
    /// The time; a cross where the load is INVALID, `?` behind what is SUSPECT.
    pub time: String,
    /// What came of the comparison; `None` where there was none.
    pub verdict: Option<Verdict>,
    /// Where it is, and the verdict, in words.
    pub title: String,
}

impl ByRateCell {
    /// The time with the verdict's sign before it.
    pub fn signed(&self) -> String {
        match self.verdict {
            Some(verdict) => format!("{} {}", words::verdict_sign(verdict), self.time),
            None => self.time.clone(),
        }
    }

    /// The verdict as a name of a style.
    pub fn class(&self) -> &'static str {
        self.verdict.map_or("", words::verdict)
    }
}

/// A load with a rate, and what was found under it.
#[derive(Clone, Copy)]
struct AtRate<'a> {
    spec: &'a LoadSpec,
    found: &'a LoadFindings,
    rate: f64,
}

impl AtRate<'_> {
    fn usable(&self) -> bool {
        self.found.validity != Validity::Invalid && self.found.blocks_used > 0
    }
}

/// All groups of loads that differ in nothing but their rate and how long they last, cells of matrices
/// aside, in the order of the study.
pub(super) fn all(study: &Study, loads: &[LoadFindings]) -> Vec<ByRateView> {
    let mut groups: Vec<Vec<AtRate<'_>>> = Vec::new();
    for found in loads {
        let spec = study.loads.iter().find(|spec| spec.name == found.load);
        let (Some(spec), Some(rate)) = (spec, found.rate_intended) else {
            continue;
        };
        if spec.cell.is_some() || !rate.is_finite() {
            continue;
        }
        let load = AtRate { spec, found, rate };
        match groups.iter_mut().find(|group| alike(group[0].spec, spec)) {
            Some(group) => group.push(load),
            None => groups.push(vec![load]),
        }
    }
    for group in &mut groups {
        group.sort_by(|a, b| a.rate.total_cmp(&b.rate));
        group.dedup_by(|a, b| a.rate == b.rate);
    }
    groups.retain(|group| group.len() >= LEAST_RATES);
    groups.iter().map(|group| view(study, group)).collect()
}

/// Whether two loads are the same at another rate.
fn alike(a: &LoadSpec, b: &LoadSpec) -> bool {
    let but_rate = |spec: &LoadSpec| {
        let mut spec = spec.clone();
        spec.name.clear();
        spec.main.arrivals = StudyArrivals::Closed;
        spec.duration = std::time::Duration::ZERO;
        spec
    };
    but_rate(a) == but_rate(b)
}

fn view(study: &Study, loads: &[AtRate<'_>]) -> ByRateView {
    let spec = loads[0].spec;
    let connections = number::plural(u64::from(spec.connections), "connection");
    let mut summary = vec![format!("{connections} to each arm")];
    summary.extend(manner(spec));
    let usable = loads.iter().filter(|load| load.usable());
    let names: Vec<&str> = loads.iter().map(|load| &*load.spec.name).collect();
    ByRateView {
        summary: summary.join(", "),
        validity: usable
            .map(|load| load.found.validity)
            .max()
            .unwrap_or(Validity::Invalid),
        loads: names.join(", "),
        rates: loads.iter().map(|load| number::asked(load.rate)).collect(),
        tables: SHOWN
            .iter()
            .map(|&(metric, place)| ByRateTable {
                quantile: words::metric_head(metric),
                rows: rows(study, loads, metric, place),
            })
            .collect(),
    }
}

fn rows(study: &Study, loads: &[AtRate<'_>], metric: Metric, place: usize) -> Vec<ByRateRow> {
    let of = |arm: &str| -> Vec<(f64, f64)> {
        let usable = loads.iter().filter(|load| load.usable());
        let points = usable.filter_map(|load| {
            let found = load.found.arms.iter().find(|found| found.arm == arm)?;
            (found.samples > 0).then(|| (load.rate, found.response_ns[place] as f64))
        });
        points.collect()
    };
    let arms = study.arms.iter();
    arms.map(|arm| ByRateRow {
        arm: arm.name.clone(),
        role: arm.role,
        cells: loads
            .iter()
            .map(|load| cell(load, &arm.name, metric, place))
            .collect(),
        curve: of(&arm.name),
    })
    .collect()
}

fn cell(load: &AtRate<'_>, arm: &str, metric: Metric, place: usize) -> ByRateCell {
    let validity = load.found.validity;
    let mut title = format!("{}, {}", load.spec.name, words::validity(validity));
    if !load.usable() {
        return ByRateCell {
            time: "×".to_owned(),
            verdict: None,
            title,
        };
    }
    let found = load.found.arms.iter().find(|found| found.arm == arm);
    let time = found.map(|found| quantiles(&found.response_ns, found.samples)[place].clone());
    let mark = match validity {
        Validity::Valid => "",
        Validity::Suspect | Validity::Invalid => "?",
    };
    let mut comparisons = load.found.comparisons.iter();
    let compared = comparisons.find(|c| c.arm == arm && c.metric == metric);
    let verdict = compared.map(|comparison| comparison.verdict);
    if let Some(verdict) = verdict {
        title += &format!(": {}", words::verdict(verdict));
    }
    ByRateCell {
        time: format!("{}{mark}", time.as_deref().unwrap_or(number::NONE)),
        verdict,
        title,
    }
}
